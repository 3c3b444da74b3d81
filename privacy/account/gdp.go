package account

import (
	"math"

	"github.com/sottodp/sotto/privacy"
)

// GDP accounts for Gaussians on whole tables, exactly: together they are one
// Gaussian with 1/σ² = Σ 1/σᵢ². For other events it has no theorem.
type GDP struct{}

func (GDP) String() string { return "gdp" }

// Loss implements Accountant.
func (a GDP) Loss(e privacy.Event, adj privacy.Adjacency) (Loss, error) {
	if l, err := trivial(a, e, adj); l != nil || err != nil {
		return l, err
	}
	squared, leak, err := a.cost(e, adj)
	if err != nil {
		return nil, err
	}
	if squared.value == 0 {
		return bound{none{}, leak, squared.rests}, nil
	}
	return bound{gdpLoss{mu: math.Sqrt(squared.value) * (1 + 1e-15)}, leak, append(squared.rests, "gaussian-exact")}, nil
}

// cost adds up μ² = 1/σ², and the δ of (0, δ) releases. PROOFS.md#gaussian-collapse.
func (a GDP) cost(e privacy.Event, adj privacy.Adjacency) (squared cost, leak float64, err error) {
	var total, leaks sum
	rests := anchors{"gaussian-collapse": true}
	err = leaves(e, 1, func(leaf privacy.Event, times float64) error {
		k, ok := facts(leaf)
		if !ok || !k.gdp.proven {
			return unsupported(a, leaf, adj, "the exact Gaussian formula is for Gaussian noise on whole tables")
		}
		total.addProduct(times, k.gdp.value)
		leaks.addProduct(times, k.leak)
		rests.note(k.gdp.rests...)
		return nil
	})
	return proven(total.up(), rests.list()...), leaks.up(), err
}

type gdpLoss struct{ mu float64 }

// Delta implements Loss: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).
// PROOFS.md#gaussian-exact.
func (l gdpLoss) Delta(epsilon float64) float64 {
	if !(epsilon >= 0) {
		return 1
	}
	return deltaOf(l.logDelta(epsilon))
}

// logDelta is ln δ(ε). With a = ε/μ − μ/2, b = a + μ, φ the normal density and R
// the Mills ratio, e^ε = φ(a)/φ(b), so
//
//	δ = φ(a) (R(a) − R(b)) = φ(a) ∫_0^∞ e^{−at − t²/2} (1 − e^{−μt}) dt
//
// which neither overflows nor cancels. Where a is well below 0, δ is near 1 and
// the textbook formula is safe. The result is rounded up: a carries an error of
// about 2⁻⁵² μ, which counts up to 38 times for the δ that a float64 can hold.
func (l gdpLoss) logDelta(epsilon float64) float64 {
	if math.IsInf(l.mu, 1) {
		return 0
	}
	a := epsilon/l.mu - l.mu/2
	if a < -1 {
		return math.Log(math.Erfc(a/math.Sqrt2)/2-normalDensity(a)*mills(a+l.mu, math.Inf(1))) + l.relax()
	}
	return -a*a/2 - math.Log(2*math.Pi)/2 + math.Log(mills(a, l.mu)) + l.relax()
}

// relax is more than the rounding of logDelta.
func (l gdpLoss) relax() float64 { return 1e-12 + 1e-14*l.mu }

func normalDensity(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

// Epsilon implements Loss: the least ε with δ(ε) ≤ delta, by bisection, from the
// safe side.
func (l gdpLoss) Epsilon(delta float64) float64 {
	if e := edge(delta, -1); e >= 0 {
		return e
	}
	if delta == 0 || math.IsInf(l.mu, 1) {
		return math.Inf(1)
	}
	goal := math.Log(delta) - 1e-14
	if l.logDelta(0) <= goal {
		return 0
	}
	// By the classic zCDP conversion this much is always enough.
	lo, hi := 0.0, l.mu*l.mu/2+l.mu*math.Sqrt(-2*goal)
	above, below := l.around(goal, hi)
	for hi-lo > 1e-14*hi {
		mid := lo + (hi-lo)/2
		if mid >= below || mid > above && l.logDelta(mid) <= goal {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// around finds, by secants, two points on both sides of the ε where log δ is the goal: so near to it that a bisection
// evaluates log δ only a few times, and so far apart that log δ differs from the goal by more than its rounding there,
// and hence beyond them. Where it finds none, they are 0 and infinite.
func (l gdpLoss) around(goal, start float64) (above, below float64) {
	x, y := start/2, start
	fx, fy := l.logDelta(x)-goal, l.logDelta(y)-goal
	for range 12 {
		next := y - fy*(y-x)/(fy-fx)
		if !(next > 0 && next < 2*start) {
			break
		}
		x, fx, y, fy = y, fy, next, l.logDelta(next)-goal
		if math.Abs(y-x) < 1e-9*y {
			above, below = y*(1-1e-11), y*(1+1e-11)
			if rounding := l.relax(); l.logDelta(above)-goal > rounding && goal-l.logDelta(below) > rounding {
				return above, below
			}
			break
		}
	}
	return 0, math.Inf(1)
}
