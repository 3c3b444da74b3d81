package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// Shares are what a guarantee assumes whose noise several owners share, and what it is without that. Every other ε of
// such a plan is against the hub and Colluders other owners, while masks hold.
type Shares struct {
	privacy.Sharing
	// against all other owners together, or if masks were broken; nil: no finite ε is proven
	Alone *float64 `json:"epsilon_alone" unit:"ε"`
}

// SharesOf is the assumption of a plan, or of what was charged of one, with its cost at delta. It is nil where no
// owners share noise.
func SharesOf(e privacy.Event, a Accountant, adj privacy.Adjacency, delta float64) *Shares {
	s := privacy.SharingOf(e)
	if s.Owners == 0 {
		return nil
	}
	of := &Shares{Sharing: s}
	if epsilon := Alone(e, a, adj, delta); !math.IsInf(epsilon, 1) {
		of.Alone = &epsilon
	}
	return of
}

// Alone is the ε of e against all other owners together, or if masks were broken: of an owner's records others then see
// sums with no more than that owner's share of the noise. It is infinite where nothing is proven.
func Alone(e privacy.Event, a Accountant, adj privacy.Adjacency, delta float64) float64 {
	loss, err := a.Loss(privacy.Alone(e), adj)
	if err != nil {
		return math.Inf(1)
	}
	return loss.Epsilon(delta)
}
