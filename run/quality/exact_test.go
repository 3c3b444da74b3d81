package quality

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestAUC: the share of pairs that are in order, ties counting half.
func TestAUC(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		negative, positive, pairs := make([]float64, n), make([]float64, 1+n/3), 0.0
		for _, some := range [][]float64{negative, positive} {
			for i := range some {
				some[i] = float64(rnd.IntN(1 + n/2))
			}
		}
		for _, p := range positive {
			for _, q := range negative {
				if p > q {
					pairs++
				} else if p == q {
					pairs += 0.5
				}
			}
		}
		want := pairs / (float64(len(positive)) * float64(n))
		if got := AUC(negative, positive); got != want && !(n == 0 && math.IsNaN(got)) {
			t.Errorf("%v for %v and %v, want %v", got, negative, positive, want)
		}
	}
	if !math.IsNaN(AUC([]float64{1}, nil)) {
		t.Error("a share of no pairs")
	}
}
