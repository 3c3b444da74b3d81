package claimed

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/privacy"
)

// p1Steps is the number of steps T′ that the bound (4.6) calls best in the experiment of
// P1's section 5, with the step size c/L and the first term times that factor.
func p1Steps(c, factor float64) (int, error) {
	f := schedule.Convex{Mu: 0.02, L: 5.1}
	var failed error
	steps, _ := schedule.Steps(1000, func(steps int) float64 {
		a0, a := f.Weights([]schedule.Stage{{Steps: steps, Rate: c / f.L}})
		shares, err := schedule.Pure(a, 1)
		if err != nil {
			failed = err
		}
		variance := make([]float64, len(shares))
		for t, share := range shares {
			b := 40 / (1e5 * share) // S₁/(n ε_t)
			variance[t] = 2 * b * b
		}
		return schedule.Error(a0*factor/2, 10, a, variance, 20, 0) // a0 holds the 2
	})
	return steps, failed
}

// p1Noise is Σ a_t b_t² of ten steps of DP-NAG on 10 of 1000 records, by the shares of ε
// of Remark 4.2 and by the best ones.
func p1Noise(epsilon float64) (cubeRoot, best float64, err error) {
	const m, n, s1 = 10, 1000, 2
	_, a := schedule.Convex{Mu: 0.04, L: 1}.Weights([]schedule.Stage{{Steps: 10, Rate: 1}})
	noise := func(shares []float64) float64 {
		total := 0.0
		for t, share := range shares {
			b := s1 / (m * schedule.Inner(share, m, n))
			total += a[t] * b * b
		}
		return total
	}
	full, err1 := schedule.Pure(a, epsilon)
	sampled, err2 := schedule.PureSampled(a, epsilon, m, n)
	return noise(full), noise(sampled), errors.Join(err1, err2)
}

func p1Example() ([]Claim, error) {
	var claims []Claim
	for _, c := range []float64{1, 0.1} {
		printed, err := p1Steps(c, 1)
		if err != nil {
			return nil, err
		}
		right, err := p1Steps(c, 2)
		if err != nil {
			return nil, err
		}
		claims = append(claims, Claim{
			Paper: "P1", About: fmt.Sprintf("logistic regression of section 5, n = 100000, ε = 1, step size %v/L", c),
			Quantity: "number of steps T′", Formula: "(4.6), whose first term starts from E₀",
			Claimed: float64(printed), Sound: []Figure{{float64(right), "(4.6) with the factor 2"}}, Verdict: Unsound,
			Why:    "(4.2) holds for a Lyapunov value that starts at up to 2E₀, not for the error; no effect on privacy, but the run is stopped too early for its own bound.",
			Source: "S-1a",
		})
	}
	claims = append(claims, Claim{
		Paper: "P1", About: "x₁²·μ/2 + x₂²·L/2 from (1, 0) without noise, step size 1/L, L/μ = 100",
		Quantity: "error after one step over error before", Formula: "(4.2): at most 1 − 1/√κ",
		Claimed: 1 - 1/math.Sqrt(100), Sound: []Figure{{math.Pow(1-1.0/100, 2), "computed"}}, Verdict: Unsound,
		Why: "the counterexample to (4.2) as an inequality on the error", Source: "S-1a",
	})
	for _, eps := range []float64{1, 10} {
		cubeRoot, best, err := p1Noise(eps)
		if err != nil {
			return nil, err
		}
		claims = append(claims, Claim{
			Paper: "P1", About: fmt.Sprintf("10 steps on 10 of 1000 records, pure ε = %v, μ = 0.04, L = 1", eps),
			Quantity: "Σ a_t b_t², the noise in the bound",
			Formula:  "Remark 4.2: the cube-root shares of (4.5), the optimum being called intractable",
			Claimed:  cubeRoot, Sound: []Figure{{best, "the optimum, by dual bisection"}}, Verdict: Loose,
			Why:    "the problem is convex, so the optimum costs no more than a bisection; the shares of P1 are as private",
			Source: "S-1b",
		})
	}
	return claims, nil
}

// p1Of is P1's account: amplify each pure release, add up.
func p1Of(units []unit, adj privacy.Adjacency, _ float64) (Claim, bool) {
	pure := func(u unit, e privacy.Event) bool {
		_, ok := pureOf(e)
		return ok && u.poisson == 0
	}
	if adj != privacy.ReplaceOne || !only(units, pure) || shared(units) {
		return Claim{}, false
	}
	total := 0.0
	for _, u := range units {
		for _, e := range u.releases {
			epsilon, _ := pureOf(e)
			if u.fixed > 0 {
				epsilon = math.Log1p(u.fixed * math.Expm1(epsilon))
			}
			total += u.times * epsilon
		}
	}
	return Claim{Paper: "P1", Formula: "(3.3) for each step, pure ε added up", Claimed: total, Verdict: Loose,
		Why:    "true, and at δ = 0 all that can be said; with a δ above 0 the steps compose more cheaply",
		Source: "S-1d, S-1e"}, true
}

// pureOf is the pure ε of a release.
func pureOf(e privacy.Event) (float64, bool) {
	switch e := e.(type) {
	case privacy.Laplace:
		return 1 / e.Scale, true
	case privacy.PureDP:
		return e.Epsilon, true
	case privacy.Select:
		return e.Epsilon, true
	case privacy.AboveThreshold:
		return 1/e.Threshold + 2/e.Query, true
	}
	return 0, false
}
