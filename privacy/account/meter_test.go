package account

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

func budget(epsilon, delta float64) privacy.Budget {
	return privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: privacy.AddRemove}
}

func TestPlanAdmitsItsReleasesInOrder(t *testing.T) {
	g, lap := privacy.Gaussian{Sigma: 50}, privacy.Laplace{Scale: 100}
	sg := privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{g}}
	plan := privacy.Composed{privacy.Repeated{Count: 2, Of: privacy.Composed{sg, g}}, privacy.Repeated{Of: lap}, lap}
	p, err := NewPlan(plan, RDP{}, budget(1, 1e-5))
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Claim(); !(c.Epsilon > 0 && c.Epsilon < 1) || c.Delta != 1e-5 || p.Budget() != budget(1, 1e-5) || p.Adjacency() != privacy.AddRemove {
		t.Errorf("claim %v", c)
	}
	charge := func(e privacy.Event, want error) {
		t.Helper()
		before := p.Charged()
		err := p.Charge(e)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("charging %v: %v, want %v", e, err, want)
		}
		if grew := p.Charged() - before; (grew == 1) != (want == nil) {
			t.Errorf("charging %v: %d more charges", e, grew)
		}
	}
	charge(g, ErrNotPlanned)
	charge(privacy.PoissonSampled{Rate: 0.2, Of: g}, ErrNotPlanned)
	charge(privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{g, g}}, ErrNotPlanned)
	charge(privacy.NonPrivate{}, ErrNotPlanned)
	charge(privacy.Composed{}, ErrNotPlanned)
	charge(nil, ErrNotPlanned)
	charge(sg, nil)
	charge(privacy.Composed{g, g}, ErrNotPlanned)                              // the second is a sample
	charge(privacy.Composed{g, privacy.PoissonSampled{Rate: 0.1, Of: g}}, nil) // grouped otherwise
	charge(privacy.PoissonSampled{Rate: 1, Of: g}, nil)                        // rate 1 is no sample
	charge(privacy.Composed{lap, lap}, privacy.ErrExhausted)
	charge(lap, nil)
	charge(lap, privacy.ErrExhausted)
	charge(g, privacy.ErrExhausted)
}

func TestPlanRefusesWhatTheBudgetDoesNotCover(t *testing.T) {
	plan := sampled(0.01, 1, 10_000)
	_, err := NewPlan(plan, RDP{}, budget(1, 1e-5))
	if !errors.Is(err, privacy.ErrExhausted) || !strings.Contains(err.Error(), "ε = 6.") || !strings.Contains(err.Error(), "budget is ε = 1") {
		t.Errorf("got %v", err)
	}
	if _, err = NewPlan(privacy.NonPrivate{Why: "x"}, Best{}, budget(1e6, 0.5)); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("a look: %v", err)
	}
	var unsupported *UnsupportedError
	if _, err = NewPlan(plan, Pure{}, budget(1, 0)); !errors.As(err, &unsupported) {
		t.Errorf("no theorem: %v", err)
	}
	if _, err = NewPlan(plan, nil, budget(1, 0)); err == nil {
		t.Error("no accountant, no error")
	}
	if _, err = NewPlan(plan, RDP{}, privacy.Budget{Epsilon: 1, Delta: 1e-5}); err == nil || !strings.Contains(err.Error(), "adjacency") {
		t.Errorf("no adjacency: %v", err)
	}
	// Decimals that add up to the budget fit it.
	p, err := NewPlan(privacy.Repeated{Count: 10, Of: privacy.PureDP{Epsilon: 0.1}}, Pure{}, budget(1, 0))
	if err != nil || p.Claim().Epsilon != 1 {
		t.Errorf("ten times 0.1 in 1: %v", err)
	}
}

// TestPlanTakesConstantMemory: a plan of 10⁷ steps is charged without being
// unrolled, and without an allocation per step.
func TestPlanTakesConstantMemory(t *testing.T) {
	step := privacy.Event(privacy.PoissonSampled{Rate: 1e-4, Of: privacy.Gaussian{Sigma: 3}})
	p, err := NewPlan(privacy.Repeated{Count: 1e7, Of: privacy.Repeated{Count: 1, Of: step}}, RDP{}, budget(10, 1e-5))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Charge(step); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if err := p.Charge(step); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per charge", n)
	}
	if p.Charged() != 1002 {
		t.Errorf("%d charges", p.Charged())
	}
}

// TestPlanIsItsUnrolling: charging the leaves of a random plan one by one, in any
// grouping, admits exactly all of them.
func TestPlanIsItsUnrolling(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plan := privacy.Composed{anyPrivate().Draw(t, "a"), privacy.Repeated{Count: rapid.IntRange(0, 2).Draw(t, "n"), Of: anyPrivate().Draw(t, "b")}}
		p, err := NewPlan(plan, Best{}, budget(1e9, 1e-3))
		if err != nil {
			t.Fatal(err)
		}
		var unrolled privacy.Composed
		for c := newCursor(plan); ; {
			e, ok := c.step()
			if !ok {
				break
			}
			unrolled = append(unrolled, e)
		}
		whole, _ := Best{}.Loss(plan, privacy.AddRemove)
		parts, _ := Best{}.Loss(unrolled, privacy.AddRemove)
		same(t, "unrolled", whole.Epsilon(1e-5), parts.Epsilon(1e-5))
		for len(unrolled) > 0 {
			n := rapid.IntRange(1, len(unrolled)).Draw(t, "take")
			if err := p.Charge(unrolled[:n]); err != nil {
				t.Fatal(err)
			}
			unrolled = unrolled[n:]
		}
		if err := p.Charge(privacy.Gaussian{Sigma: 1}); !errors.Is(err, privacy.ErrExhausted) {
			t.Fatalf("after the end: %v", err)
		}
	})
}

// TestFiltersNeverOverspend plays an adversary who picks every event by what the
// filter did so far. The admitted events, taken as a fixed plan, must cost at most
// the budget by an accountant that is proven for it.
func TestFiltersNeverOverspend(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for _, c := range []struct {
		currency Currency
		check    Accountant
	}{
		{PureCurrency{}, Pure{}},
		{ZCDPCurrency{}, ZCDP{}},
		{GDPCurrency{}, GDP{}},
		{RDPCurrency{Orders: []float64{8}}, RDP{Orders: []float64{8}}},
		{RDPCurrency{Orders: []float64{17.5}}, RDP{Orders: []float64{17.5}}},
		{RDPCurrency{}, RDP{Orders: geometricOrders[:]}},
		{RDPCurrency{Orders: []float64{3, 12.5, 40}}, RDP{Orders: []float64{3, 12.5, 40}}},
	} {
		t.Run(c.currency.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := budget(logRange(3, 20).Draw(t, "epsilon"), logRange(1e-8, 1e-2).Draw(t, "delta"))
				f, err := NewFilter(c.currency, b)
				if err != nil {
					t.Fatal(err)
				}
				admitted := privacy.Composed{}
				scale := 1.0
				for range 60 {
					e := adversary(t, c.currency, scale)
					before, was := f.spent.up(), slices.Clone(f.spent)
					cost, err := c.currency.cost(e, privacy.AddRemove)
					if err != nil {
						t.Fatal(err)
					}
					switch err := f.Charge(e); {
					case err == nil:
						admitted = append(admitted, e)
						for i, spent := range f.spent.up() {
							if spent < before[i] || spent < cost[i]*(1-1e-12) {
								t.Fatalf("spent went from %v to %v by a cost of %v", before[i], spent, cost[i])
							}
						}
					case errors.Is(err, privacy.ErrExhausted):
						if !slices.Equal(f.spent, was) {
							t.Fatal("a refusal changed the filter")
						}
						for i, limit := range f.limits {
							if before[i]+cost[i] < limit*(1-1e-9) {
								t.Fatalf("refused %v with %v of %v spent", cost[i], before[i], limit)
							}
						}
						scale *= 1.5 // come back with something smaller
					default:
						t.Fatal(err)
					}
				}
				l, err := c.check.Loss(admitted, privacy.AddRemove)
				if err != nil {
					t.Fatal(err)
				}
				if eps := l.Epsilon(b.Delta); eps > b.Epsilon*(1+1e-14) {
					t.Fatalf("%d events cost ε = %.17g of %.17g", len(admitted), eps, b.Epsilon)
				}
			})
		})
	}
}

func adversary(t *rapid.T, c Currency, scale float64) privacy.Event {
	v := logRange(0.3, 30).Draw(t, "noise") * scale
	g, lap, pure := privacy.Gaussian{Sigma: v}, privacy.Laplace{Scale: v}, privacy.PureDP{Epsilon: 1 / v}
	events := []privacy.Event{lap, pure, privacy.PoissonSampled{Rate: 0.2, Of: pure}, privacy.Repeated{Count: 3, Of: lap}}
	switch c.(type) {
	case ZCDPCurrency:
		events = []privacy.Event{lap, pure, g, privacy.Composed{g, lap}}
	case GDPCurrency:
		events = []privacy.Event{g, privacy.Repeated{Count: 2, Of: g}, privacy.Composed{g, g}}
	case RDPCurrency:
		events = append(events, g, privacy.PoissonSampled{Rate: 0.05, Of: g})
	}
	return events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
}

func TestFilterLimits(t *testing.T) {
	b := budget(2, 1e-6)
	for _, c := range []struct {
		currency Currency
		epsilon  func(limit float64) float64
	}{
		{PureCurrency{}, func(e float64) float64 { return e }},
		{ZCDPCurrency{}, func(rho float64) float64 { return zcdpLoss{rho: rho}.Epsilon(b.Delta) }},
		{GDPCurrency{}, func(sq float64) float64 { return gdpLoss{mu: math.Sqrt(sq)}.Epsilon(b.Delta) }},
		{RDPCurrency{Orders: []float64{12}}, func(d float64) float64 { return improvedEpsilon(11, d, math.Log(b.Delta)) }},
	} {
		f, err := NewFilter(c.currency, b)
		if err != nil {
			t.Fatal(err)
		}
		if eps := c.epsilon(f.Limit()); eps > 2 || eps < 2-1e-9 {
			t.Errorf("%v: the limit %v is worth ε = %.15g", c.currency, f.Limit(), eps)
		}
	}
}

func TestFilterRefusals(t *testing.T) {
	for _, c := range []struct {
		c Currency
		b privacy.Budget
	}{
		{RDPCurrency{Orders: []float64{2}}, budget(1, 1e-6)}, // ln(1/δ) alone is more
		{RDPCurrency{Orders: []float64{1}}, budget(1, 1e-6)},
		{RDPCurrency{Orders: []float64{math.Inf(1)}}, budget(1, 1e-6)},
		{RDPCurrency{Orders: []float64{math.NaN()}}, budget(1, 1e-6)},
		{RDPCurrency{Orders: []float64{64}}, budget(1, 0)},
		{ZCDPCurrency{}, budget(1, 0)},
		{GDPCurrency{}, budget(1, 0)},
	} {
		if _, err := NewFilter(c.c, c.b); !errors.Is(err, privacy.ErrExhausted) {
			t.Errorf("%v with %v: %v", c.c, c.b, err)
		}
	}
	if _, err := NewFilter(nil, budget(1, 0)); err == nil {
		t.Error("no currency, no error")
	}
	if _, err := NewFilter(PureCurrency{}, privacy.Budget{Epsilon: 1}); err == nil {
		t.Error("no adjacency, no error")
	}
	f, err := NewFilter(ZCDPCurrency{}, privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.ReplaceOne})
	if err != nil || f.Adjacency() != privacy.ReplaceOne || f.Budget().Epsilon != 1 {
		t.Fatalf("%v, %v", f, err)
	}
	if err := f.Charge(privacy.NonPrivate{Why: "x"}); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("a look: %v", err)
	}
	if err := f.Charge(privacy.Continued{}); !errors.Is(err, ErrNotPlanned) {
		t.Errorf("a batch of an epoch that no filter admits: %v", err)
	}
	var unsupported *UnsupportedError
	if err := f.Charge(sampled(0.1, 1, 1)); !errors.As(err, &unsupported) {
		t.Errorf("a sample: %v", err)
	}
	if err := f.Charge(privacy.Gaussian{}); err == nil {
		t.Error("an invalid event was admitted")
	}
	if err := f.Charge(privacy.Composed{}); err != nil || f.Spent() != 0 {
		t.Errorf("nothing: %v, spent %v", err, f.Spent())
	}
}

// TestFilterKeepsItsCents: ten thousand charges of a ten-thousandth fit, and not
// one more.
func TestFilterKeepsItsCents(t *testing.T) {
	f, err := NewFilter(PureCurrency{}, budget(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		if err := f.Charge(privacy.PureDP{Epsilon: 1e-4}); err != nil {
			t.Fatalf("charge %d: %v", i, err)
		}
	}
	if err := f.Charge(privacy.PureDP{Epsilon: 1e-12}); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("one more: %v", err)
	}
}

// TestSumsRoundUp compares with exact rational arithmetic.
func TestSumsRoundUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sum
		exact := new(big.Rat)
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			x, n := logRange(1e-30, 1e6).Draw(t, "x"), float64(rapid.IntRange(1, 1e9).Draw(t, "times"))
			s.addProduct(n, x)
			a, b := new(big.Rat).SetFloat64(x), new(big.Rat).SetFloat64(n)
			exact.Add(exact, a.Mul(a, b))
		}
		got := new(big.Rat).SetFloat64(s.up())
		over, _ := new(big.Rat).Sub(new(big.Rat).Quo(got, exact), big.NewRat(1, 1)).Float64()
		if over < -1e-30 || over > 3e-16 {
			t.Fatalf("off by %g", over)
		}
		x := logRange(1e-300, 1e300).Draw(t, "inverse of")
		if v := new(big.Rat).SetFloat64(invUp(x)); v.Mul(v, new(big.Rat).SetFloat64(x)).Cmp(big.NewRat(1, 1)) < 0 {
			t.Fatalf("1/%v is rounded down", x)
		}
	})
}

var sink float64

func BenchmarkRDPEpsilon(b *testing.B) {
	for _, c := range []struct {
		q, sigma float64
		steps    int
		delta    float64
	}{{0.01, 1.1, 10_000, 1e-5}, {256.0 / 60000, 1, 14062, 1e-5}, {1e-3, 0.6, 100_000, 1e-5}, {0.001, 20, 1000, 1e-8}, {1e-6, 100, 100, 1e-8}} {
		b.Run(fmt.Sprintf("q=%.3g,σ=%v,T=%d", c.q, c.sigma, c.steps), func(b *testing.B) {
			for b.Loop() {
				sink = mustLoss(b, RDP{}, sampled(c.q, c.sigma, c.steps)).Epsilon(c.delta)
			}
		})
	}
}

// BenchmarkRDPSamples: samples of fixed size, and releases of several kinds on one
// sample.
func BenchmarkRDPSamples(b *testing.B) {
	gauss := privacy.Gaussian{Sigma: 2}
	several := privacy.Composed{gauss, privacy.AboveThreshold{Threshold: 2, Query: 4, Max: 3}, privacy.Laplace{Scale: 5}}
	for name, c := range map[string]struct {
		of  privacy.Event
		adj privacy.Adjacency
	}{
		"fixed/gaussian":  {privacy.FixedSampled{M: 1, N: 100, Of: gauss}, privacy.ReplaceOne},
		"fixed/several":   {privacy.FixedSampled{M: 1, N: 100, Of: several}, privacy.ReplaceOne},
		"poisson/several": {privacy.PoissonSampled{Rate: 0.01, Of: several}, privacy.AddRemove},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l, err := RDP{}.Loss(privacy.Repeated{Count: 1000, Of: c.of}, c.adj)
				if err != nil {
					b.Fatal(err)
				}
				sink = l.Epsilon(1e-5)
			}
		})
	}
}

func BenchmarkCalibrate(b *testing.B) {
	for _, a := range []Accountant{RDP{}, Best{}} {
		for _, epsilon := range []float64{0.05, 1, 50} {
			b.Run(fmt.Sprintf("%v,ε=%v", a, epsilon), func(b *testing.B) {
				for b.Loop() {
					once.forget()
					sink, _ = Calibrate(a, budget(epsilon, 1e-5), func(s float64) privacy.Event { return sampled(0.01, s, 10_000) })
				}
			})
		}
	}
	b.Run("gdp,ε=1", func(b *testing.B) {
		for b.Loop() {
			sink, _ = Calibrate(GDP{}, budget(1, 1e-6), func(s float64) privacy.Event {
				return privacy.Repeated{Count: 100, Of: privacy.Gaussian{Sigma: s}}
			})
		}
	})
}

func BenchmarkGDPEpsilon(b *testing.B) {
	for b.Loop() {
		sink = gdpLoss{mu: 0.3}.Epsilon(1e-6)
	}
}
