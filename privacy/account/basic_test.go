package account

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Adversaries choose the ε and δ of each next draw of randomized response by all
// earlier outcomes, within sums of ε and δ: the exact privacy of the transcript is
// within the sums, and some adversary reaches half of δ or more.
func TestB3AdaptiveBasicComposition(t *testing.T) {
	const epsilon, delta, draws = 1.0, 0.1, 6
	src := rand.New(rand.NewPCG(17, 4))
	most := 0.0
	for range 300 {
		// above is the δ at epsilon of what follows a prefix that table 0 gives with probability p and table 1 with q.
		var above func(p, q, leftEpsilon, leftDelta float64, n int) float64
		above = func(p, q, leftEpsilon, leftDelta float64, n int) float64 {
			if n == draws || p == 0 {
				return max(0, p-math.Exp(epsilon)*q)
			}
			e, d := leftEpsilon, leftDelta
			if src.IntN(3) > 0 {
				e *= src.Float64()
			}
			if src.IntN(3) > 0 {
				d *= src.Float64()
			}
			more := (1 - d) * math.Exp(e) / (1 + math.Exp(e))
			less := (1 - d) / (1 + math.Exp(e))
			next := func(a, b float64) float64 { return above(p*a, q*b, leftEpsilon-e, leftDelta-d, n+1) }
			return next(d, 0) + next(more, less) + next(less, more)
		}
		found := above(1, 1, epsilon, delta, 0)
		if found > delta*(1+1e-9) {
			t.Fatalf("δ is %v, the sum is %v", found, delta)
		}
		most = max(most, found)
	}
	if most < delta/2 {
		t.Errorf("no adversary comes near the sum: %v", most)
	}
}
