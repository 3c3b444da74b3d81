package account

import (
	"errors"
	"math"
	"strings"

	"github.com/sottodp/sotto/privacy"
)

// Best takes, at every δ, the least of what the accountants prove for an event
// that is fixed beforehand. Its bound must not steer what is released next; that
// is a Filter's work. Where all is one Gaussian, that exact figure is the answer.
// PROOFS.md#best.
type Best struct{}

// candidates are what Best chooses from.
var candidates = []Accountant{Pure{}, GDP{}, ZCDP{}, RDP{}, PLD{}}

func (Best) String() string { return "best" }

// Loss implements Accountant. It fails only if every accountant does; the error is
// then an *UnsupportedError whose reason joins theirs.
func (a Best) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if l, err := trivial(a, e, adj); l != nil || err != nil {
		return l, err
	}
	var least leastLoss
	var reasons []string
	for _, c := range candidates {
		l, err := c.Loss(e, adj)
		var refused *UnsupportedError
		switch {
		case err == nil && c == Accountant(GDP{}):
			return l, nil // exact, so no other is less
		case err == nil:
			least = append(least, l)
		case errors.As(err, &refused):
			reasons = append(reasons, c.String()+": "+refused.Event.String()+": "+refused.Why)
		default:
			return nil, err
		}
	}
	if len(least) == 0 {
		return nil, unsupported(a, e, adj, strings.Join(reasons, "; "))
	}
	return least, nil
}

type leastLoss []Loss

// Epsilon implements Loss.
func (ls leastLoss) Epsilon(delta float64) float64 {
	least := math.Inf(1)
	for _, l := range ls {
		least = math.Min(least, l.Epsilon(delta))
	}
	return least
}

// Delta implements Loss.
func (ls leastLoss) Delta(epsilon float64) float64 {
	least := 1.0
	for _, l := range ls {
		least = math.Min(least, l.Delta(epsilon))
	}
	return least
}
