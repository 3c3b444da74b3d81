package account

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// TestAdaptiveOnOneSample: what is asked of one Poisson sample second may depend on what it answered first, as probes of a loss along its
// own noisy gradient do. By integration over both answers, no rule of choosing moves costs more than the event says, which composes the
// releases inside the sample; a rule that always takes the whole move costs as much under add-or-remove.
func TestAdaptiveOnOneSample(t *testing.T) {
	const step, reach = 0.04, 8.0
	normal := func(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
	rules := map[string]func(first float64) float64{ // the share of the second answer's largest move
		"always":     func(float64) float64 { return 1 },
		"by sign":    func(y float64) float64 { return math.Copysign(1, y-0.4) },
		"where high": func(y float64) float64 { return math.Max(0, math.Copysign(1, y-0.5)) },
		"smooth":     math.Tanh,
	}
	for _, c := range []struct{ q, sigma, tau float64 }{{0.1, 1, 1.5}, {0.4, 2, 1}, {0.9, 1.2, 4}} {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			// the first answer is a clipped sum, the second one of losses in [0, B]
			var first privacy.Event = privacy.Gaussian{Sigma: c.sigma}
			near, far := 1/c.sigma, 0.0
			if adj == privacy.ReplaceOne {
				first = privacy.GaussianSum{Presence: 2 * c.sigma, Replacement: c.sigma}
				near, far = -0.5/c.sigma, 0.5/c.sigma
			}
			event := privacy.PoissonSampled{Rate: c.q, Of: privacy.Composed{first, privacy.Gaussian{Sigma: c.tau}}}
			loss, err := PLD{}.Loss(event, adj)
			if err != nil {
				t.Fatal(err)
			}
			for name, rule := range rules {
				for _, epsilon := range []float64{0, 0.2, 0.7} {
					delta := 0.0
					for a := -reach; a < reach; a += step {
						move, other := rule(a)/c.tau, 0.0
						if adj == privacy.ReplaceOne {
							move, other = math.Max(0, move), math.Max(0, -move)
						}
						for b := -reach; b < reach; b += step {
							without := normal(a) * normal(b)
							p := (1-c.q)*without + c.q*normal(a-near)*normal(b-move)
							q := without
							if adj == privacy.ReplaceOne {
								q = (1-c.q)*without + c.q*normal(a-far)*normal(b-other)
							}
							delta += math.Max(0, p-math.Exp(epsilon)*q) * step * step
						}
					}
					claimed := loss.Delta(epsilon)
					if delta > claimed*(1+1e-3) {
						t.Errorf("%+v, %v, %s: δ(%v) is %.6g, the event says %.6g", c, adj, name, epsilon, delta, claimed)
					}
					if name == "always" && adj == privacy.AddRemove && delta < claimed*0.99 {
						t.Errorf("%+v, %s: δ(%v) is %.6g, below the event's %.6g: the test has no force", c, name, epsilon, delta, claimed)
					}
				}
			}
		}
	}
}
