package account

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/bits"
	"os"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

// TestFixedBars: Gaussian noise on samples of fixed size, to the four digits of an
// independent integration of the symmetric profile.
func TestFixedBars(t *testing.T) {
	orders := []float64{2, 4, 8, 16, 32}
	for _, c := range []struct {
		m, n  int
		sigma float64
		want  []float64
	}{
		{1, 10, 4, []float64{.0007528, .001507, .003026, .006156, .01322}},
		{10_000, 1_000_000, 2, []float64{3.908e-5, 7.817e-5, 1.565e-4, 3.140e-4, 6.371e-4}},
	} {
		for i, order := range orders {
			got, err := RDP{}.Divergence(privacy.FixedSampled{M: c.m, N: c.n, Of: privacy.Gaussian{Sigma: c.sigma}}, privacy.ReplaceOne, order)
			if err != nil || math.Abs(got/c.want[i]-1) > 2e-4 {
				t.Errorf("%d of %d, σ = %v, order %v: %v, %v; want %v", c.m, c.n, c.sigma, order, got, err, c.want[i])
			}
		}
	}
	if got := mustDivergence(t, privacy.PoissonSampled{Rate: 0.1, Of: privacy.PureDP{Epsilon: 1}}, 8); math.Abs(got-0.04703) > 5e-6 {
		t.Errorf("a sampled pure release: %v", got)
	}
}

// TestSampledPairs compares with values by mpmath in 20 digits, of another formula:
// the integral of the profile, α(α−1)∫x^{α−2}E_x dx (testdata/sampled-pairs.json).
func TestSampledPairs(t *testing.T) {
	data, err := os.ReadFile("testdata/sampled-pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var values []struct {
		Kind                               string
		Alpha, Q, Sigma, V, Fixed, Poisson float64
	}
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	if len(values) < 40 {
		t.Fatalf("only %d values", len(values))
	}
	for _, v := range values {
		var e privacy.Composed
		if v.Sigma > 0 {
			e = append(e, privacy.Gaussian{Sigma: v.Sigma})
		}
		switch v.Kind {
		case "pure":
			e = append(e, privacy.PureDP{Epsilon: v.V})
		case "laplace":
			e = append(e, privacy.Laplace{Scale: v.V})
		case "select":
			e = append(e, privacy.Select{Epsilon: v.V})
		}
		in, _ := contentsOf(e)
		p, ok := in.pair()
		if !ok {
			t.Fatalf("%+v: no pair", v)
		}
		for want, got := range map[float64]float64{v.Fixed: p.sampledRDP(v.Alpha, v.Q, true), v.Poisson: p.sampledRDP(v.Alpha, v.Q, false)} {
			if over := got/want - 1; !(over >= 0 && over < 1e-10) {
				t.Errorf("%+v: got %.17g, want %.17g: off by %.2g", v, got, want, over)
			}
		}
	}
}

// anyMechanism draws a release on a whole table.
func anyMechanism() *rapid.Generator[privacy.Event] {
	return rapid.Custom(func(t *rapid.T) privacy.Event {
		v := logRange(0.2, 50).Draw(t, "v")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return privacy.Gaussian{Sigma: v}
		case 1:
			return privacy.Laplace{Scale: v}
		case 2:
			return privacy.PureDP{Epsilon: 1 / v}
		case 3:
			return privacy.AboveThreshold{Threshold: v, Query: v * logRange(0.3, 3).Draw(t, "query"), Max: 5}
		default:
			return privacy.Select{Epsilon: 1 / v}
		}
	})
}

// anyContents draws what may be asked of one sample.
func anyContents() *rapid.Generator[privacy.Event] {
	return rapid.Custom(func(t *rapid.T) privacy.Event {
		if rapid.Bool().Draw(t, "one") {
			return anyMechanism().Draw(t, "mechanism")
		}
		parts := make(privacy.Composed, rapid.IntRange(2, 3).Draw(t, "parts"))
		for i := range parts {
			parts[i] = privacy.Repeated{Count: rapid.IntRange(1, 4).Draw(t, "count"), Of: anyMechanism().Draw(t, "mechanism")}
		}
		return parts
	})
}

// quieter is the event with f times the noise.
func quieter(e privacy.Event, f float64) privacy.Event {
	switch e := e.(type) {
	case privacy.Gaussian:
		return privacy.Gaussian{Sigma: e.Sigma * f}
	case privacy.Laplace:
		return privacy.Laplace{Scale: e.Scale * f}
	case privacy.PureDP:
		return privacy.PureDP{Epsilon: e.Epsilon / f}
	case privacy.AboveThreshold:
		return privacy.AboveThreshold{Threshold: e.Threshold * f, Query: e.Query * f, Max: e.Max}
	case privacy.Select:
		return privacy.Select{Epsilon: e.Epsilon / f}
	case privacy.Repeated:
		return privacy.Repeated{Count: e.Count, Of: quieter(e.Of, f)}
	case privacy.Composed:
		var list privacy.Composed
		for _, part := range e {
			list = append(list, quieter(part, f))
		}
		return list
	}
	panic("unknown event")
}

// TestSampledCostsNoMore: whatever is asked of a sample, it costs at most what the
// table does, less at a smaller rate, with more noise and for fewer releases, and
// the same at rate 1.
func TestSampledCostsNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := anyContents().Draw(t, "of")
		alpha := 1 + logRange(0.01, 300).Draw(t, "alpha")
		if rapid.Bool().Draw(t, "whole") {
			alpha = math.Ceil(alpha)
		}
		const n = 1 << 20
		m := int(logRange(1, n-1).Draw(t, "m"))
		fewer := int(float64(m) / rapid.Float64Range(1, 3).Draw(t, "fewer"))
		more := rapid.Float64Range(1, 3).Draw(t, "more")
		count := privacy.Repeated{Count: 2, Of: of}
		for adj, sample := range map[privacy.Adjacency]func(m int, of privacy.Event) privacy.Event{
			privacy.AddRemove: func(m int, of privacy.Event) privacy.Event {
				return privacy.PoissonSampled{Rate: float64(m) / n, Of: of}
			},
			privacy.ReplaceOne: func(m int, of privacy.Event) privacy.Event { return privacy.FixedSampled{M: m, N: n, Of: of} },
		} {
			d := func(e privacy.Event) float64 {
				d, err := RDP{}.Divergence(e, adj, alpha)
				if err != nil || !(d > 0) {
					t.Fatalf("%v: D_%v = %v, %v", e, alpha, d, err)
				}
				return d
			}
			base := d(sample(m, of))
			atMost(t, "sample and table", base, d(of))
			atMost(t, "rate", d(sample(max(1, fewer), of)), base)
			atMost(t, "noise", d(sample(m, quieter(of, more))), base)
			atMost(t, "releases", base, d(sample(m, count)))
			same(t, "rate 1", d(sample(n, of)), d(of))
			if p, err := (Pure{}).Loss(sample(m, of), adj); err == nil {
				whole, err := Pure{}.Loss(of, adj)
				if err != nil {
					t.Fatal(err)
				}
				atMost(t, "pure", p.Epsilon(0), whole.Epsilon(0))
				atMost(t, "below pure", base, p.Epsilon(0))
			}
		}
	})
}

// divergence of order α of two laws given by densities on a grid of the given step.
func gridDivergence(p, q []float64, alpha, step float64) float64 {
	total := 0.0
	for i := range p {
		if p[i] > 0 {
			total += math.Pow(p[i], alpha) * math.Pow(q[i], 1-alpha)
		}
	}
	return math.Log(total*step) / (alpha - 1)
}

// covered fails if either direction's divergence is above the bound.
func covered(t *rapid.T, p, q []float64, alpha, step, bound float64) {
	t.Helper()
	for _, d := range []float64{gridDivergence(p, q, alpha, step), gridDivergence(q, p, alpha, step)} {
		if d > bound*(1+1e-7)+1e-12 {
			t.Fatalf("D_%v is %v, above the bound %v", alpha, d, bound)
		}
	}
}

const gridStep, gridEnd = 0.02, 40.0

// onGrid tabulates a density.
func onGrid(f func(z float64) float64) []float64 {
	var list []float64
	for z := -gridEnd; z <= gridEnd; z += gridStep {
		list = append(list, f(z))
	}
	return list
}

// TestFixedSumIsCovered enumerates the samples of a small table and compares the
// exact divergences of a noisy sum, neighbors differing in one record.
func TestFixedSumIsCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "n")
		m := rapid.IntRange(1, n-1).Draw(t, "m")
		sigma, alpha := logRange(0.7, 4).Draw(t, "sigma"), rapid.Float64Range(1.1, 8).Draw(t, "alpha")
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 1, 0.5}), n, n).Draw(t, "values")
		law := func(first float64) []float64 {
			return onGrid(func(z float64) float64 {
				total, samples := 0.0, 0.0
				for set := range 1 << n {
					if bits.OnesCount(uint(set)) != m {
						continue
					}
					center := 0.0
					for i, v := range values {
						if i == 0 {
							v = first
						}
						if set>>i&1 == 1 {
							center += v
						}
					}
					samples++
					total += normalDensity((z-center)/sigma) / sigma
				}
				return total / samples
			})
		}
		bound, err := RDP{}.Divergence(privacy.FixedSampled{M: m, N: n, Of: privacy.Gaussian{Sigma: sigma}}, privacy.ReplaceOne, alpha)
		if err != nil {
			t.Fatal(err)
		}
		covered(t, law(0), law(1), alpha, gridStep, bound)
	})
}

// TestPoissonSumIsCovered: a noisy sum and a randomized response on one Poisson
// sample, with and without one record; where the others are 0 the bound is attained.
func TestPoissonSumIsCovered(t *testing.T) {
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.Float64Range(0.05, 0.9).Draw(t, "q")
		sigma, epsilon := logRange(0.7, 4).Draw(t, "sigma"), logRange(0.05, 2).Draw(t, "epsilon")
		alpha := rapid.Float64Range(1.1, 8).Draw(t, "alpha")
		others := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.5, 1, -1}), 0, 2).Draw(t, "others")
		truth := 1 / (1 + math.Exp(-epsilon))
		law := func(rate float64) []float64 { // of the record of value 1
			var list []float64
			for _, bit := range []float64{truth, 1 - truth} {
				list = append(list, onGrid(func(z float64) float64 {
					total := 0.0
					for set := range 1 << len(others) {
						center, weight := 0.0, 1.0
						for i, v := range others {
							if set>>i&1 == 1 {
								center += v
								weight *= q
							} else {
								weight *= 1 - q
							}
						}
						density := func(at float64) float64 { return normalDensity((z-at)/sigma) / sigma }
						total += weight * (rate*bit*density(center+1) + (1-rate)*(1-bit)*density(center))
					}
					return total
				})...)
			}
			return list
		}
		e := privacy.PoissonSampled{Rate: q, Of: privacy.Composed{privacy.Gaussian{Sigma: sigma}, privacy.PureDP{Epsilon: epsilon}}}
		bound, err := RDP{}.Divergence(e, privacy.AddRemove, alpha)
		if err != nil {
			t.Fatal(err)
		}
		in, out := law(q), law(0)
		covered(t, in, out, alpha, gridStep, bound)
		if len(others) == 0 {
			if d := math.Max(gridDivergence(in, out, alpha, gridStep), gridDivergence(out, in, alpha, gridStep)); d < bound*(1-1e-7) {
				t.Fatalf("D_%v = %v does not attain the bound %v", alpha, d, bound)
			}
		}
	})
}

// TestAboveThresholdIsCovered integrates over the threshold's noise what a search of
// up to five queries says on two tables, and compares divergences and ratios.
func TestAboveThresholdIsCovered(t *testing.T) {
	tail := func(x, b float64) float64 { // P(Laplace(b) ≥ x)
		if x < 0 {
			return 1 - math.Exp(x/b)/2
		}
		return math.Exp(-x/b) / 2
	}
	rapid.Check(t, func(t *rapid.T) {
		e := privacy.AboveThreshold{Threshold: logRange(0.4, 8).Draw(t, "threshold"), Query: logRange(0.4, 8).Draw(t, "query"), Max: 5}
		alpha := rapid.Float64Range(1.1, 16).Draw(t, "alpha")
		n := rapid.IntRange(1, 5).Draw(t, "n")
		centers := rapid.SliceOfN(rapid.Float64Range(-4, 2), n, n).Draw(t, "centers")
		moves := rapid.SliceOfN(rapid.SampledFrom([]float64{-1, 1, 0}), n, n).Draw(t, "moves")
		law := func(moved float64) []float64 {
			says := make([]float64, n+1)
			step := e.Threshold / 100
			for z := -30 * e.Threshold; z <= 30*e.Threshold; z += step {
				weight := math.Exp(-math.Abs(z)/e.Threshold) / 2 / e.Threshold * step
				for i, c := range centers {
					pass := tail(z-c-moved*moves[i], e.Query)
					says[i] += weight * pass
					weight *= 1 - pass
				}
				says[n] += weight
			}
			return says
		}
		p, q := law(0), law(1)
		d, err := RDP{}.Divergence(e, privacy.AddRemove, alpha)
		if err != nil {
			t.Fatal(err)
		}
		covered(t, p, q, alpha, 1, d+1e-3) // the sum over z errs by less
		epsilon, err := pureEpsilon(Pure{}, e, privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p {
			if ratio := math.Abs(math.Log(p[i] / q[i])); ratio > epsilon+1e-3 {
				t.Fatalf("answer %d: the loss is %v, above ε = %v", i, ratio, epsilon)
			}
		}
	})
}

// TestBoundedRange compares with the two-point pairs whose losses are t and t − ε.
func TestBoundedRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epsilon, alpha := logRange(0.01, 60).Draw(t, "epsilon"), 1+logRange(0.01, 500).Draw(t, "t")
		got := boundedRangeRDP(alpha, epsilon)
		worst := 0.0
		const steps = 4000
		for i := 1; i < steps; i++ {
			top := epsilon * float64(i) / steps
			p := -math.Expm1(top-epsilon) / -math.Expm1(-epsilon) // P of the loss top
			low := math.Log1p(-p) + (alpha-1)*(top-epsilon)
			high := math.Log(p) + (alpha-1)*top
			worst = math.Max(worst, (math.Max(low, high)+math.Log1p(math.Exp(-math.Abs(low-high))))/(alpha-1))
		}
		if !(got >= worst*(1-1e-9)) {
			t.Fatalf("got %v, a pair has %v", got, worst)
		}
		if got > worst*(1+1e-3)+1e-9 {
			t.Fatalf("got %v, the worst pair has %v", got, worst)
		}
		if got > math.Min(epsilon, alpha*epsilon*epsilon/8)*(1+1e-10) {
			t.Fatalf("got %v, above ε or αε²/8", got)
		}
		if pure := pureRDP(alpha, epsilon); got > pure {
			t.Fatalf("got %v, any ε-private release has %v", got, pure)
		}
	})
	if d := boundedRangeRDP(1.5, 1e-130); !(d > 0) {
		t.Errorf("a tiny range: %v", d)
	}
}

// TestResponses: the losses of randomized responses are a law under B and, times
// e^loss, under A; taking fewer, larger ones never makes the profile smaller.
func TestResponses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pure := map[float64]float64{}
		total := 0.0
		for range rapid.IntRange(1, 3).Draw(t, "kinds") {
			epsilon, count := logRange(0.01, 1).Draw(t, "epsilon"), math.Floor(logRange(1, 300).Draw(t, "count"))
			pure[epsilon] += count
			total += epsilon * count
		}
		atoms, reach, grouped := responses(pure, total)
		if len(atoms) > pairMostAtoms {
			t.Fatalf("%d losses", len(atoms))
		}
		var a, b float64
		for _, at := range atoms {
			a += math.Exp(at.logWeight + at.loss)
			b += math.Exp(at.logWeight)
			if math.Abs(at.loss) > reach*(1+1e-12) {
				t.Fatalf("loss %v beyond %v", at.loss, reach)
			}
		}
		same(t, "law under A", a, 1)
		same(t, "law under B", b, 1)
		// At least the exact second moment of the ratio, Π E_B r².
		exact, got := 0.0, 0.0
		for epsilon, count := range pure {
			exact += count * math.Log((math.Exp(2*epsilon)+math.Exp(-epsilon))/(1+math.Exp(epsilon)))
		}
		for _, at := range atoms {
			got += math.Exp(at.logWeight + 2*at.loss - exact)
		}
		atMost(t, "moment", 1, got)
		if !grouped {
			same(t, "moment", 1, got)
		}
	})
}

// TestApproximate: δ comes off first. The exact δ(ε) of (ε, δ) releases, alone and
// on a sample, is never above what is claimed.
func TestApproximate(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		e0, d0 := rapid.Float64Range(0, 2).Draw(t, "epsilon"), logRange(1e-8, 0.1).Draw(t, "delta")
		n := rapid.IntRange(2, 100).Draw(t, "n")
		m := rapid.IntRange(1, n-1).Draw(t, "m")
		q := float64(m) / float64(n)
		one := privacy.ApproxDP{Epsilon: e0, Delta: d0}
		truth := 1 / (1 + math.Exp(-e0))
		// Outcomes: leaks of P and of Q, and the response.
		p := []float64{d0, 0, (1 - d0) * truth, (1 - d0) * (1 - truth)}
		r := []float64{0, d0, (1 - d0) * (1 - truth), (1 - d0) * truth}
		mix := make([]float64, 4)
		for i := range mix {
			mix[i] = q*p[i] + (1-q)*r[i]
		}
		profile := func(p, r []float64, epsilon float64) (delta float64) {
			for i := range p {
				delta += math.Max(0, p[i]-math.Exp(epsilon)*r[i])
			}
			return delta
		}
		for _, a := range []Accountant{Pure{}, ZCDP{}, RDP{}} {
			for _, epsilon := range []float64{0, 0.1, 0.5, 1, 3} {
				if got, want := mustLoss(outer, a, one).Delta(epsilon), profile(p, r, epsilon); got < want*(1-1e-12)-1e-15 {
					t.Fatalf("%v: δ(%v) = %v, exact is %v", a, epsilon, got, want)
				}
				if a == Accountant(ZCDP{}) {
					continue
				}
				sample := privacy.PoissonSampled{Rate: q, Of: one}
				want := math.Max(profile(mix, r, epsilon), profile(r, mix, epsilon))
				if got := mustLoss(outer, a, sample).Delta(epsilon); got < want*(1-1e-12)-1e-15 {
					t.Fatalf("%v, sampled: δ(%v) = %v, exact is %v", a, epsilon, got, want)
				}
				// One of the n records may show, if it is among the m.
				fixed, err := a.Loss(privacy.FixedSampled{M: m, N: n, Of: one}, privacy.ReplaceOne)
				if err != nil {
					t.Fatal(err)
				}
				if got := fixed.Delta(epsilon); got < want*(1-1e-12)-1e-15 {
					t.Fatalf("%v, %d of %d: δ(%v) = %v, exact is %v", a, m, n, epsilon, got, want)
				}
			}
		}
		// Beside others, a plan costs what the rest costs at the δ that is left.
		rest := privacy.Composed{privacy.Gaussian{Sigma: 3}, privacy.PureDP{Epsilon: e0 + 1e-9}}
		plan := privacy.Composed{privacy.Gaussian{Sigma: 3}, privacy.ApproxDP{Epsilon: e0 + 1e-9, Delta: d0}}
		for _, a := range []Accountant{ZCDP{}, RDP{}} {
			if got, want := mustLoss(outer, a, plan).Epsilon(1.5*d0), mustLoss(outer, a, rest).Epsilon(0.5*d0); math.Abs(got/want-1) > 1e-6 {
				t.Fatalf("%v: ε = %v, want %v", a, got, want)
			}
			if got := mustLoss(outer, a, plan).Epsilon(0.9 * d0); !math.IsInf(got, 1) {
				t.Fatalf("%v: ε = %v at less than the δ that is spent", a, got)
			}
		}
		gauss := privacy.Composed{privacy.Gaussian{Sigma: 3}, privacy.ApproxDP{Delta: d0}}
		if got, want := mustLoss(outer, GDP{}, gauss).Epsilon(1.5*d0), mustLoss(outer, GDP{}, privacy.Gaussian{Sigma: 3}).Epsilon(0.5*d0); math.Abs(got/want-1) > 1e-6 {
			t.Fatalf("gdp: ε = %v, want %v", got, want)
		}
	})
}

// TestLeaksRefused: a number that stands for a cost without a δ is not given for a
// release that has one.
func TestLeaksRefused(t *testing.T) {
	leak := privacy.ApproxDP{Epsilon: 1, Delta: 1e-6}
	for _, e := range []privacy.Event{leak, privacy.Composed{privacy.PureDP{Epsilon: 1}, privacy.Repeated{Count: 2, Of: leak}}, privacy.PoissonSampled{Rate: 0.1, Of: leak}} {
		for _, c := range []Currency{PureCurrency{}, ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{Orders: []float64{8}}} {
			_, err := c.cost(e, privacy.AddRemove)
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) {
				t.Errorf("%v of %v: %v", c, e, err)
			}
		}
	}
	if _, err := (RDP{}).Divergence(privacy.ApproxDP{Epsilon: 1}, privacy.AddRemove, 8); err != nil {
		t.Errorf("without a δ: %v", err)
	}
}

// TestPoissonReplaceIsCovered: a noisy sum on a Poisson sample of up to three rows, one of
// which is replaced. Noise is relative to the sensitivity under replace-one, 2 for
// rows between −1 and 1, and the sample's size varies.
func TestPoissonReplaceIsCovered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.Float64Range(0.05, 0.9).Draw(t, "q")
		sigma, alpha := logRange(0.7, 4).Draw(t, "sigma"), rapid.Float64Range(1.1, 8).Draw(t, "alpha")
		value := rapid.SampledFrom([]float64{-1, 0, 0.5, 1})
		others := rapid.SliceOfN(value, 0, 2).Draw(t, "others")
		law := func(first float64) []float64 {
			return onGrid(func(z float64) float64 {
				total := 0.0
				values := append([]float64{first}, others...)
				for set := range 1 << len(values) {
					center, weight := 0.0, 1.0
					for i, v := range values {
						if set>>i&1 == 1 {
							center += v / 2
							weight *= q
						} else {
							weight *= 1 - q
						}
					}
					total += weight * normalDensity((z-center)/sigma) / sigma
				}
				return total
			})
		}
		bound, err := RDP{}.Divergence(privacy.PoissonSampled{Rate: q, Of: privacy.Gaussian{Sigma: sigma}}, privacy.ReplaceOne, alpha)
		if err != nil {
			t.Fatal(err)
		}
		covered(t, law(value.Draw(t, "x")), law(value.Draw(t, "x'")), alpha, gridStep, bound)
	})
}

// TestPoissonReplaceIsFixed: under replace-one a Poisson sample costs what a sample of a
// fixed size costs, by every accountant.
func TestPoissonReplaceIsFixed(t *testing.T) {
	for _, of := range []privacy.Event{
		privacy.Gaussian{Sigma: 1.3},
		privacy.Laplace{Scale: 2},
		privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Select{Epsilon: 0.4}},
		privacy.Composed{privacy.ApproxDP{Epsilon: 0.2, Delta: 1e-7}, privacy.PureDP{Epsilon: 0.1}},
	} {
		for _, a := range []Accountant{Pure{}, RDP{}, PLD{}, Best{}} {
			poisson, err := a.Loss(privacy.Repeated{Count: 20, Of: privacy.PoissonSampled{Rate: 0.125, Of: of}}, privacy.ReplaceOne)
			fixed, err2 := a.Loss(privacy.Repeated{Count: 20, Of: privacy.FixedSampled{M: 8, N: 64, Of: of}}, privacy.ReplaceOne)
			if (err == nil) != (err2 == nil) {
				t.Errorf("%v of %v: %v, fixed %v", a, of, err, err2)
			}
			if err != nil || err2 != nil {
				continue
			}
			if x, y := poisson.Epsilon(1e-5), fixed.Epsilon(1e-5); math.Abs(x-y) > 1e-9*y {
				t.Errorf("%v of %v: ε = %v, fixed %v", a, of, x, y)
			}
			if !slices.ContainsFunc(Basis(poisson), func(th Theorem) bool { return th.Anchor == "poisson-replace" }) {
				t.Errorf("%v of %v: the figure does not say that it rests on poisson-replace", a, of)
			}
		}
	}
}

// TestForwardDifferences: for Gaussian noise on a sample of fixed size under replace-one our
// figure is never above Theorem 27 of Wang, Balle, Kasiviswanathan 2019, which bounds the
// even orders by forward differences of the moments e^{(j−1)D_j} = e^{j(j−1)/(2σ²)}:
//
//	1/(α−1) ln[ 1 + s² C(α,2) min(4(e^{1/σ²} − 1), 2e^{1/σ²})
//	              + 4 Σ_{j≥3} s^j C(α,j) √(B(2⌊j/2⌋)·B(2⌈j/2⌉)) ],  B(l) = Σ_i (−1)^{l−i} C(l,i) e^{i(i−1)/(2σ²)}
//
// The theorem asks for the exact moments of a pair, and there the integral is tighter.
func TestForwardDifferences(t *testing.T) {
	const precision = 400 // bits: the differences cancel
	float := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	for _, c := range []struct {
		m, n  int
		sigma float64
	}{{1, 10, 4}, {1, 100, 2}, {1, 2, 8}, {1, 1000, 1}, {3, 10, 1}} {
		s := float64(c.m) / float64(c.n)
		base := float(1) // e^{1/(2σ²)}, by its series
		for x, term, k := 1/(2*c.sigma*c.sigma), float(1), 1.0; k < 120; k++ {
			term.Mul(term, float(x)).Quo(term, float(k))
			base.Add(base, term)
		}
		moment := func(i int) *big.Float { // base^{i(i−1)}
			v := float(1)
			for range i * (i - 1) {
				v.Mul(v, base)
			}
			return v
		}
		difference := func(l int) float64 {
			total := float(0)
			for i := range l + 1 {
				term := moment(i)
				term.Mul(term, new(big.Float).SetPrec(precision).SetInt(new(big.Int).Binomial(int64(l), int64(i))))
				if (l-i)%2 == 1 {
					term.Neg(term)
				}
				total.Add(total, term)
			}
			v, _ := total.Float64()
			return v
		}
		for alpha := 2; alpha <= 16; alpha++ {
			e := math.Exp(1 / (c.sigma * c.sigma))
			total := s * s * binomial(alpha, 2) * math.Min(4*(e-1), 2*e)
			for j := 3; j <= alpha; j++ {
				total += 4 * math.Pow(s, float64(j)) * binomial(alpha, j) * math.Sqrt(difference(j-j%2)*difference(j+j%2))
			}
			theirs := math.Log1p(total) / float64(alpha-1)
			ours, err := RDP{}.Divergence(privacy.FixedSampled{M: c.m, N: c.n, Of: privacy.Gaussian{Sigma: c.sigma}}, privacy.ReplaceOne, float64(alpha))
			if err != nil || !(ours > 0 && ours <= theirs) {
				t.Errorf("%d of %d, σ %v, order %d: %v, %v; Theorem 27 has %v", c.m, c.n, c.sigma, alpha, ours, err, theirs)
			}
		}
	}
}

func binomial(n, k int) float64 {
	v, _ := new(big.Float).SetInt(new(big.Int).Binomial(int64(n), int64(k))).Float64()
	return v
}
