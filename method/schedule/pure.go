package schedule

import "math"

// Pure shares pure ε out over steps on all rows, (4.5): ε_t ∝ a_t^{1/3}. It is the
// one minimum of Σ a_t·b_t² for b_t ∝ 1/ε_t and Σ ε_t = ε: the Lagrange condition is
// a_t/ε_t³ = const, and 1/ε² is convex.
func Pure(a []float64, epsilon float64) ([]float64, error) { return spread(a, epsilon, 1./3) }

// Inner is the pure ε that may be spent on m of n rows, drawn without replacement,
// so that the step costs epsilon: ln(1 + (n/m)(e^ε − 1)), the inverse of (3.3).
func Inner(epsilon float64, m, n int) float64 {
	r := float64(n) / float64(m)
	if epsilon > 30 {
		return epsilon + math.Log(r) + math.Log1p((1/r-1)*math.Exp(-epsilon))
	}
	return math.Log1p(r * math.Expm1(epsilon))
}

// PureSampled shares pure ε out over steps that each see m of n rows, exactly: it
// minimizes Σ a_t·b_t² with b_t ∝ 1/u(ε_t), u = Inner, and Σ ε_t = ε.
//
// P1 calls this intractable and spreads ε by Pure (Remark 4.2). In ε_t it is convex
// (S-1b): with r = n/m, u′ = 1/(1−((r−1)/r)e^{−ε}) is above 0 and falls, so that
// (u^{−2})″ = 6u^{−4}u′² − 2u^{−3}u″ > 0. The objective is separable and the
// constraint linear, so the one minimum has 2a_t·u′/u³ = λ for all t, and both λ and
// each ε_t are found by bisection.
func PureSampled(a []float64, epsilon float64, m, n int) ([]float64, error) {
	out, err := Pure(a, epsilon)
	if err != nil || m == n {
		return out, err
	}
	r := float64(n) / float64(m)
	// slope is −½ d(u^{−2})/dε, which falls from +∞ to 0.
	slope := func(e float64) float64 {
		u := Inner(e, m, n)
		return 1 / (1 - (r-1)/r*math.Exp(-e)) / (u * u * u)
	}
	at := func(want float64) float64 { // ε with slope(ε) = want, at most the whole
		lo, hi := 0.0, epsilon
		for range 100 {
			if mid := lo + (hi-lo)/2; slope(mid) > want {
				lo = mid
			} else {
				hi = mid
			}
		}
		return hi
	}
	set := func(logLambda float64) (sum float64) {
		for t, w := range a {
			out[t] = at(math.Exp(logLambda - math.Log(w)))
			sum += out[t]
		}
		return sum
	}
	// At the largest weight times the slope of an equal share, no step gets more
	// than that; at the smallest, none less.
	least, most := math.Inf(1), 0.0
	for _, w := range a {
		least, most = math.Min(least, w), math.Max(most, w)
	}
	equal := math.Log(slope(epsilon / float64(len(a))))
	lo, hi := math.Log(least)+equal, math.Log(most)+equal
	for range 60 {
		if mid := lo + (hi-lo)/2; set(mid) > epsilon {
			lo = mid
		} else {
			hi = mid
		}
	}
	scale := epsilon / set(hi)
	for t := range out {
		out[t] *= scale
	}
	return out, nil
}
