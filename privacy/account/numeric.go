package account

import (
	"maps"
	"math"
	"slices"
)

// mulUp is a·b, rounded up.
func mulUp(a, b float64) float64 {
	p := a * b
	if math.FMA(a, b, -p) > 0 {
		p = math.Nextafter(p, math.Inf(1))
	}
	return p
}

// invUp is 1/x, rounded up, for x > 0.
func invUp(x float64) float64 {
	v := 1 / x
	if math.FMA(v, x, -1) < 0 {
		v = math.Nextafter(v, math.Inf(1))
	}
	return v
}

// subDown is a − b, rounded down.
func subDown(a, b float64) float64 {
	d := a - b
	z := d - a
	if err := (a - (d - z)) - (b + z); err < 0 {
		d = math.Nextafter(d, math.Inf(-1))
	}
	return d
}

// capNoise replaces noise whose cost would underflow to 0 by less noise.
func capNoise(noise float64) float64 { return math.Min(noise, 1e140) }

// floorEpsilon replaces an ε whose square would underflow to 0 by a larger one.
func floorEpsilon(epsilon float64) float64 { return math.Max(epsilon, 1e-140) }

// floorRate replaces a rate whose cost would underflow to 0 by a larger one.
func floorRate(rate float64) float64 { return math.Max(rate, 1e-100) }

// A sum adds non-negative numbers to twice the precision of a float64, so that
// ten million charges lose nothing that a budget could notice.
type sum struct{ hi, lo float64 }

func (s *sum) add(x float64) {
	t := s.hi + x
	if math.IsInf(t, 1) {
		*s = sum{hi: t}
		return
	}
	z := t - s.hi
	lo := s.lo + (s.hi - (t - z)) + (x - z)
	s.hi = t + lo
	s.lo = lo - (s.hi - t)
}

// addProduct adds n·x, exactly.
func (s *sum) addProduct(n, x float64) {
	p := n * x
	s.add(p)
	if r := math.FMA(n, x, -p); !math.IsInf(p, 1) && r != 0 {
		s.add(r)
	}
}

// up is the sum, rounded up.
func (s *sum) up() float64 {
	if s.lo > 0 {
		return math.Nextafter(s.hi, math.Inf(1))
	}
	return s.hi
}

// A logSum is ln Σ exp(l) over the l given. Its zero value is not ready; start
// with newLogSum.
type logSum struct{ ref, sum float64 }

func newLogSum() logSum { return logSum{ref: math.Inf(-1)} }

func (s *logSum) add(l float64) {
	if math.IsInf(l, -1) {
		return
	}
	// The reference moves rarely, because every move rounds the sum.
	if l-s.ref > 300 {
		s.sum *= math.Exp(s.ref - l)
		s.ref = l
	}
	s.sum += math.Exp(l - s.ref)
}

func (s *logSum) value() float64 {
	if s.sum == 0 {
		return math.Inf(-1)
	}
	return s.ref + math.Log(s.sum)
}

// expm1x is e^x − 1 − x ≥ 0 without cancellation.
func expm1x(x float64) float64 {
	if math.Abs(x) > 0.5 {
		return math.Expm1(x) - x
	}
	term := x * x / 2
	total := term
	for k := 3.0; math.Abs(term) > 1e-18*total; k++ {
		term *= x / k
		total += term
	}
	return total
}

// log1pExp is ln(1 + e^x).
func log1pExp(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// minimize returns the least value found of a quasi-convex f between lo and hi,
// by golden sections until they are tol apart.
func minimize(lo, hi, tol float64, f func(x float64) float64) float64 {
	const golden = 0.6180339887498949
	a, b := hi-golden*(hi-lo), lo+golden*(hi-lo)
	fa, fb := f(a), f(b)
	best := math.Min(fa, fb)
	for hi-lo > tol {
		if fa <= fb {
			hi, b, fb = b, a, fa
			a = hi - golden*(hi-lo)
			fa = f(a)
		} else {
			lo, a, fa = a, b, fb
			b = lo + golden*(hi-lo)
			fb = f(b)
		}
		best = math.Min(best, math.Min(fa, fb))
	}
	return best
}

// mills is the integral over t > 0 of exp(−a t − t²/2)·w(t) for a ≥ −1, where
// w(t) = 1 − exp(−mu t); mu = +Inf gives w = 1 and so the Mills ratio of a.
//
// With t = e^s the integrand is analytic in the strip |Im s| < π/4 and dies at
// both ends, so the trapezoid rule of step 1/8 errs by e^(−2π·(π/4)·8) ≈ 1e-17
// of the integral.
func mills(a, mu float64) float64 {
	const step = 0.125
	scale := 1 / math.Max(1, a)
	top := math.Log(math.Min(13, 60*scale))
	bottom := math.Log(scale) - 38
	total := 0.0
	for s := top; s > bottom; s -= step {
		t := math.Exp(s)
		next := total + t*math.Exp(-t*(a+t/2))*-math.Expm1(-mu*t)
		if next == total && total > 0 {
			break // terms rise to one peak and fall: those behind one that no longer counts count less
		}
		total = next
	}
	return total * step
}

// sortedKeys are the keys of m, in order.
func sortedKeys(m map[float64]float64) []float64 { return slices.Sorted(maps.Keys(m)) }
