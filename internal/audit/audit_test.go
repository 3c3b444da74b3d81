package audit

import (
	"math"
	"testing"

	"github.com/sottodp/sotto/privacy/noise"
)

// Reference values by scipy.stats.beta.ppf, which Clopper and Pearson's bounds are.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		failure   float64
		low, high float64
	}{
		{0, 100, 1e-06, 0.0, 0.1290364100436689},
		{1, 100, 0.025, 0.00025314603297742064, 0.054459385392080645},
		{50, 100, 1e-06, 0.27137965378516793, 0.7286203462145889},
		{99, 100, 1e-06, 0.8455764301945359, 0.9999999899999951},
		{100, 100, 0.025, 0.9637833073548235, 1.0},
		{3, 1000000, 2.5e-07, 1.1480044962269618e-08, 2.2942128980308237e-05},
		{123456, 500000, 2.5e-07, 0.24385453433924892, 0.2499868617449356},
		{499990, 500000, 2.5e-07, 0.9999273345215397, 0.999997813334849},
	} {
		if got := Lower(c.k, c.n, c.failure); math.Abs(got-c.low) > 1e-8*c.low {
			t.Errorf("Lower(%d, %d, %v) = %.12g; want %.12g", c.k, c.n, c.failure, got, c.low)
		}
		if got := Upper(c.k, c.n, c.failure); math.Abs(got-c.high) > 1e-8*c.high {
			t.Errorf("Upper(%d, %d, %v) = %.12g; want %.12g", c.k, c.n, c.failure, got, c.high)
		}
	}
}

// coin is randomized response: label 1 with probability p.
func coin(p float64, src *noise.Source) Law {
	return func() int {
		if src.Float64() < p {
			return 1
		}
		return 0
	}
}

// Randomized response at ε = 1 is found to be a little less than that; of 400 audits at a
// failure rate of 0.05 each no more than 45 are above, which a binomial of 400 trials exceeds with
// probability 10⁻⁷.
func TestEpsilonCovers(t *testing.T) {
	p := math.E / (1 + math.E)
	src := noise.NewSeeded(1, "audit", 0)
	if got := Epsilon(coin(p, src), coin(1-p, src), 1_000_000, 2, 0, 1e-6); got > 1 || got < 0.97 {
		t.Errorf("ε = 1 is found to be %v", got)
	}
	if got := Range(coin(p, src), coin(1-p, src), 1_000_000, 2, 0, 1, 1e-6); got > 2 || got < 1.97 {
		t.Errorf("a range of 2 is found to be %v", got)
	}
	above, over := 0, 0
	for range 400 {
		if Epsilon(coin(p, src), coin(1-p, src), 2000, 2, 0, 0.05) > 1 {
			above++
		}
		if Range(coin(p, src), coin(1-p, src), 1000, 2, 0, 1, 0.05) > 2 {
			over++
		}
	}
	if above > 45 || over > 45 {
		t.Errorf("of 400 audits %d and %d are above the truth", above, over)
	}
}

// δ is taken off: a law that shows an input with probability 0.01 is (0, 0.01)-private.
func TestEpsilonTakesDelta(t *testing.T) {
	src := noise.NewSeeded(2, "audit", 0)
	if got := Epsilon(coin(0.01, src), coin(0, src), 200_000, 2, 0.01, 1e-6); got != 0 {
		t.Errorf("(0, 0.01) is found to be ε = %v", got)
	}
	if got := Epsilon(coin(0.01, src), coin(0, src), 200_000, 2, 0.005, 1e-6); got < 2.5 {
		t.Errorf("at δ = 0.005 ε is found to be %v", got)
	}
}
