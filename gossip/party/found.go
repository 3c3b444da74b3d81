package party

import (
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run"
)

// Found makes the network of a plan, with its hub at that URL.
func Found(p *run.NetworkPlan, hub string) (*transport.Organizer, error) {
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
	limits := transport.LimitsOf(p.Schedule, p.Job.Facts.Dim, p.Drawn(), p.Drawn() && p.Network.Graph == "random")
	return transport.NewNetwork(hub, names, parts.Hashes(), limits)
}
