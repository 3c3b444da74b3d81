package account

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/privacy"
)

// tuned is the best of releases whose number is of that law.
func tuned(eta, gamma float64, among ...privacy.Event) privacy.Tuned {
	return privacy.Tuned{Among: among, Eta: eta, Gamma: gamma}
}

// Closed forms: (2+η)ε of pure releases; of one Gaussian, whose second order has its minimum at β = √(2·ln(1/γ))σ, Papernot and Steinke's Theorem 2.
func TestTunedFormulas(t *testing.T) {
	for _, c := range []struct{ eta, gamma, mean float64 }{
		{1, 0.1, 10}, {0, 0.1, 9 / math.Log(10)}, {0.5, 0.01, 0.5 * 0.99 / (0.01 * 0.9)}, {-0.5, 0.01, 0.5 * 0.99 / (0.01 * 9)}, {1e-12, 0.1, 9 / math.Log(10)},
	} {
		e := tuned(c.eta, c.gamma, privacy.Gaussian{Sigma: 8})
		if got := e.Mean(); math.Abs(got-c.mean) > 1e-9*c.mean {
			t.Errorf("η = %v, γ = %v: %v on average; want %v", c.eta, c.gamma, got, c.mean)
		}
		least := math.Inf(1)
		for beta := 1.001; beta < 1e4; beta *= 1.001 {
			least = math.Min(least, (1-1/beta)*beta/128+math.Log(1/c.gamma)/beta)
		}
		for _, alpha := range []float64{1.5, 4, 64} {
			want := alpha/128 + (1+c.eta)*least + math.Log(c.mean)/(alpha-1)
			got, err := RDP{}.Divergence(e, privacy.AddRemove, alpha)
			if err != nil || got < want*(1-1e-9) || got > want*1.001 {
				t.Errorf("η = %v, γ = %v, order %v: %v, %v; want %v", c.eta, c.gamma, alpha, got, err, want)
			}
		}
		loss, err := Pure{}.Loss(tuned(c.eta, c.gamma, privacy.Laplace{Scale: 2}, privacy.Laplace{Scale: 4}), privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := loss.Epsilon(0), (2+c.eta)*0.5; math.Abs(got-want) > 1e-12 {
			t.Errorf("η = %v: pure ε is %v; want %v", c.eta, got, want)
		}
	}
}

// Near η = 0 the mean grows with η by the factor 1 + η·ln(1/γ)/2, which is more than the accountant's slack.
func TestTunedMeanNearZero(t *testing.T) {
	const gamma = 1e-3
	for _, eta := range []float64{9e-10, 1e-11, -9e-10} {
		want := 999 / math.Log(1e3) * (1 + eta*math.Log(1e3)/2)
		if got := tuned(eta, gamma).Mean(); math.Abs(got/want-1) > 1e-13 {
			t.Errorf("η = %v: %v on average; want %v, which is %.3g more", eta, got, want, want/got-1)
		}
	}
}

// bestOf is the law of the best of K draws from q, whose outcomes are in ascending order: f(Q(≤ y)) − f(Q(< y)).
func bestOf(e privacy.Tuned, q []float64) []float64 {
	f := func(x float64) float64 { // the generating function
		if math.Abs(e.Eta) < 1e-9 {
			return math.Log1p(-(1-e.Gamma)*x) / math.Log(e.Gamma)
		}
		return math.Expm1(-e.Eta*math.Log1p(-(1-e.Gamma)*x)) / math.Expm1(-e.Eta*math.Log(e.Gamma))
	}
	best, below := make([]float64, len(q)), 0.0
	for y, p := range q {
		best[y] = f(math.Min(1, below+p)) - f(below)
		below = math.Min(1, below+p)
	}
	return best
}

// The bound is one: for pairs of laws on a few outcomes the exact law of the best has a divergence of at most what is claimed for the pair's own divergences,
// and a pure ε of at most 2+η times the pair's.
func TestTunedCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "outcomes")
		pair := [2][]float64{}
		for side := range pair {
			sum := 0.0
			for range n {
				v := math.Exp(rapid.Float64Range(-6, 0).Draw(t, "mass"))
				pair[side], sum = append(pair[side], v), sum+v
			}
			for y := range pair[side] {
				pair[side][y] /= sum
			}
		}
		e := tuned(rapid.SampledFrom([]float64{-0.7, 0, 1, 3}).Draw(t, "eta"), rapid.SampledFrom([]float64{0.5, 0.05, 0.001}).Draw(t, "gamma"))
		between := func(p, q []float64, alpha float64) float64 {
			logs := make([]float64, len(p)) // of the terms: a power of 30 overflows
			for y := range p {
				logs[y] = alpha*math.Log(p[y]) + (1-alpha)*math.Log(q[y])
			}
			return floats.LogSumExp(logs) / (alpha - 1)
		}
		own := func(alpha float64) float64 {
			return math.Max(between(pair[0], pair[1], alpha), between(pair[1], pair[0], alpha))
		}
		a, b := bestOf(e, pair[0]), bestOf(e, pair[1])
		alpha, beta := rapid.SampledFrom([]float64{1.1, 2, 5, 30}).Draw(t, "alpha"), rapid.SampledFrom([]float64{1.5, 4, 40}).Draw(t, "beta")
		claim := own(alpha) + (1+e.Eta)*((1-1/beta)*own(beta)+math.Log(1/e.Gamma)/beta) + math.Log(e.Mean())/(alpha-1)
		if got := between(a, b, alpha); got > claim+1e-9 {
			t.Fatalf("order %v: %v is above %v", alpha, got, claim)
		}
		most, bound := 0.0, 0.0
		for y := range a {
			most = math.Max(most, math.Abs(math.Log(a[y]/b[y])))
			bound = math.Max(bound, math.Abs(math.Log(pair[0][y]/pair[1][y])))
		}
		if most > (2+e.Eta)*bound+1e-9 {
			t.Fatalf("pure: %v is above %v × %v", most, 2+e.Eta, bound)
		}
	})
}

// A search costs more than the costliest of its releases, less than one that is run as often as on average when that is often, and composes with others.
func TestTunedBesideOthers(t *testing.T) {
	one, two := privacy.Gaussian{Sigma: 30}, privacy.Repeated{Count: 50, Of: privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 2}}}
	epsilon := func(e privacy.Event) float64 {
		t.Helper()
		l, err := Best{}.Loss(e, privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		return l.Epsilon(1e-6)
	}
	e := tuned(0, 1e-3, one, two)
	switch got := epsilon(e); {
	case got <= epsilon(one), got <= epsilon(two):
		t.Errorf("the best costs %v, its releases %v and %v", got, epsilon(one), epsilon(two))
	case got >= epsilon(privacy.Repeated{Count: 145, Of: one}):
		t.Errorf("the best of 145 costs %v, all of them %v", got, epsilon(privacy.Repeated{Count: 145, Of: one}))
	case epsilon(privacy.Composed{e, one}) <= got:
		t.Errorf("with one more it costs %v, alone %v", epsilon(privacy.Composed{e, one}), got)
	}
}

// There is no theorem for a search with a δ inside, and none in other currencies; without noise it costs everything, and empty nothing.
func TestTunedRefuses(t *testing.T) {
	var unsupported *UnsupportedError
	for _, a := range []Accountant{ZCDP{}, GDP{}, PLD{}} {
		if _, err := a.Loss(tuned(0, 0.1, privacy.Gaussian{Sigma: 8}), privacy.AddRemove); !errors.As(err, &unsupported) {
			t.Errorf("%v: %v", a, err)
		}
	}
	for _, a := range []Accountant{Pure{}, RDP{}, Best{}} {
		if _, err := a.Loss(tuned(0, 0.1, privacy.ApproxDP{Epsilon: 1, Delta: 1e-6}), privacy.AddRemove); !errors.As(err, &unsupported) {
			t.Errorf("%v with a δ inside: %v", a, err)
		}
	}
	if l, err := (Best{}).Loss(tuned(0, 0.1, privacy.Gaussian{Sigma: 8}, privacy.NonPrivate{}), privacy.AddRemove); err != nil || !math.IsInf(l.Epsilon(0.1), 1) {
		t.Errorf("without noise: %v", err)
	}
	if l, err := (Best{}).Loss(tuned(0, 0.1, privacy.Composed{}), privacy.AddRemove); err != nil || l.Epsilon(0) != 0 {
		t.Errorf("nothing: %v", err)
	}
	inner := tuned(0, 0.1, privacy.Gaussian{Sigma: 8})
	for _, e := range []privacy.Event{
		privacy.PoissonSampled{Rate: 0.1, Of: inner}, privacy.FixedSampled{M: 1, N: 9, Of: inner}, tuned(0, 0.1, inner), tuned(0, 0.1),
		tuned(0, 1, privacy.Gaussian{Sigma: 8}), tuned(-1, 0.1, privacy.Gaussian{Sigma: 8}), tuned(0, 0.1, privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-6}), tuned(0, 0.1, nil),
	} {
		if e.Validate() == nil {
			t.Errorf("%v is valid", e)
		}
	}
}
