package account

import (
	"math"
	"testing"
)

// TestGaussianEpsilonBySecants: secants that narrow the bisection change no bit of its result, and save most of its work.
func TestGaussianEpsilonBySecants(t *testing.T) {
	narrowed := 0
	for mu := 1e-4; mu < 1e3; mu *= 2.1 {
		l := gdpLoss{mu: mu}
		for delta := 0.4; delta > 1e-30; delta *= 0.07 {
			goal := math.Log(delta) - 1e-14
			if l.logDelta(0) <= goal {
				continue
			}
			lo, hi := 0.0, mu*mu/2+mu*math.Sqrt(-2*goal)
			if above, _ := l.around(goal, hi); above > 0 {
				narrowed++
			}
			for hi-lo > 1e-14*hi {
				if mid := lo + (hi-lo)/2; l.logDelta(mid) <= goal {
					hi = mid
				} else {
					lo = mid
				}
			}
			if got := l.Epsilon(delta); got != hi {
				t.Errorf("μ = %v, δ = %v: ε = %v, by bisection alone %v", mu, delta, got, hi)
			}
		}
	}
	if t.Logf("narrowed %d times", narrowed); narrowed < 400 {
		t.Error("nearly all were to be narrowed")
	}
}
