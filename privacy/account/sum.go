package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// This file bounds noisy sums on Poisson samples under replace-one, whose events say how far a
// record's presence and its replacement move them. PROOFS.md#poisson-replace-sum.

// moves are A/σ and R/σ of Gaussians on the same records, rounded up: how far presence and how far a
// replacement moves all of them together. ok is false where e holds another release.
func moves(e privacy.Event) (presence, replacement float64, ok bool) {
	var near, far sum // Σ A²/σ² and Σ R²/σ²
	err := leaves(e, 1, func(leaf privacy.Event, times float64) error {
		g, ok := gaussianOf(leaf)
		if !ok {
			return errFound
		}
		far.addProduct(times, precisionUp(g))
		if s, ok := leaf.(privacy.GaussianSum); ok {
			g.Sigma = s.Presence
		}
		near.addProduct(times, precisionUp(g))
		return nil
	})
	replacement = gaussianShift(far.up())
	// By the triangle inequality R ≤ 2A, which rounding must not undo.
	return math.Max(gaussianShift(near.up()), replacement/2), replacement, err == nil
}

// sumPair is the pair of noisy sums on a Poisson sample under replace-one, where presence moves them less than a
// replacement; else theirs is the pair of a sample of fixed size.
func sumPair(rate float64, of privacy.Event) (p pair, ok bool) {
	presence, replacement, ok := moves(of)
	return pair{shape: sumShape, rate: rate, shift: replacement, near: presence}, ok && rate < 1 && presence < replacement
}

// opposed says whether e is noisy sums alone that a replacement moves by exactly twice what presence moves them: as two
// records of opposite answers do.
func opposed(e privacy.Event) bool {
	return leaves(e, 1, func(leaf privacy.Event, _ float64) error {
		if s, ok := leaf.(privacy.GaussianSum); !ok || s.Presence != 2*s.Replacement {
			return errFound
		}
		return nil
	}) == nil
}

// A sampledSum is such sums together, as a mechanism of their own.
type sampledSum struct{ pair }

// sum is that of s.
func (s sampling) sum() (sampledSum, bool) {
	if !s.swap || s.fixed {
		return sampledSum{}, false
	}
	p, ok := sumPair(s.rate, s.of)
	return sampledSum{p}, ok
}

// sumMostOrder bounds orders times R/σ. Above it the integral takes long, and the mixture bound serves.
const sumMostOrder = 128

// at is the divergence of the pair,
//
//	1/(α−1) ln( 1 + E_Q[(ρ^α − 1)(1 − ρ^{1−α}); ρ > 1] ),  ρ = P/Q.
func (g sampledSum) at(alpha float64) float64 {
	d := alpha * g.shift * g.shift / 2 * (1 + 1e-14)
	least := mixedRDP(alpha, g.rate, d)
	if alpha*g.shift > sumMostOrder || g.shift < 1/pldMaxScale {
		return least
	}
	p := pldPart{pair: g.pair}
	test := func(loss float64) float64 { // ln (ρ^α − 1)(1 − ρ^{1−α})
		v := alpha * loss
		if v < 40 {
			v = math.Log(math.Expm1(v))
		}
		if w := (alpha - 1) * loss; w < 40 {
			v += math.Log(-math.Expm1(-w))
		}
		return v
	}
	in := integral{
		log: func(u float64) float64 {
			logP, logQ := p.logMixtures(u)
			return test(logP-logQ) + logQ - u*u/2
		},
		most: func(a, b float64) float64 { // of a product of functions that grow, and of two that fall
			_, logQ := p.logMixtures(a)
			return test(p.lossAt(b)) + logQ - a*a/2
		},
		fine:  func(a, b float64) bool { return b-a <= p.panel(a, alpha+4)/2 },
		peaks: []float64{1.5, p.near + 1.5, alpha * p.near},
		rule:  legendre20(),
	}
	from, _, _, _ := p.reach(swap, 0)
	// Beyond to P over the normal density is at most e^{y+excess}, y its exponent there, and Q at least 1−q.
	rest := -(alpha - 1) * math.Log1p(-p.rate)
	t := math.Max(from, math.Sqrt(2*(85+rest)))
	to := alpha*p.near + t
	logP, _ := p.logMixtures(to)
	excess := logP - p.near*(to-p.near/2)
	tail := alpha*excess + rest + alpha*(alpha-1)*p.near*p.near/2 - t*t/2 - math.Log(t)
	total := newLogSum()
	total.add(in.between(from, to))
	total.add(tail)
	total.add(-40) // what the rule may miss
	return math.Min(least, fromLog(total.value()-math.Log(2*math.Pi)/2, slack+2e-15*(1+alpha*p.shift*(to+p.shift)), alpha))
}
