package account

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

func tradeOff(t testing.TB, a Accountant, e privacy.Event, adj privacy.Adjacency, delta float64) *TradeOff {
	t.Helper()
	l, err := a.Loss(e, adj)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewTradeOff(l, delta)
	if err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	return f
}

func poissonGaussian(q, sigma float64, steps int) privacy.Event {
	return privacy.Repeated{Count: steps, Of: privacy.PoissonSampled{Rate: q, Of: privacy.Gaussian{Sigma: sigma}}}
}

// TestTradeOffOfOneStep compares with the best attack on one sampled Gaussian, which by Neyman and Pearson has a
// threshold on the noisy value: no such attack is above the bound, and in the direction that costs more one is close to it.
func TestTradeOffOfOneStep(t *testing.T) {
	for _, c := range []struct{ q, sigma float64 }{{0.02, 1}, {0.5, 1.5}, {0.3, 0.7}, {1e-3, 2}} {
		f := tradeOff(t, PLD{}, poissonGaussian(c.q, c.sigma, 1), privacy.AddRemove, 1e-5)
		for x := -6.0; x < 6; x += 0.01 {
			out, in := normalCDF(x), normalCDF(x+1/c.sigma)
			mixed := (1-c.q)*out + c.q*in
			if most := f.Power(out); mixed > most || mixed > f.GaussianBound.Power(out) {
				t.Fatalf("q %v σ %v: removed: FPR %v has TPR %v; found at most %v and %v", c.q, c.sigma, out, mixed, most, f.GaussianBound.Power(out))
			} else if x < -1 && most > mixed*1.002+f.Outside {
				t.Fatalf("q %v σ %v: FPR %v has TPR %v; found only %v", c.q, c.sigma, out, mixed, most)
			}
			notOut, notMixed := normalCDF(-x), (1-c.q)*normalCDF(-x)+c.q*normalCDF(-x-1/c.sigma)
			if notOut > f.Power(notMixed) || notOut > f.GaussianBound.Power(notMixed) {
				t.Fatalf("q %v σ %v: added: FPR %v has TPR %v", c.q, c.sigma, notMixed, notOut)
			}
		}
	}
}

// plans are fixed plans of several kinds, and the relations that they are for.
var plans = []struct {
	name string
	a    Accountant
	e    privacy.Event
	adj  privacy.Adjacency
}{
	{"dpsgd", Best{}, poissonGaussian(256./60000, 1, 14000), privacy.AddRemove},
	{"poisson replace", PLD{}, poissonGaussian(0.01, 2, 1000), privacy.ReplaceOne},
	{"fixed", Best{}, privacy.Repeated{Count: 100, Of: privacy.FixedSampled{M: 50, N: 1000, Of: privacy.Gaussian{Sigma: 1.5}}}, privacy.ReplaceOne},
	{"laplace", Best{}, privacy.Repeated{Count: 20, Of: privacy.Laplace{Scale: 20}}, privacy.AddRemove},
	{"mixed", Best{}, privacy.Composed{privacy.Gaussian{Sigma: 3}, privacy.PureDP{Epsilon: 0.1}}, privacy.AddRemove},
	{"rdp", RDP{}, poissonGaussian(0.1, 4, 500), privacy.AddRemove},
	{"zcdp", ZCDP{}, privacy.Gaussian{Sigma: 2}, privacy.AddRemove},
	{"rare", PLD{}, poissonGaussian(1e-3, 0.7, 10000), privacy.AddRemove},
	{"filter zcdp", PLD{}, privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-6}, privacy.AddRemove},
}

// TestTradeOffHoldsBetweenItsPoints: at ε that the curve was not computed at, δ is at most that of the bound; and a μ that is
// 3 % less would not do. Rényi divergences bound δ by what is not convex in e^ε, as δ is: between the points the chord holds, not they.
func TestTradeOffHoldsBetweenItsPoints(t *testing.T) {
	race.Skip(t)
	for _, c := range plans {
		const delta = 1e-6
		f := tradeOff(t, c.a, c.e, c.adj, delta)
		l, err := c.a.Loss(c.e, c.adj)
		if err != nil {
			t.Fatal(err)
		}
		if f.Outside != delta/outsideShare {
			t.Errorf("%s: outside is %v", c.name, f.Outside)
		}
		top := f.lines[0].epsilon
		claimed, less, tight := gdpLoss{f.Mu}, gdpLoss{f.Mu * 0.97}, false
		_, whole := curveOf(l).(*pldLoss)
		for i := range 8 {
			epsilon := top * (float64(i) + 0.37) / 8
			if e := l.Epsilon(claimed.Delta(epsilon) + f.Outside); whole && e > epsilon*(1+1e-4) {
				t.Errorf("%s: at ε = %v δ is above that of μ = %v, which holds from ε = %v", c.name, epsilon, f.Mu, e)
			}
			tight = tight || l.Epsilon(less.Delta(epsilon)+f.Outside) > epsilon
		}
		if !tight {
			t.Errorf("%s: μ = %v is not tight", c.name, f.Mu)
		}
	}
}

// TestTradeOffCurves: the bound by μ is nowhere below the plan's curve, the curve rises and is concave, and Regret is
// what its definition says.
func TestTradeOffCurves(t *testing.T) {
	race.Skip(t)
	for _, c := range plans {
		f := tradeOff(t, c.a, c.e, c.adj, 1e-6)
		worst := 0.0
		last, slope := 0.0, math.Inf(1)
		for i := range 400 {
			fpr := math.Pow(10, -8+8*float64(i)/399)
			own, bound := f.Power(fpr), f.GaussianBound.Power(fpr)
			if own > bound || own < last {
				t.Fatalf("%s: at FPR %v the curve is %v, the bound %v, the value before %v", c.name, fpr, own, bound, last)
			}
			if s := (own - fpr) / fpr; s > slope*(1+1e-9) {
				t.Fatalf("%s: not concave at FPR %v", c.name, fpr)
			} else {
				slope = s
			}
			if own-fpr > f.Advantage()+1e-12 {
				t.Fatalf("%s: the advantage at FPR %v is above %v", c.name, fpr, f.Advantage())
			}
			last = own
			over := func(k float64) bool { return bound <= f.Power(fpr+k)+k }
			if !over(f.Regret) {
				t.Fatalf("%s: the regret %v is too small at FPR %v", c.name, f.Regret, fpr)
			}
			lo, hi := 0.0, f.Regret
			for range 40 {
				if mid := (lo + hi) / 2; over(mid) {
					hi = mid
				} else {
					lo = mid
				}
			}
			worst = math.Max(worst, hi)
		}
		if worst < 0.95*f.Regret {
			t.Errorf("%s: found a regret of %v; stated is %v", c.name, worst, f.Regret)
		}
		t.Logf("%s: μ %.5f, outside %.2g, regret %.5f", c.name, f.Mu, f.Outside, f.Regret)
	}
}

// TestTradeOffExact: Gaussians on whole tables and filters of μ² are exact, with nothing outside, as is nothing at all; a grid
// of their curve gives the same; and a pure release has the μ of randomized response.
func TestTradeOffExact(t *testing.T) {
	for _, a := range []Accountant{GDP{}, PLD{}, Best{}} {
		f := tradeOff(t, a, privacy.Repeated{Count: 4, Of: privacy.Gaussian{Sigma: 2}}, privacy.AddRemove, 1e-6)
		if math.Abs(f.Mu-1) > 1e-12 || f.Mu < 1 || f.Outside != 0 || f.Regret != 0 || f.Power(0.5) < normalCDF(1) || f.Power(0.5) > normalCDF(1)*(1+1e-12) {
			t.Errorf("%v: %+v, %v", a, f, f.Power(0.5))
		}
	}
	for _, mu := range []float64{1e-3, 0.1, 1, 4} {
		f, err := tradeOffOf(gdpLoss{mu}.Delta, gdpLoss{mu}.Epsilon(1e-9), 1e-9, 200)
		if err != nil || f.Mu < mu*(1-1e-4) || f.Mu > mu*1.001 || f.Regret > 1e-3*mu {
			t.Errorf("μ = %v: found %v, %v", mu, f.GaussianBound, err)
		}
	}
	f := tradeOff(t, PLD{}, privacy.Filtered{Currency: privacy.InGDP, Epsilon: 1, Delta: 1e-6}, privacy.AddRemove, 1e-6)
	if e := (gdpLoss{f.Mu}).Epsilon(1e-6); math.Abs(e-1) > 1e-9 || f.Outside != 0 {
		t.Errorf("a filter of μ² has μ = %v, ε = %v", f.Mu, e)
	}
	for _, a := range []Accountant{Pure{}, PLD{}} {
		f = tradeOff(t, a, privacy.PureDP{Epsilon: 1}, privacy.AddRemove, 0)
		want := 2 * math.Sqrt2 * math.Erfinv(math.Tanh(0.5))
		if f.Outside != 0 || f.Mu < want || f.Mu > want*1.0001 {
			t.Errorf("%v: a pure release of ε = 1 has μ = %v; want %v", a, f.Mu, want)
		}
	}
	if f = tradeOff(t, PLD{}, privacy.Composed{}, privacy.AddRemove, 1e-6); f.Mu != 0 || f.Power(0.3) != 0.3 {
		t.Errorf("nothing released: %+v", f)
	}
}

// TestTradeOffRefused: where no theorem gives μ there is none.
func TestTradeOffRefused(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct {
		e     privacy.Event
		delta float64
		want  string
	}{
		{privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.ApproxDP{Epsilon: 0.1, Delta: 1e-12}}, 1e-6, "one (ε, δ) only"},
		{privacy.PoissonSampled{Rate: 0.5, Of: privacy.ApproxDP{Epsilon: 0.1, Delta: 1e-12}}, 1e-6, "one (ε, δ) only"},
		{privacy.Filtered{Currency: privacy.InRDP, Order: 16, Epsilon: 1, Delta: 1e-6}, 1e-6, "one Rényi order"},
		{privacy.Composed{privacy.Gaussian{Sigma: 2}, privacy.Filtered{Currency: privacy.InRDP, Order: 16, Epsilon: 1, Delta: 1e-6}}, 1e-6, "one (ε, δ) only"},
		{privacy.NonPrivate{Why: "test"}, 1e-6, "no noise"},
		{poissonGaussian(0.5, 0.01, 1000), 1e-6, "no μ is proven"},
		{poissonGaussian(0.1, 1, 10), 0, "no μ is proven"},
		{poissonGaussian(0.00033, 4, 10000), 1e-30, "no μ is proven: the accountant resolves no ε at δ = 1e-32"},
		{privacy.Gaussian{Sigma: 1}, 1, "choose"},
	} {
		for _, a := range []Accountant{PLD{}, Best{}} {
			l, err := a.Loss(c.e, privacy.AddRemove)
			var refused *UnsupportedError
			if errors.As(err, &refused) {
				continue
			}
			if f, err := NewTradeOff(l, c.delta); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v %v: found %+v, %v; want %q", a, c.e, f, err, c.want)
			}
		}
	}
}

// TestTradeOffProperties: of random plans the bound holds, but for what two upper bounds of one δ differ by.
func TestTradeOffProperties(t *testing.T) {
	race.Skip(t)
	for seed := range 30 {
		e := anyPLD().Example(seed)
		adj := []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne}[seed%2]
		l, err := PLD{}.Loss(e, adj)
		if err != nil {
			continue
		}
		f, err := NewTradeOff(l, 1e-6)
		if err != nil {
			if !strings.Contains(err.Error(), "no theorem") && !(l.Epsilon(1e-8) > tradeMostEpsilon/2) {
				t.Errorf("%v: %v; ε is %v", e, err, l.Epsilon(1e-8))
			}
			continue
		}
		if !(f.Mu > 0 && f.Regret >= 0 && f.Regret <= 1) {
			t.Errorf("%v: %+v", e, f.GaussianBound)
		}
		epsilon := l.Epsilon(1e-6) * float64(seed%7) / 6
		if d := l.Delta(epsilon); d > (gdpLoss{f.Mu}).Delta(epsilon)*(1+1e-4)+f.Outside {
			t.Errorf("%v: δ(%v) = %v is above that of %+v, %v", e, epsilon, d, f.GaussianBound, gdpLoss{f.Mu}.Delta(epsilon))
		}
		for _, fpr := range []float64{1e-9, 1e-6, 1e-3, 0.1, 0.6} {
			if own, bound := f.Power(fpr), f.GaussianBound.Power(fpr); own > bound*(1+1e-12) || own < fpr {
				t.Errorf("%v: FPR %v: %v, by μ %v", e, fpr, own, bound)
			}
		}
	}
}

// TestQuantile: the two sides enclose the root, to a relative 1e-12.
func TestQuantile(t *testing.T) {
	for _, p := range []float64{1e-300, 1e-20, 1e-3, 0.3, 0.5, 0.7, 0.999, 1 - 1e-12} {
		lo, hi := quantile(p, down), quantile(p, up)
		if !(lo <= hi) || hi-lo > 1e-12*math.Max(1, math.Abs(lo))+1e-13/math.Min(p, 1-p)*0x1p-20 || normalCDF(hi) < p*(1-1e-13) || normalCDF(lo) > p*(1+1e-13) {
			t.Errorf("%v: [%v, %v]", p, lo, hi)
		}
	}
	if !math.IsInf(quantile(0, up), -1) || !math.IsInf(quantile(1, up), 1) {
		t.Error("0 and 1 have no infinite quantiles")
	}
}

func BenchmarkTradeOff(b *testing.B) {
	for _, c := range plans {
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				tradeOff(b, c.a, c.e, c.adj, 1e-6)
			}
		})
	}
}
