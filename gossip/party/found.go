package party

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/transport"
)

// Found makes the network of a plan, with its hub at that URL. With requests each owner has a key of its
// own; without any, the organizer makes all keys.
func Found(p *netplan.Plan, hub string, requests ...*transport.Request) (*transport.Organizer, error) {
	agreed, err := p.Agreement()
	if err != nil {
		return nil, err
	}
	parts, err := agreed.Parts(nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range p.Owners {
		names = append(names, o.Name)
	}
	limits := limitsOf(p)
	if len(requests) == 0 {
		return transport.NewNetwork(hub, names, parts.Hashes(), limits)
	}
	if requests, err = inOrder(names, requests); err != nil {
		return nil, err
	}
	return transport.NewNetworkWithKeys(hub, requests, parts.Hashes(), limits)
}

// ErrRequests says that an owner's request is missing, given twice or unknown.
var ErrRequests = errors.New("give one request of each owner")

// inOrder returns the requests in the order of the owners' names.
func inOrder(names []string, requests []*transport.Request) ([]*transport.Request, error) {
	all := make([]*transport.Request, len(names))
	for _, r := range requests {
		switch i := slices.Index(names, r.Name); {
		case i < 0:
			return nil, fmt.Errorf("found the request of %q, who is not an owner in the spec (%s); %w", r.Name,
				strings.Join(names, ", "), ErrRequests)
		case all[i] != nil:
			return nil, fmt.Errorf("found two requests of %q; %w", r.Name, ErrRequests)
		default:
			all[i] = r
		}
	}
	for i, r := range all {
		if r == nil {
			return nil, fmt.Errorf("found no request of %q; %w", names[i], ErrRequests)
		}
	}
	return all, nil
}
