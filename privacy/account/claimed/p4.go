package claimed

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// p4Orders are the orders tried for P4's conversion, which names none: 2 to this.
const p4Orders = 256

// sameBatch is P4's mini-batch step: a gradient and a Hessian of noise multiplier sigma on
// one sample of the share s; as charged by Theorem B.5, and composed before Theorem B.4.
func sameBatch(s, sigma float64, alpha int) (charged, joint float64) {
	inf := math.Inf(1)
	return 2 * theoremB4(s, alpha, gaussianRDP(sigma), inf), theoremB4(s, alpha, gaussianRDP(sigma/math.Sqrt2), inf)
}

// hessianNoise is P4's Frobenius bound on a Hessian's sensitivity over the one for
// Hessians of rank one, d features (S-4d).
func hessianNoise(d float64) float64 { return 2 * math.Sqrt(d) / math.Sqrt2 }

func p4Example() ([]Claim, error) {
	var claims []Claim
	for _, alpha := range []int{2, 8} {
		charged, joint := sameBatch(0.01, 2, alpha)
		c := Claim{
			Paper: "P4", About: "a gradient and a Hessian, noise multiplier 2 each, on one sample of 1 in 100",
			Quantity: fmt.Sprintf("divergence of order %d, replace-one", alpha),
			Formula:  "Theorem B.5: each amplified by itself by Theorem B.4", Claimed: charged,
			Sound: []Figure{{joint, "Theorem B.4 on both together"}}, Verdict: Unsound,
			Why:    "all that is asked of one sample is one charge. Theorem B.4 is loose itself, so the exact cost can lie below both",
			Source: "S-4e",
		}
		gauss := privacy.Gaussian{Sigma: 2}
		exact, err := account.RDP{}.Divergence(privacy.FixedSampled{M: 1, N: 100, Of: privacy.Composed{gauss, gauss}},
			privacy.ReplaceOne, float64(alpha))
		if err != nil {
			return nil, err
		}
		c.Sound = append(c.Sound, Figure{exact, "accountant rdp"})
		claims = append(claims, c)
	}
	const delta = 1e-5
	for _, eps := range []float64{0.2, 0.6, 1} {
		rho := zcdpRho(eps, delta)
		claims = append(claims, Claim{
			Paper: "P4",
			About: fmt.Sprintf("a run of ε = %v that releases f(w₀) + |z| for a tenth of ρ, to find its number of steps",
				eps),
			Quantity: "δ",
			Formula:  "(6), z Gaussian", Claimed: delta,
			Sound: []Figure{{oneSided(math.Sqrt(1 / (0.2 * rho))), "a lower bound, at every ε"}}, Verdict: Unsound,
			Why: "a value below f(w₀) cannot come out, so two tables can be told apart for certain; bound f(w₀) publicly instead", Source: "S-4a",
		})
	}
	rho := zcdpRho(1, delta)
	loss, err := account.GDP{}.Loss(privacy.Gaussian{Sigma: math.Sqrt(1 / (2 * rho))}, privacy.ReplaceOne)
	if err != nil {
		return nil, err
	}
	return append(claims, Claim{
		Paper: "P4", About: fmt.Sprintf("Gaussian noise on all records, ρ = %.6f in all", rho),
		Quantity: fmt.Sprintf("ε at δ = %v", delta), Formula: p4Conversion,
		Claimed: zcdpClassic(rho, delta), Sound: []Figure{{loss.Epsilon(delta), "accountant gdp, exact"}}, Verdict: Loose,
		Why: "true; the conversion serves every release of that zCDP", Source: "S-0f",
	}, Claim{
		Paper: "P4", About: "the noisy Hessian of a generalized linear model, 54 features",
		Quantity: "noise over the noise that suffices", Formula: "the Frobenius bound 2√d on a Hessian's sensitivity, for √2",
		Claimed: hessianNoise(54), Sound: []Figure{{1, "a record's Hessian has rank one"}}, Verdict: Loose,
		Why: "‖H − H′‖² ≤ ‖H‖² + ‖H′‖² for positive Hessians of rank one", Source: "S-4d",
	}), nil
}

const p4Conversion = "ε = ρ + 2√(ρ ln 1/δ), Proposition A.6"

// p4Of is P4's account: zCDP on all records, Theorem B.4 for each release of a sample.
func p4Of(units []unit, adj privacy.Adjacency, delta float64) (Claim, bool) {
	sampled := false
	known := func(u unit, e privacy.Event) bool {
		sampled = sampled || u.fixed > 0
		_, _, ok := p4Base(e)
		return ok && u.poisson == 0
	}
	if adj != privacy.ReplaceOne || !only(units, known) || delta <= 0 {
		return Claim{}, false
	}
	if !sampled {
		rho := 0.0
		for _, u := range units {
			for _, e := range u.releases {
				switch e := e.(type) {
				case privacy.Gaussian:
					rho += u.times / (2 * e.Sigma * e.Sigma)
				default: // Proposition A.5
					pure, _ := pureOf(e)
					rho += u.times * pure * pure / 2
				}
			}
		}
		return Claim{Paper: "P4", Formula: p4Conversion, Claimed: zcdpClassic(rho, delta), Verdict: Loose,
			Why: "true; the conversion serves every release of that zCDP", Source: "S-0f"}, true
	}
	c := Claim{Paper: "P4", Formula: "Theorem B.4 for each release, orders 2 to 256, classic conversion", Verdict: Loose,
		Why: "true; Theorem B.4 is for every mechanism of such divergences, and several times the exact cost", Source: "S-4e"}
	if shared(units) {
		c.Formula = "Theorem B.5: " + c.Formula
		c.Verdict, c.Why = Unsound,
			"each release of a sample is amplified by itself; all that is asked of one sample is one charge"
	}
	total := make([]float64, p4Orders+1)
	for _, u := range units {
		for _, e := range u.releases {
			base, top, _ := p4Base(e)
			for order := 2; order <= p4Orders; order++ {
				d := base(order)
				if u.fixed > 0 && u.fixed < 1 {
					d = theoremB4(u.fixed, order, base, top)
				}
				total[order] += u.times * d
			}
		}
	}
	c.Claimed = classic(func(order int) float64 { return total[order] }, p4Orders, delta)
	return c, true
}

// p4Base is the divergence that P4 gives a release, and its order ∞.
func p4Base(e privacy.Event) (base func(order int) float64, top float64, ok bool) {
	switch e := e.(type) {
	case privacy.Gaussian:
		return gaussianRDP(e.Sigma), math.Inf(1), true
	case privacy.Laplace:
		return laplaceRDP(e.Scale), 1 / e.Scale, true
	}
	if pure, ok := pureOf(e); ok { // Proposition A.5; the line search is pure (S-4b)
		return func(order int) float64 { return math.Min(pure, float64(order)*pure*pure/2) }, pure, true
	}
	return nil, 0, false
}
