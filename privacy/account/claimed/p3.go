package claimed

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A p3Setting is P3's experiment: so many records a node, that share of 20 nodes active,
// three epochs; the ε that is claimed.
type p3Setting struct {
	data       string
	q          float64 // records of a node
	iota, eps  float64
	iterations float64 // T = 3q/ι
}

func newP3(data string, q, iota, eps float64) p3Setting {
	return p3Setting{data, q, iota, eps, 3 * q / iota}
}

// noise is Theorem 1's σ for subgradients of norm 1, with δ₀ = 0.01.
func (x p3Setting) noise() float64 {
	return math.Sqrt(32*x.iota*x.iota*x.iterations*math.Log(2/0.01)) / (x.q * x.eps)
}

// P3Noise is Theorem 1's σ for subgradients of norm 1 and δ₀ = 0.01, of an experiment of three epochs at q
// records a node and a share iota of the nodes active.
func P3Noise(q, iota, epsilon float64) float64 { return newP3("", q, iota, epsilon).noise() }

// P3Fewest is the number of iterations from which Theorem 1 is stated, and how many the experiment takes.
func P3Fewest(q, iota, epsilon float64) (fewest, taken float64) {
	x := newP3("", q, iota, epsilon)
	return x.fewest(), x.iterations
}

// P3Cost is the true ε at delta, under add-or-remove, of a node's records at that noise.
func P3Cost(q, iota, epsilon, delta float64) (float64, error) {
	x := newP3("", q, iota, epsilon)
	return x.cost(x.noise(), delta)
}

// fewest is the number of iterations from which Theorem 1 is stated.
func (x p3Setting) fewest() float64 { return 5 * x.q * x.q * x.eps * x.eps / (4 * x.iota * x.iota) }

// chain is what the proof of Theorem 1 arrives at with its constant 32, where it says ε.
func (x p3Setting) chain() float64 { return math.Sqrt(3*x.eps*x.eps) + x.eps*x.eps }

// cost is the true ε at delta of a node's records, each a sample of one record in q, at
// that noise multiplier.
func (x p3Setting) cost(multiplier, delta float64) (float64, error) {
	loss, err := account.PLD{}.Loss(privacy.Repeated{Count: int(math.Round(x.iota * x.iterations)),
		Of: privacy.PoissonSampled{Rate: 1 / x.q, Of: privacy.Gaussian{Sigma: multiplier}}}, privacy.AddRemove)
	if err != nil {
		return 0, err
	}
	return loss.Epsilon(delta), nil
}

func p3Example() ([]Claim, error) {
	var claims []Claim
	for _, x := range []p3Setting{newP3("epsilon", 20000, 0.1, 1), newP3("epsilon", 20000, 0.1, 0.2)} {
		about := fmt.Sprintf("data %q, 20 nodes of %v records, %v of them active, 3 epochs", x.data, x.q, x.iota)
		c := Claim{
			Paper: "P3", About: fmt.Sprintf("%s, noise %.5f", about, x.noise()), Quantity: "ε at δ = 1e-05 of a node's records",
			Formula: "Theorem 1", Claimed: x.eps, Verdict: Unsound,
			Why:    "δ in the proof comes out as ε or more, and the nodes that are active are not hidden; what amplifies is that a node draws one of its records",
			Source: "S-3",
		}
		for i, by := range []string{"accountant pld, add-or-remove", "a lower bound under replace-one: two concrete tables"} {
			if i > 0 && x.eps < 1 { // it takes long
				break
			}
			epsilon, err := x.cost(x.noise()/float64(i+1), 1e-5)
			if err != nil {
				return nil, err
			}
			c.Sound = append(c.Sound, Figure{epsilon, by})
		}
		claims = append(claims, c, Claim{
			Paper: "P3", About: fmt.Sprintf("%s, ε = %v", about, x.eps), Quantity: "iterations",
			Formula: "the experiment's T = 3q/ι",
			Claimed: x.iterations, Sound: []Figure{{x.fewest(), "Theorem 1's own condition: at least"}}, Verdict: Unsound,
			Why: "the theorem does not speak of the experiment", Source: "S-3",
		})
	}
	x := newP3("epsilon", 20000, 0.1, 1)
	return append(claims, Claim{
		Paper: "P3", About: "the proof of Theorem 1 at ε = 1", Quantity: "ε", Formula: "(17) with the constant 32",
		Claimed: x.eps, Sound: []Figure{{x.chain(), "the same steps, added up"}}, Verdict: Unsound,
		Why: "the chain needs the constant 160; the appendix has 40, the theorem 32", Source: "S-3",
	}), nil
}
