package account

import (
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// asking counts how often a composition is asked.
type asking struct {
	composition
	asked int
}

func (c *asking) delta(epsilon float64) float64 {
	c.asked++
	return c.composition.delta(epsilon)
}

func (c *asking) lowerDelta(epsilon float64) float64 {
	c.asked++
	return c.composition.lowerDelta(epsilon)
}

// cliff holds δ only at ε = 0, or nowhere below its end: searches between the two halve without end unless they are bounded.
type cliff struct{ at, end float64 }

func (s cliff) delta(epsilon float64) float64 {
	if epsilon == 0 {
		return s.at
	}
	return 0
}
func (s cliff) lowerDelta(epsilon float64) float64 { return s.delta(epsilon) }
func (s cliff) top() float64                       { return s.end }

// The work of a bracket is bounded, whatever the composition.
func TestC3BracketEnds(t *testing.T) {
	race.Skip(t)
	e := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: 5}}
	lower, upper, err := PLD{}.Bracket(privacy.Repeated{Count: 1, Of: e}, privacy.AddRemove, 1e-30)
	if err != nil || !(lower >= 0 && lower <= upper) {
		t.Errorf("found [%v, %v], %v", lower, upper, err)
	}
	c := &asking{composition: cliff{1, 5}}
	if lo := lowerEpsilonOf(c, 1e-30, 5); lo != 0 || c.asked > 500 {
		t.Errorf("the lower end is %v, after %d questions", lo, c.asked)
	}
	c = &asking{composition: cliff{1, 5}}
	if hi := epsilonOf(c, 1e-30); !(hi > 0) || c.delta(hi) > 1e-30 || c.asked > 500 {
		t.Errorf("the upper end is %v, after %d questions", hi, c.asked)
	}
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, delta := range []float64{1e-300, 1e-100, 1e-30, 1e-15, 1e-5, 0.5} {
			for _, sigma := range []float64{0.5, 5, 500} {
				of := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: sigma}}
				if lower, upper, err := (PLD{}).Bracket(of, adj, delta); err != nil || !(lower >= 0 && lower <= upper) {
					t.Errorf("%v, %v, δ = %v: found [%v, %v], %v", of, adj, delta, lower, upper, err)
				}
			}
		}
	}
}

// A lower end is claimed where it is proven: not of samples under replace-one, but for sums of opposed records.
func TestC3LeastClaimsWhatIsProven(t *testing.T) {
	whole := privacy.Gaussian{Sigma: 5}
	poisson, fixed := privacy.PoissonSampled{Rate: 0.1, Of: whole}, privacy.FixedSampled{M: 10, N: 100, Of: whole}
	for _, c := range []struct {
		e      privacy.Event
		adj    privacy.Adjacency
		claims bool
	}{
		{whole, privacy.AddRemove, true},
		{whole, privacy.ReplaceOne, true},
		{poisson, privacy.AddRemove, true},
		{poisson, privacy.ReplaceOne, false},
		{fixed, privacy.ReplaceOne, false},
		{onPoisson(0.1, 10, 5, 3), privacy.ReplaceOne, true},
		{onPoisson(0.1, 7, 5, 3), privacy.ReplaceOne, false},
		{privacy.Composed{whole, privacy.Repeated{Count: 3, Of: fixed}}, privacy.ReplaceOne, false},
		{privacy.Repeated{Count: 3, Of: poisson}, privacy.AddRemove, true},
		{privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{whole, privacy.Laplace{Scale: 5}}}, privacy.AddRemove, false},
	} {
		least, err := PLD{}.Least(c.e, c.adj, 1e-5)
		if err != nil || (least > 0) != c.claims {
			t.Errorf("%v under %v: at least %v, %v", c.e, c.adj, least, err)
		}
		if l, err := (PLD{}).Loss(c.e, c.adj); err != nil || least > l.Epsilon(1e-5) {
			t.Errorf("%v under %v: at least %v, at most %v", c.e, c.adj, least, l.Epsilon(1e-5))
		}
	}
}
