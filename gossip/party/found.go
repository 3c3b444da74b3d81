package party

import (
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/gossip/transport"
)

// Found makes the network of a plan, whose hub is found at that URL.
func Found(p *agreement.Plan, hub string) (*transport.Organiser, error) {
	agreed, err := p.Agreed()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range p.Owners {
		names = append(names, o.Name)
	}
	limits := transport.LimitsOf(p.Schedule, p.Job.Facts.Dim, p.Drawn(), p.Drawn() && p.Network.Graph == "random")
	return transport.NewNetwork(hub, names, agreed, limits)
}
