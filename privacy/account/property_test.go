package account

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

// logRange draws from a range evenly in the logarithm.
func logRange(lo, hi float64) *rapid.Generator[float64] {
	return rapid.Map(rapid.Float64Range(math.Log(lo), math.Log(hi)), math.Exp)
}

// anyPrivate draws an event that some accountant supports under add-or-remove.
func anyPrivate() *rapid.Generator[privacy.Event] {
	gauss := rapid.Map(logRange(0.3, 300), func(s float64) privacy.Event { return privacy.Gaussian{Sigma: s} })
	lap := rapid.Map(logRange(0.3, 300), func(b float64) privacy.Event { return privacy.Laplace{Scale: b} })
	pure := rapid.Map(logRange(1e-3, 3), func(e float64) privacy.Event { return privacy.PureDP{Epsilon: e} })
	search := rapid.Custom(func(t *rapid.T) privacy.Event {
		return privacy.AboveThreshold{Threshold: logRange(0.3, 300).Draw(t, "threshold"), Query: logRange(0.3, 300).Draw(t, "query"), Max: 3}
	})
	choice := rapid.Map(logRange(1e-3, 3), func(e float64) privacy.Event { return privacy.Select{Epsilon: e} })
	approx := rapid.Map(logRange(1e-3, 3), func(e float64) privacy.Event { return privacy.ApproxDP{Epsilon: e, Delta: 1e-14} })
	sampledOf := func(of *rapid.Generator[privacy.Event]) *rapid.Generator[privacy.Event] {
		return rapid.Custom(func(t *rapid.T) privacy.Event {
			return privacy.PoissonSampled{Rate: logRange(1e-5, 1).Draw(t, "rate"), Of: of.Draw(t, "of")}
		})
	}
	leaf := rapid.OneOf(gauss, lap, pure, search, choice, approx, sampledOf(rapid.OneOf(gauss, lap, pure, search, choice, approx)))
	return rapid.Custom(func(t *rapid.T) privacy.Event {
		parts := make(privacy.Composed, rapid.IntRange(1, 3).Draw(t, "parts"))
		for i := range parts {
			parts[i] = privacy.Repeated{Count: rapid.IntRange(1, 50).Draw(t, "count"), Of: leaf.Draw(t, "leaf")}
		}
		return parts
	})
}

// atMost fails if a is above b by more than rounding.
func atMost(t *rapid.T, what string, a, b float64) {
	t.Helper()
	if !(a <= b*(1+1e-9)+1e-12) {
		t.Fatalf("%s: %.15g is above %.15g", what, a, b)
	}
}

func same(t *rapid.T, what string, a, b float64) {
	t.Helper()
	atMost(t, what, a, b)
	atMost(t, what, b, a)
}

// supporting lists the losses of every accountant that knows e.
func supporting(t *rapid.T, e privacy.Event) map[string]Loss {
	losses := map[string]Loss{}
	for _, a := range append([]Accountant{RDP{Classic: true}, ZCDP{Classic: true}, RDP{Orders: whole(2, 64)}}, accountants...) {
		if a == Accountant(PLD{}) {
			continue // it has its own tolerances: pld_test.go
		}
		l, err := a.Loss(e, privacy.AddRemove)
		var unsupported *UnsupportedError
		switch {
		case err == nil:
			name := a.String()
			switch a := a.(type) {
			case RDP:
				if a.Classic {
					name += " classic"
				} else if a.Orders != nil {
					name += " coarse"
				}
			case ZCDP:
				if a.Classic {
					name += " classic"
				}
			}
			losses[name] = l
		case !errors.As(err, &unsupported):
			t.Fatal(err)
		}
	}
	return losses
}

func TestMoreNoiseSmallerRateFewerStepsCostNoMore(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	draws := 0
	rapid.Check(t, func(t *rapid.T) {
		if draws++; draws > 15 && race.Enabled || draws > 40 {
			return
		}
		sigma, q := logRange(0.3, 300).Draw(t, "sigma"), logRange(1e-6, 1).Draw(t, "q")
		steps := rapid.IntRange(1, 1e6).Draw(t, "steps")
		delta := logRange(1e-12, 0.1).Draw(t, "delta")
		more := rapid.Float64Range(1, 3).Draw(t, "more")
		make := [](func(sigma, q float64, steps int) privacy.Event){
			func(s, q float64, n int) privacy.Event { return sampled(q, s, n) },
			func(s, _ float64, n int) privacy.Event {
				return privacy.Repeated{Count: n, Of: privacy.Gaussian{Sigma: s}}
			},
			func(s, q float64, n int) privacy.Event {
				return privacy.Repeated{Count: n, Of: privacy.PoissonSampled{Rate: q, Of: privacy.PureDP{Epsilon: 1 / s}}}
			},
		}[rapid.IntRange(0, 2).Draw(t, "kind")]
		base := supporting(t, make(sigma, q, steps))
		for what, e := range map[string]privacy.Event{
			"noise": make(sigma*more, q, steps),
			"rate":  make(sigma, q/more, steps),
			"steps": make(sigma, q, int(float64(steps)/more)),
		} {
			for name, less := range supporting(t, e) {
				if name == "best" && what == "rate" && q == 1 {
					continue // the whole table has an exact formula, a sample a bound
				}
				if whole, ok := base[name]; ok {
					limit := whole.Epsilon(delta)
					if name == "best" { // PLD's grid, where that is the least, has a bracket
						limit += 2e-3 * math.Max(1, limit)
					}
					atMost(t, what+" "+name, less.Epsilon(delta), limit)
					if name != "best" { // of δ a bracket in ε is more
						atMost(t, what+" "+name+" δ", less.Delta(1), whole.Delta(1))
					}
				}
			}
		}
	})
}

func TestAlgebraOfEvents(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyPrivate().Draw(t, "a"), anyPrivate().Draw(t, "b")
		n := rapid.IntRange(0, 4).Draw(t, "n")
		delta := logRange(1e-10, 0.1).Draw(t, "delta")
		unrolled := privacy.Composed{}
		for range n {
			unrolled = append(unrolled, a)
		}
		for what, pair := range map[string][2]privacy.Event{
			"order":              {privacy.Composed{a, b}, privacy.Composed{b, a}},
			"nesting":            {privacy.Composed{a, privacy.Composed{b}}, privacy.Composed{a, b}},
			"repetition":         {privacy.Repeated{Count: n, Of: a}, unrolled},
			"rate 1":             {privacy.PoissonSampled{Rate: 1, Of: a}, a},
			"nothing":            {privacy.Composed{a, privacy.Composed{}, privacy.Repeated{Of: b}}, a},
			"nothing of samples": {privacy.Composed{a, privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{}}}, a},
		} {
			left, right := supporting(t, pair[0]), supporting(t, pair[1])
			if len(left) != len(right) {
				t.Fatalf("%s: supported by %d and %d accountants", what, len(left), len(right))
			}
			for name, l := range left {
				same(t, what+" "+name, l.Epsilon(delta), right[name].Epsilon(delta))
				same(t, what+" "+name+" δ", l.Delta(0.5), right[name].Delta(0.5))
			}
		}
	})
}

func TestOrderOfAccountants(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyPrivate().Draw(t, "event")
		delta, epsilon := logRange(1e-12, 0.5).Draw(t, "delta"), logRange(1e-3, 30).Draw(t, "epsilon")
		losses := supporting(t, e)
		best := losses["best"]
		if best == nil {
			t.Fatalf("best knows nothing of %v", e)
		}
		for name, l := range losses {
			atMost(t, "best below "+name, best.Epsilon(delta), l.Epsilon(delta))
			atMost(t, "best below "+name+" δ", best.Delta(epsilon), l.Delta(epsilon))
			// ε(δ) and δ(ε) tell the same story, from the safe side.
			if eps := l.Epsilon(delta); eps > 0 && !math.IsInf(eps, 1) && name != "pure" && name != "best" {
				if d := l.Delta(eps); d > delta*(1+1e-6) {
					t.Fatalf("%s: δ(ε(%g)) = %g", name, delta, d)
				}
			}
			if l.Epsilon(1) != 0 || l.Delta(math.Inf(1)) > 1 || l.Delta(math.NaN()) != 1 || !math.IsInf(l.Epsilon(math.NaN()), 1) {
				t.Fatalf("%s: at the edges: %v, %v, %v", name, l.Epsilon(1), l.Delta(math.NaN()), l.Epsilon(math.NaN()))
			}
		}
		atMost(t, "rdp below its classic conversion", losses["rdp"].Epsilon(delta), losses["rdp classic"].Epsilon(delta))
		atMost(t, "dense below coarse orders", losses["rdp"].Epsilon(delta), losses["rdp coarse"].Epsilon(delta)*(1+2e-5))
		if z := losses["zcdp"]; z != nil {
			atMost(t, "zcdp below its classic conversion", z.Epsilon(delta), losses["zcdp classic"].Epsilon(delta))
			atMost(t, "rdp below zcdp", losses["rdp"].Epsilon(delta), z.Epsilon(delta)*(1+1e-4))
		}
		if g := losses["gdp"]; g != nil {
			atMost(t, "exact below zcdp", g.Epsilon(delta), losses["zcdp"].Epsilon(delta))
			atMost(t, "exact below zcdp δ", g.Delta(epsilon), losses["zcdp"].Delta(epsilon))
		}
	})
}

// TestRepetitionIsCheap: ten million steps cost what one costs to account.
func TestRepetitionIsCheap(t *testing.T) {
	one := mustDivergence(t, sampled(1e-4, 0.8, 1), 2)
	many := mustDivergence(t, privacy.Repeated{Count: 1e3, Of: sampled(1e-4, 0.8, 1e4)}, 2)
	if math.Abs(many-1e7*one) > 1e-12*many {
		t.Errorf("ten million steps: %v, one: %v", many, one)
	}
}

func TestSameBatch(t *testing.T) {
	g := privacy.Gaussian{Sigma: 1}
	together := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{g, g}}
	apart := privacy.Repeated{Count: 2, Of: privacy.PoissonSampled{Rate: 0.1, Of: g}}
	for _, order := range []float64{1.5, 2, 3, 8, 32.5} {
		if a, b := mustDivergence(t, together, order), mustDivergence(t, apart, order); !(a > b*1.01) {
			t.Errorf("order %v: two releases of one sample cost %v, of two samples %v", order, a, b)
		}
	}
	collapsed := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: math.Sqrt(0.5)}}
	if a, b := mustDivergence(t, together, 4.5), mustDivergence(t, collapsed, 4.5); math.Abs(a-b) > 1e-11*b {
		t.Errorf("two unit Gaussians cost %v, one of half the variance %v", a, b)
	}
}

// TestSampledGaussianOracle compares with values by mpmath in 50 digits, from the
// plain expectation and the plain binomial sum (testdata/sampled-gaussian.json).
func TestSampledGaussianOracle(t *testing.T) {
	data, err := os.ReadFile("testdata/sampled-gaussian.json")
	if err != nil {
		t.Fatal(err)
	}
	var values []struct{ Q, Sigma, Alpha, Value float64 }
	if err := json.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	if len(values) < 100 {
		t.Fatalf("only %d values", len(values))
	}
	for _, v := range values {
		got := sampledGaussianRDP(v.Alpha, v.Q, v.Sigma)
		if over := got/v.Value - 1; !(over >= 0 && over < 1e-10) {
			t.Errorf("q=%v σ=%v α=%v: got %.17g, want %.17g: off by %.2g", v.Q, v.Sigma, v.Alpha, got, v.Value, over)
		}
	}
}

// TestBrokenOrders compares broken orders with Simpson's rule on another formula,
// ln E_{mixture} (ratio)^{α−1}, where nothing is subtracted from the power.
func TestBrokenOrders(t *testing.T) {
	for _, c := range []struct{ q, sigma, alpha float64 }{
		{0.3, 0.7, 1.3}, {0.5, 1, 2.7}, {0.05, 0.5, 3.14}, {0.9, 2, 10.1}, {0.2, 0.35, 6.6}, {0.999, 1.5, 1.9}, {0.01, 0.5, 24.75},
	} {
		if got, want := sampledGaussianRDP(c.alpha, c.q, c.sigma), simpsonRDP(c.alpha, c.q, c.sigma); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%+v: got %.12g, Simpson says %.12g", c, got, want)
		}
	}
}

func simpsonRDP(alpha, q, sigma float64) float64 {
	const n = 200_000
	lo, hi := -14*sigma, alpha+14*sigma
	h := (hi - lo) / n
	total := newLogSum()
	for i := 0; i <= n; i++ {
		z := lo + h*float64(i)
		ratio := math.Log(1 - q + q*math.Exp((2*z-1)/(2*sigma*sigma)))
		weight := 2.0 + 2*float64(i%2)
		if i == 0 || i == n {
			weight = 1
		}
		total.add(math.Log(weight) - z*z/(2*sigma*sigma) + alpha*ratio)
	}
	return (total.value() + math.Log(h/3/sigma/math.Sqrt(2*math.Pi))) / (alpha - 1)
}

// TestWholeAndBrokenAgree: the sum and the integral are the same function.
func TestWholeAndBrokenAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, sigma := logRange(1e-7, 0.999).Draw(t, "q"), logRange(0.2, 1e4).Draw(t, "sigma")
		alpha := float64(rapid.IntRange(2, 64).Draw(t, "alpha"))
		a, b := sampledGaussianWhole(alpha, q, sigma), sampledGaussianBroken(alpha, q, sigma)
		if math.Abs(a-b) > 5e-11*a {
			t.Fatalf("sum %.15g, integral %.15g", a, b)
		}
		broken := alpha - rapid.Float64Range(0.01, 0.99).Draw(t, "below")
		if chord, exact := sampledGaussianChord(broken, q, sigma), sampledGaussianBroken(broken, q, sigma); chord < exact*(1-1e-10) {
			t.Fatalf("the chord %v is below the curve %v", chord, exact)
		}
		if unsampled := gaussianRDP(alpha, sigma); a > unsampled*(1+1e-10) {
			t.Fatalf("a sample costs %v, the whole table %v", a, unsampled)
		}
	})
}

// TestBestOrder: the search finds what looking at every order of the grid finds.
func TestBestOrder(t *testing.T) {
	race.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		e := sampled(logRange(1e-4, 1).Draw(t, "q"), logRange(0.4, 50).Draw(t, "sigma"), rapid.IntRange(1, 1e5).Draw(t, "steps"))
		delta := logRange(1e-10, 1e-2).Draw(t, "delta")
		fast, _ := RDP{}.Loss(e, privacy.AddRemove)
		grid := defaultOrders()
		slow, _ := RDP{Orders: grid[:len(grid)-6*64]}.Loss(e, privacy.AddRemove)
		atMost(t, "ε by search", fast.Epsilon(delta), slow.Epsilon(delta))
		atMost(t, "δ by search", fast.Delta(2), slow.Delta(2))
	})
}

// TestRange: from tiny to huge ε, the default grid is close to the best order of
// all, which zCDP finds for unsampled Gaussians.
func TestRange(t *testing.T) {
	for _, want := range []float64{0.002, 0.01, 0.1, 1, 10, 100, 1000} {
		b := privacy.Budget{Epsilon: want, Delta: 1e-8, Adjacency: privacy.AddRemove}
		sigma, err := Calibrate(ZCDP{}, b, func(s float64) privacy.Event { return privacy.Gaussian{Sigma: s} })
		if err != nil {
			t.Fatal(err)
		}
		if got := mustLoss(t, RDP{}, privacy.Gaussian{Sigma: sigma}).Epsilon(b.Delta); got > want*(1+1e-4) {
			t.Errorf("ε = %v by the best order, %v by the grid", want, got)
		}
		if exact := mustLoss(t, GDP{}, privacy.Gaussian{Sigma: sigma}).Epsilon(b.Delta); exact > want {
			t.Errorf("ε = %v by zCDP and %v exactly", want, exact)
		}
	}
}

// TestZCDPBoundsTheCurve: ρα bounds the Rényi divergence of every order, and for the
// first three events no smaller ρ does.
func TestZCDPBoundsTheCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := logRange(1e-4, 1e3).Draw(t, "v")
		alpha := 1 + logRange(1e-3, 1e5).Draw(t, "t")
		const tight = 3
		for i, e := range []privacy.Event{privacy.Laplace{Scale: v}, privacy.PureDP{Epsilon: v}, privacy.Gaussian{Sigma: v},
			privacy.Select{Epsilon: v}, privacy.AboveThreshold{Threshold: v, Query: 2 * v, Max: 1}} {
			rho, err := ZCDP{}.rho(e, privacy.AddRemove)
			if err != nil {
				t.Fatal(err)
			}
			d, _ := RDP{}.Divergence(e, privacy.AddRemove, alpha)
			if d > alpha*rho*(1+1e-10) {
				t.Fatalf("%v: D_%v = %v above ρα = %v", e, alpha, d, alpha*rho)
			}
			if near, _ := (RDP{}).Divergence(e, privacy.AddRemove, 1+1e-7); i < tight && near < rho*(1-1e-3) {
				t.Fatalf("%v: D_1 = %v, ρ = %v", e, near, rho)
			}
		}
	})
}

// TestPureCurves compares the stable forms with the textbook ones, and with
// randomized response, which is the worst ε-private release.
func TestPureCurves(t *testing.T) {
	for _, alpha := range []float64{1.1, 2, 3.5, 17, 64} {
		for _, v := range []float64{0.3, 1, 2.5} {
			eps := 1 / v
			text := math.Log(alpha/(2*alpha-1)*math.Exp((alpha-1)*eps)+(alpha-1)/(2*alpha-1)*math.Exp(-alpha*eps)) / (alpha - 1)
			if got := laplaceRDP(alpha, v); math.Abs(got-text) > 1e-10*text {
				t.Errorf("Laplace α=%v b=%v: %v, want %v", alpha, v, got, text)
			}
			p := math.Exp(v) / (1 + math.Exp(v))
			rr := math.Log(math.Pow(p, alpha)*math.Pow(1-p, 1-alpha)+math.Pow(1-p, alpha)*math.Pow(p, 1-alpha)) / (alpha - 1)
			if got := pureRDP(alpha, v); math.Abs(got-rr) > 1e-10*rr {
				t.Errorf("pure α=%v ε=%v: %v, want %v", alpha, v, got, rr)
			}
		}
	}
	if d := pureRDP(1e5, 700); d > 700*(1+1e-10) || d < 699 {
		t.Errorf("a pure release of 700 at a high order: %v", d)
	}
	// δ of randomized response.
	for _, eps := range []float64{0, 0.5, 0.999} {
		p := math.Exp(1.0) / (1 + math.Exp(1.0))
		if got, want := mustLoss(t, Pure{}, privacy.PureDP{Epsilon: 1}).Delta(eps), p-math.Exp(eps)*(1-p); math.Abs(got-want) > 1e-12 {
			t.Errorf("δ(%v) = %v, want %v", eps, got, want)
		}
	}
}

func TestExactGaussianAtTheEdges(t *testing.T) {
	// Tiny μ and tiny δ, where the textbook formula cancels or underflows:
	// values by mpmath in 500 digits.
	for _, c := range []struct{ mu, eps, delta float64 }{
		{1e-3, 1e-3, 8.33571321252084935e-05},
		{1e-6, 1e-6, 8.33155122454253923e-08},
		{0.01, 0.3, 1.89603956793898362e-201},
		{50, 1000, 0.999999680326507737},
		{1, 30, 4.7093263180975222e-193},
		{30, 1, 1},
	} {
		got := gdpLoss{mu: c.mu}.Delta(c.eps)
		if over := got/c.delta - 1; !(over >= 0 && over < 1e-11) {
			t.Errorf("μ=%v ε=%v: %.17g, want %.17g: off by %.2g", c.mu, c.eps, got, c.delta, over)
		}
	}
	if e := (gdpLoss{mu: 1}).Epsilon(1e-300); !(e > 36 && e < 38) {
		t.Errorf("at δ = 1e-300: ε = %v", e)
	}
}

func TestNonPrivateAndNothing(t *testing.T) {
	look := privacy.NonPrivate{Why: "test"}
	g := privacy.Gaussian{Sigma: 1}
	for _, a := range append(accountants, RDP{Orders: []float64{2}}, RDP{Classic: true}, ZCDP{Classic: true}) {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			for _, e := range []privacy.Event{look, privacy.Composed{g, look}, privacy.Repeated{Count: 3, Of: look}, privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{g, look}}} {
				l, err := a.Loss(e, adj)
				if err != nil || !math.IsInf(l.Epsilon(0.1), 1) || l.Delta(1e9) != 1 {
					t.Errorf("%v of %v: %v, %v", a, e, l, err)
				}
			}
			for _, e := range []privacy.Event{privacy.Composed{}, privacy.Repeated{Of: look}, privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{}}} {
				l, err := a.Loss(e, adj)
				if err != nil || l.Epsilon(0) != 0 || l.Delta(0) != 0 {
					t.Errorf("%v of %v: %v, %v", a, e, l, err)
				}
			}
		}
	}
}

// TestRoughSearch: the best order is a kink at 2, between orders that a stride passes over.
func TestRoughSearch(t *testing.T) {
	e := privacy.PoissonSampled{Rate: 0.2865047968601901, Of: privacy.AboveThreshold{Threshold: 0.39777251796661167, Query: 0.4723665527410147, Max: 3}}
	l := mustLoss(t, RDP{Classic: true}, e)
	const delta = 0.4723665527410147
	if got := l.Delta(l.Epsilon(delta)); got > delta*(1+1e-6) {
		t.Errorf("δ(ε(%v)) = %v", delta, got)
	}
}

// TestDeepEvents: a stored event may nest as deep as the codec reads. Its answer takes
// work in proportion to its size, not 2³² visits.
func TestDeepEvents(t *testing.T) {
	for name, wrap := range map[string]func(privacy.Event) privacy.Event{
		"poisson":  func(e privacy.Event) privacy.Event { return privacy.PoissonSampled{Rate: 0.5, Of: e} },
		"fixed":    func(e privacy.Event) privacy.Event { return privacy.FixedSampled{M: 1, N: 2, Of: e} },
		"repeated": func(e privacy.Event) privacy.Event { return privacy.Repeated{Count: 1, Of: e} },
		"composed": func(e privacy.Event) privacy.Event { return privacy.Composed{e} },
	} {
		for _, of := range []privacy.Event{privacy.Laplace{Scale: 1}, privacy.NonPrivate{}, privacy.Composed{}} {
			e := of
			for range 32 {
				e = wrap(e)
			}
			for _, a := range accountants {
				for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
					l, err := a.Loss(e, adj)
					var unsupported *UnsupportedError
					switch {
					case err != nil && !errors.As(err, &unsupported):
						t.Errorf("%v of 32 × %s of %v under %v: %v", a, name, of, adj, err)
					case err == nil && of == privacy.Event(privacy.NonPrivate{}) && !math.IsInf(l.Epsilon(0.1), 1):
						t.Errorf("%v of 32 × %s of a look costs %v", a, name, l.Epsilon(0.1))
					}
				}
			}
		}
	}
}

func TestUnsupported(t *testing.T) {
	g, lap := privacy.Gaussian{Sigma: 1}, privacy.Laplace{Scale: 1}
	sg := privacy.PoissonSampled{Rate: 0.1, Of: g}
	mixed := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{g, lap}}
	for _, c := range []struct {
		a     Accountant
		e     privacy.Event
		adj   privacy.Adjacency
		names privacy.Event
		says  string
	}{
		{Pure{}, privacy.Composed{lap, g}, privacy.AddRemove, g, "not ε-private"},
		{Pure{}, sg, privacy.AddRemove, g, "not ε-private"},
		{ZCDP{}, privacy.Composed{g, sg}, privacy.AddRemove, sg, "sampling"},
		{GDP{}, privacy.Composed{g, lap}, privacy.AddRemove, lap, "Gaussian"},
		{GDP{}, sg, privacy.AddRemove, sg, "Gaussian"},
		{RDP{}, privacy.FixedSampled{M: 1, N: 10, Of: g}, privacy.AddRemove, privacy.FixedSampled{M: 1, N: 10, Of: g}, "replace-one or a Poisson sample"},
		// The neighbor's 10 records of 11 are not the neighbor's table.
		{RDP{}, privacy.Repeated{Count: 3, Of: privacy.FixedSampled{M: 10, N: 10, Of: g}}, privacy.AddRemove, privacy.FixedSampled{M: 10, N: 10, Of: g}, "replace-one or a Poisson sample"},
		{GDP{}, privacy.Composed{g, privacy.FixedSampled{M: 10, N: 10, Of: g}}, privacy.AddRemove, privacy.FixedSampled{M: 10, N: 10, Of: g}, "replace-one or a Poisson sample"},
		{Pure{}, privacy.FixedSampled{M: 1, N: 10, Of: lap}, privacy.AddRemove, privacy.FixedSampled{M: 1, N: 10, Of: lap}, "replace-one or a Poisson sample"},
		{ZCDP{}, privacy.FixedSampled{M: 1, N: 10, Of: g}, privacy.ReplaceOne, privacy.FixedSampled{M: 1, N: 10, Of: g}, "sampling"},
		{GDP{}, privacy.Composed{g, privacy.Select{Epsilon: 1}}, privacy.ReplaceOne, privacy.Select{Epsilon: 1}, "Gaussian"},
		{Pure{}, privacy.PoissonSampled{Rate: 0.5, Of: privacy.PoissonSampled{Rate: 0.1, Of: lap}}, privacy.AddRemove, privacy.PoissonSampled{Rate: 0.5, Of: privacy.PoissonSampled{Rate: 0.1, Of: lap}}, "sample of a sample"},
		{RDP{}, privacy.FixedSampled{M: 5, N: 10, Of: sg}, privacy.ReplaceOne, privacy.FixedSampled{M: 5, N: 10, Of: sg}, "sample of a sample"},
		{RDP{}, privacy.PoissonSampled{Rate: 0.5, Of: sg}, privacy.AddRemove, privacy.PoissonSampled{Rate: 0.5, Of: sg}, "sample of a sample"},
		{Best{}, privacy.FixedSampled{M: 1, N: 10, Of: mixed}, privacy.AddRemove, privacy.FixedSampled{M: 1, N: 10, Of: mixed}, "rdp: "},
	} {
		_, err := c.a.Loss(c.e, c.adj)
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) {
			t.Errorf("%v of %v under %v: %v", c.a, c.e, c.adj, err)
			continue
		}
		if !privacy.Equal(unsupported.Event, c.names) || unsupported.Adjacency != c.adj || unsupported.Accountant != c.a.String() ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%v of %v: names %v and says %q; want %v and %q", c.a, c.e, unsupported.Event, err, c.names, c.says)
		}
	}
	// At rate 1 there is no sampling to speak of, under either relation.
	full, err := RDP{}.Loss(privacy.PoissonSampled{Rate: 1, Of: g}, privacy.ReplaceOne)
	if err != nil || full.Epsilon(1e-5) != mustLoss(t, RDP{}, g).Epsilon(1e-5) {
		t.Errorf("a full batch under replace-one: %v", err)
	}
	for _, a := range accountants {
		var unsupported *UnsupportedError
		if _, err := a.Loss(nil, privacy.AddRemove); err == nil || errors.As(err, &unsupported) {
			t.Errorf("%v of nil: %v", a, err)
		}
		if _, err := a.Loss(privacy.Gaussian{}, privacy.AddRemove); err == nil || errors.As(err, &unsupported) {
			t.Errorf("%v of an invalid event: %v", a, err)
		}
		if _, err := a.Loss(g, 0); err == nil || errors.As(err, &unsupported) {
			t.Errorf("%v without a relation: %v", a, err)
		}
	}
}

// TestOneStepIsCovered compares with the exact δ of one sampled Gaussian release,
// in closed form and in both directions.
func TestOneStepIsCovered(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	tail := func(z, sigma float64) float64 { return math.Erfc(z/sigma/math.Sqrt2) / 2 }
	rapid.Check(t, func(t *rapid.T) {
		q, sigma := logRange(1e-3, 0.999).Draw(t, "q"), logRange(0.3, 10).Draw(t, "sigma")
		epsilon := logRange(1e-2, 5).Draw(t, "epsilon")
		// z at which the mixture's density is e^level times that of N(0, σ²).
		at := func(level float64) float64 { return sigma*sigma*math.Log(math.Expm1(level)/q+1) + 0.5 }
		z := at(epsilon)
		exact := (1-q)*tail(z, sigma) + q*tail(z-1, sigma) - math.Exp(epsilon)*tail(z, sigma)
		if math.Expm1(-epsilon) > -q {
			z = at(-epsilon)
			back := tail(-z, sigma) - math.Exp(epsilon)*((1-q)*tail(-z, sigma)+q*tail(1-z, sigma))
			exact = math.Max(exact, back)
		}
		l, err := Best{}.Loss(sampled(q, sigma, 1), privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Delta(epsilon); got < exact-1e-15 {
			t.Fatalf("δ(%v) = %v, exact is %v", epsilon, got, exact)
		}
	})
}

// TestBars: at or below what the best published RDP accountant says
// (dp_accounting 0.6), and P0's settings (soundness.md, S-0f).
func TestBars(t *testing.T) {
	for _, c := range []struct {
		q, sigma float64
		steps    int
		most     float64
	}{
		{0.01, 1.1, 10_000, 5.63201},
		{256.0 / 60_000, 1, 14_062, 3.07867},
		{1e-3, 0.6, 100_000, 6.87411},
		{1.0 / 469, 1, 4690, 1.0315},
		{1.0 / 390, 1, 1950, 0.9521},
	} {
		if got := mustLoss(t, RDP{}, sampled(c.q, c.sigma, c.steps)).Epsilon(1e-5); got > c.most {
			t.Errorf("%+v: ε = %v", c, got)
		}
	}
}

// TestExtremes: at the ends of float64 a cost is neither NaN nor 0, and more
// extreme noise still costs no more.
func TestExtremes(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		for _, v := range []float64{math.SmallestNonzeroFloat64, 1e-200, 1e-3, 1, 1e3, 1e200, math.MaxFloat64} {
			for _, leaf := range []privacy.Event{privacy.Gaussian{Sigma: v}, privacy.Laplace{Scale: v}, privacy.PureDP{Epsilon: v},
				privacy.Select{Epsilon: v}, privacy.AboveThreshold{Threshold: v, Query: 1, Max: 1}, privacy.AboveThreshold{Threshold: 1, Query: v, Max: 1},
				privacy.ApproxDP{Epsilon: v, Delta: 1e-300}, privacy.Composed{privacy.Gaussian{Sigma: v}, privacy.PureDP{Epsilon: 1}}} {
				for _, e := range []privacy.Event{
					leaf, privacy.FixedSampled{M: 1, N: math.MaxInt, Of: leaf}, privacy.FixedSampled{M: math.MaxInt - 1, N: math.MaxInt, Of: leaf},
					privacy.FixedSampled{M: 1, N: 2, Of: privacy.Repeated{Count: math.MaxInt, Of: leaf}}, privacy.Repeated{Count: math.MaxInt, Of: privacy.Repeated{Count: math.MaxInt, Of: leaf}},
					privacy.PoissonSampled{Rate: 0.5, Of: leaf}, privacy.PoissonSampled{Rate: math.SmallestNonzeroFloat64, Of: leaf},
					privacy.PoissonSampled{Rate: math.Nextafter(1, 0), Of: leaf},
				} {
					for _, a := range accountants {
						l, err := a.Loss(e, adj)
						if err != nil || a == Accountant(PLD{}) { // TestPLDExtremes
							continue
						}
						last := math.Inf(1)
						for _, delta := range []float64{0, math.SmallestNonzeroFloat64, 1e-300, 1e-10, 0.5, math.Nextafter(1, 0)} {
							eps := l.Epsilon(delta)
							if !(eps >= 0) || eps > last*(1+1e-9) {
								t.Errorf("%v of %v: ε(%v) = %v after %v", a, e, delta, eps, last)
							}
							last = eps
						}
						last = 1
						for _, epsilon := range []float64{0, math.SmallestNonzeroFloat64, 1e-10, 1, 1e10, math.MaxFloat64, math.Inf(1)} {
							delta := l.Delta(epsilon)
							if !(delta >= 0 && delta <= 1) || delta > last*(1+1e-9) {
								t.Errorf("%v of %v: δ(%v) = %v after %v", a, e, epsilon, delta, last)
							}
							last = delta
						}
						if l.Delta(0) == 0 {
							t.Errorf("%v of %v: δ(0) = 0", a, e)
						}
					}
					for _, order := range []float64{1.0000001, 1.5, 2, 1000, 12345.5} {
						d, err := RDP{}.Divergence(e, adj, order)
						if err == nil && !(d > 0) {
							t.Errorf("%v: D_%v = %v", e, order, d)
						}
					}
				}
			}
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range []string{"pure", "zcdp", "gdp", "rdp", "pld", "best"} {
		if a, err := ByName(name); err != nil || a.String() != name {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	if _, err := ByName("mog"); err == nil || !strings.Contains(err.Error(), "rdp") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestTheoremsHaveProofs(t *testing.T) {
	sections := map[string]bool{}
	for _, line := range strings.Split(Proofs, "\n") {
		if _, anchor, ok := strings.Cut(line, `<a id="`); ok {
			anchor, _, _ = strings.Cut(anchor, `"`)
			sections[anchor] = true
		}
	}
	for _, th := range theorems {
		if !sections[th.Anchor] {
			t.Errorf("PROOFS.md has no section %q", th.Anchor)
		}
		if !strings.Contains(Proofs, th.Title+"\n") {
			t.Errorf("PROOFS.md has no title %q", th.Title)
		}
		delete(sections, th.Anchor)
	}
	for anchor := range sections {
		t.Errorf("PROOFS.md has a section %q that no theorem names", anchor)
	}
	// Every test that PROOFS.md names exists.
	var source strings.Builder
	var files []string
	for _, dir := range []string{".", "../../data", "../../oracle/private", "../../run", "../../ledger", "../../study/tune"} {
		found, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(found) == 0 {
			t.Fatal(dir, err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(data)
	}
	for _, part := range strings.Split(Proofs, "`Test")[1:] {
		name, _, _ := strings.Cut(part, "`")
		if !strings.Contains(source.String(), "func Test"+name+"(") {
			t.Errorf("PROOFS.md names Test%s, which does not exist", name)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		e := anyPrivate().Draw(t, "event")
		for _, a := range accountants {
			l, err := a.Loss(e, privacy.AddRemove)
			if err == nil && len(Basis(l)) < 2 {
				t.Fatalf("%v of %v rests on %v alone", a, e, Basis(l))
			}
		}
	})
}

func TestBasis(t *testing.T) {
	anchors := func(e privacy.Event, a Accountant) string {
		var list []string
		for _, th := range Basis(mustLoss(t, a, e)) {
			list = append(list, th.Anchor)
		}
		return strings.Join(list, " ")
	}
	for _, c := range []struct {
		e    privacy.Event
		a    Accountant
		want string
	}{
		{sampled(0.1, 1, 10), RDP{}, "adjacency gaussian-collapse rdp-composition poisson-gaussian improved-conversion best-order"},
		{privacy.Gaussian{Sigma: 1}, GDP{}, "adjacency gaussian-collapse gaussian-exact"},
		{privacy.PoissonSampled{Rate: 0.1, Of: privacy.Laplace{Scale: 1}}, Pure{}, "adjacency pure-composition pure-laplace pure-delta poisson-pure"},
		{privacy.NonPrivate{}, Best{}, "adjacency non-private"},
		{privacy.Composed{}, Pure{}, "adjacency"},
	} {
		if got := anchors(c.e, c.a); got != c.want {
			t.Errorf("%v by %v: %q, want %q", c.e, c.a, got, c.want)
		}
	}
}

func TestLossesAreSafeForConcurrentUse(t *testing.T) {
	l := mustLoss(t, Best{}, sampled(0.01, 1.1, 1000))
	want := l.Epsilon(1e-5)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, delta := range []float64{1e-7, 1e-6, 1e-5} {
				if e := l.Epsilon(delta); delta == 1e-5 && e != want {
					t.Errorf("ε = %v, then %v", want, e)
				}
			}
		})
	}
	wg.Wait()
}

// rho is the ρ of an event of one cost.
func (a ZCDP) rho(e privacy.Event, adj privacy.Adjacency) (float64, error) {
	cost, err := costOf(a, e, adj, a.cost)
	if err != nil {
		return 0, err
	}
	return cost[0], nil
}
