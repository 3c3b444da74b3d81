package audit

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy/noise"
)

// gaussian is the curve of N(μ, 1) against N(0, 1): δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ).
func gaussian(mu float64) Curve {
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	var c Curve
	for k := range 200 {
		epsilon := float64(k) / 199 * mu * (mu/2 + 6)
		c.Epsilon = append(c.Epsilon, epsilon)
		c.Delta = append(c.Delta, max(0, phi(mu/2-epsilon/mu)-math.Exp(epsilon)*phi(-mu/2-epsilon/mu)))
	}
	return c
}

// The events that are least likely under a shift of the mean are tails: f̄(x) = Φ(Φ⁻¹(x) + μ).
func TestLeast(t *testing.T) {
	for _, mu := range []float64{0.3, 1, 2.5} {
		c := gaussian(mu)
		for _, z := range []float64{-2, -0.5, 0, 1, 2.5} {
			r, want := math.Erfc(-z/math.Sqrt2)/2, math.Erfc(-(z-mu)/math.Sqrt2)/2
			if got := c.least(r); got > want*(1+1e-9) || got < 0.98*want {
				t.Errorf("μ = %v: an event of probability %.4g has on the neighbor at least %.4g; want %.4g or a little less", mu, r, got, want)
			}
		}
	}
	response := Curve{[]float64{1}, []float64{0}}
	if got, want := response.least(math.E/(1+math.E)), 1/(1+math.E); math.Abs(got-want) > 1e-15 {
		t.Errorf("randomized response: %v; want %v", got, want)
	}
}

// For randomized response of every coin the number of right guesses is a binomial, and the bound is near its tail's: no number of
// guesses is refuted that is likelier than the failure probability, and one that is much less likely is.
func TestRefutedIsNearTheTail(t *testing.T) {
	const m, failure = 1000, 0.05
	for _, epsilon := range []float64{0.2, 1, 3} {
		p := math.Exp(epsilon) / (1 + math.Exp(epsilon))
		c := Curve{[]float64{epsilon}, []float64{0}}
		first := 0
		for right := 1; right <= m && first == 0; right++ {
			if c.Refuted(m, m, right, failure) {
				first = right
			}
		}
		tail := 1.0 // P(X ≥ first)
		if float64(first) >= p*m {
			tail = upperTail(first, m, p)
		}
		if tail > failure || float64(first) > p*m+4.5*math.Sqrt(m*p*(1-p)) {
			t.Errorf("ε = %v: refuted from %d of %d right, which has probability %.3g", epsilon, first, m, tail)
		}
	}
}

// A mechanism is refuted at its own curve with probability 0.05 at most: of 2000 audits of 200 Gaussian coins no more than 140 are, which a binomial
// exceeds with probability 4·10⁻⁵, and all are at half the shift. Likewise where many coins share one secret, so that guesses are right or wrong together.
func TestRefutedCovers(t *testing.T) {
	src := noise.NewSeeded(1, "one run", 0)
	normal := func() float64 { return math.Sqrt2 * math.Erfinv(2*src.Float64()-1) }
	const m, guesses, failure, audits = 200, 60, 0.05, 2000
	for _, mu := range []float64{0.5, 1.5} {
		own, half := gaussian(mu), gaussian(mu/4)
		refuted, missed := 0, 0
		for range audits {
			odds, in := make([]float64, m), make([]bool, m)
			for i := range odds {
				in[i] = src.Float64() < 0.5
				odds[i] = normal() - mu/2
				if in[i] {
					odds[i] += mu
				}
			}
			right := best(odds, in, guesses)
			if own.Refuted(m, guesses, right, failure) {
				refuted++
			}
			if mu > 1 && !half.Refuted(m, guesses, right, failure) {
				missed++
			}
		}
		if refuted > 140 || missed > 140 {
			t.Errorf("μ = %v: of %d audits %d refute the truth and %d miss a quarter of it", mu, audits, refuted, missed)
		}
	}
	// All coins in the open with probability δ, else nothing: (0, δ)-private in each.
	const delta = 0.04
	leaky := Curve{[]float64{0}, []float64{delta}}
	refuted := 0
	for range audits {
		right := m
		if src.Float64() >= delta {
			right = 0
			for range m {
				if src.Float64() < 0.5 {
					right++
				}
			}
		}
		if leaky.Refuted(m, m, right, failure) {
			refuted++
		}
	}
	if refuted > 140 {
		t.Errorf("a leak with probability %v: of %d audits %d refute the truth", delta, audits, refuted)
	}
}

// best guesses the coins whose odds are farthest from even and counts the guesses that are right.
func best(odds []float64, in []bool, guesses int) int {
	order := make([]int, len(odds))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return -cmp.Compare(math.Abs(odds[a]), math.Abs(odds[b])) })
	right := 0
	for _, i := range order[:guesses] {
		if in[i] == (odds[i] > 0) {
			right++
		}
	}
	return right
}

// What cannot be is no evidence.
func TestRefutedNeedsGuesses(t *testing.T) {
	c := gaussian(0.01)
	for _, g := range [][3]int{{10, 0, 0}, {10, 11, 11}, {10, 5, 6}, {10, 5, 0}, {10, 2, 2}} {
		if c.Refuted(g[0], g[1], g[2], 0.05) {
			t.Errorf("%v refutes", g)
		}
	}
}
