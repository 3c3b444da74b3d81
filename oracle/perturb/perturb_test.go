package perturb

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sottodp/sotto/internal/lbfgs"
	"github.com/sottodp/sotto/internal/proofs"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Every test that PROOFS.md names exists, here, in oracle/private or in package model.
func TestProofs(t *testing.T) { proofs.Page(t, "../private", "../../model") }

// The minimizer of J is reached to within what the output noise hides, by L-BFGS and by gradient
// descent, so no table makes it fail; both are checked against each other and against the gradient.
func TestObjectiveArrives(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var rows [60][4]float64 // a label of ±1 is in the sign
		for i := range rows {
			for k := range rows[i] {
				rows[i][k] = rnd.NormFloat64()
			}
			long := lbfgs.Norm(rows[i][:])
			for k := range rows[i] {
				rows[i][k] /= long
			}
			if seed == 3 { // separable, and many rows alike
				rows[i] = [4]float64{1}
			}
		}
		for _, c := range []struct {
			name   string
			smooth float64
			slope  func(margin float64) float64
		}{
			{"logistic", 0.25, func(z float64) float64 { return -1 / (1 + math.Exp(z)) }},
			{"huber-svm", 1, func(z float64) float64 { return -min(1, max(0, 1.5-z)) }},
		} {
			p := Problem{
				Adjacency: privacy.ReplaceOne, Records: 60, Dim: 4, Features: 4, Outputs: 1, Block: 1024,
				RowNorm: 1, NormBound: 1, Lipschitz: 1, Smooth: c.smooth, Convex: true, OneMargin: true,
			}
			o, err := p.Objective(oracle.Objective{Epsilon: 1, Delta: 1e-5, Lambda: 3}, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			j := &Mean{N: 60, Curve: o.Curve, Tilt: make([]float64, 4), Sum: func(g, w []float64) {
				clear(g)
				for _, x := range rows {
					z := 0.0
					for k, v := range x {
						z += v * w[k]
					}
					for k, v := range x {
						g[k] += c.slope(z) * v
					}
				}
			}}
			for k := range j.Tilt {
				j.Tilt[k] = o.Tilt * rnd.NormFloat64()
			}
			fast, slow, apart := make([]float64, 4), make([]float64, 4), make([]float64, 4)
			if !lbfgs.Minimize(j.Grad, fast, o.steep(), searchGrads, o.arrived) {
				t.Errorf("%s: L-BFGS does not arrive", c.name)
			}
			o.descend(slow, j, o.arrived)
			for k := range apart {
				apart[k] = fast[k] - slow[k]
			}
			if d := lbfgs.Norm(apart); d > 2*o.Missed || o.Missed > 1e-6 {
				t.Errorf("%s: the two end %v apart; each is said to be within %v", c.name, d, o.Missed)
			}
			for _, w := range [][]float64{fast, slow} {
				g := make([]float64, 4)
				if j.Grad(g, w); lbfgs.Norm(g) > 4*o.Off {
					t.Errorf("%s: gradient %v where %v was to be reached", c.name, lbfgs.Norm(g), 4*o.Off)
				}
			}
		}
	}
}

// Three Gaussians' δ add up to what is allowed, and no smaller noise would do.
func TestTilt(t *testing.T) {
	for _, c := range []struct{ epsilon, delta, lipschitz float64 }{{0.08, 4e-10, 1}, {1, 1e-5, 2}, {8, 1e-9, 0.3}, {0.1, 0.2, 1}} {
		s, err := tiltFor(c.epsilon, c.delta, c.lipschitz)
		if err != nil {
			t.Fatal(err)
		}
		gauss := func(shift float64) float64 { // textbook form, of enough digits here
			mu := shift / s
			phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
			return phi(mu/2-c.epsilon/mu) - math.Exp(c.epsilon)*phi(-mu/2-c.epsilon/mu)
		}
		if got := gauss(2*c.lipschitz) + 2*gauss(c.lipschitz); math.Abs(got/c.delta-1) > 1e-4 {
			t.Errorf("%+v: δ is %v at deviation %v", c, got, s)
		}
		alone, err := account.Calibrate(account.GDP{}, privacy.Budget{Epsilon: c.epsilon, Delta: c.delta, Adjacency: privacy.ReplaceOne}, func(x float64) privacy.Event { return privacy.Gaussian{Sigma: x} })
		if err != nil || s < 2*c.lipschitz*alone*(1-1e-6) || s > 4*c.lipschitz*alone {
			t.Errorf("%+v: deviation %v, a single Gaussian needs %v (%v)", c, s, 2*c.lipschitz*alone, err)
		}
	}
}
