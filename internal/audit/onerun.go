package audit

import "math"

// A Curve bounds a mechanism's trade-off function by points (ε, δ) at which it is private, both ways round, each ε 0 or
// more. It is weaker than the function, so a refutation of the curve refutes the function.
type Curve struct{ Epsilon, Delta []float64 }

// least is the smallest probability that an event of probability r on one table has on its neighbor: for
// each point P(E) ≤ e^ε·P'(E) + δ, of the event and of its complement.
func (c Curve) least(r float64) float64 {
	x := 0.0
	for k, epsilon := range c.Epsilon {
		e := math.Exp(epsilon)
		x = max(x, (r-c.Delta[k])/e, 1-c.Delta[k]-e*(1-r))
	}
	return x
}

// Refuted says whether a one-run audit refutes a mechanism that is as private as c says: m records were each in or out
// by a fair coin of its own, exactly so many of the coins were guessed from one outcome, and so many of the guesses
// were right. A mechanism that is as private is refuted with probability failure at most (PROOFS.md, one-run).
func (c Curve) Refuted(m, guesses, right int, failure float64) bool {
	if right < 1 || guesses > m || right > guesses {
		return false
	}
	n, g := float64(m), float64(guesses)
	r, h := failure*float64(right)/n, failure*(g-float64(right))/n
	for i := right - 1; i >= 0; i-- {
		before := h
		h = c.least(min(r, 1))
		r += float64(i) / (g - float64(i)) * (h - before)
		if r+h > g/n {
			return true
		}
	}
	return false
}
