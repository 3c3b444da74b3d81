package account

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/privacy"
)

// filters are one of each currency, for the same budget.
var filters = []privacy.Filtered{
	{Currency: privacy.InPure, Epsilon: 1.5},
	{Currency: privacy.InZCDP, Epsilon: 1.5, Delta: 1e-8},
	{Currency: privacy.InGDP, Epsilon: 1.5, Delta: 1e-8},
	{Currency: privacy.InRDP, Order: 30, Epsilon: 1.5, Delta: 1e-8},
}

// A run on a filter costs its budget by every accountant, and what its currency proves at
// other δ is no less than what anything that the filter admits costs there.
func TestFilteredLoss(t *testing.T) {
	for _, f := range filters {
		for _, a := range accountants {
			l := mustLoss(t, a, f)
			if got := l.Epsilon(f.Delta); got > f.Epsilon || got < f.Epsilon*(1-1e-9) {
				t.Errorf("%v of %v: ε = %v", a, f, got)
			}
			if got := l.Delta(f.Epsilon); got > f.Delta {
				t.Errorf("%v of %v: δ = %v", a, f, got)
			}
			if _, err := NewPlan(f, a, privacy.Budget{Epsilon: f.Epsilon, Delta: f.Delta, Adjacency: privacy.AddRemove}); err != nil {
				t.Errorf("%v: %v", a, err)
			}
		}
		// One release that takes the whole limit.
		l, limit := mustLoss(t, Best{}, f), filterLimit(f)
		whole := map[privacy.Currency]privacy.Event{
			privacy.InPure: privacy.PureDP{Epsilon: limit},
			privacy.InZCDP: privacy.Gaussian{Sigma: 1 / math.Sqrt(2*limit)},
			privacy.InGDP:  privacy.Gaussian{Sigma: 1 / math.Sqrt(limit)},
			privacy.InRDP:  privacy.Gaussian{Sigma: math.Sqrt(f.Order / 2 / limit)},
		}[f.Currency]
		exact := mustLoss(t, Best{}, whole)
		for _, delta := range []float64{0, 1e-12, 1e-8, 1e-4, 0.1} {
			if lo, hi := exact.Epsilon(delta), l.Epsilon(delta); lo > hi*(1+1e-9) {
				t.Errorf("%v at δ = %v: ε = %v, but %v costs %v", f, delta, hi, whole, lo)
			}
		}
		for _, epsilon := range []float64{0.1, 1, 1.4, 3} {
			if lo, hi := exact.Delta(epsilon), l.Delta(epsilon); lo > hi*(1+1e-9) {
				t.Errorf("%v at ε = %v: δ = %v, but %v costs %v", f, epsilon, hi, whole, lo)
			}
		}
	}
}

// Beside other releases a run on a filter counts as what its currency says: never less than
// the worst release that it may be, and with that currency's own sum.
func TestFilteredBesideOthers(t *testing.T) {
	beside := privacy.Gaussian{Sigma: 20}
	for _, f := range filters {
		limit, both := filterLimit(f), privacy.Composed{f, beside}
		var whole privacy.Event = privacy.Gaussian{Sigma: 1 / math.Sqrt(2*limit)}
		switch f.Currency {
		case privacy.InPure:
			whole = privacy.PureDP{Epsilon: limit}
		case privacy.InGDP:
			whole = privacy.Gaussian{Sigma: 1 / math.Sqrt(limit)}
		case privacy.InRDP:
			whole = privacy.ApproxDP{Epsilon: f.Epsilon, Delta: f.Delta}
		}
		known := 0
		for _, a := range accountants {
			l, err := a.Loss(both, privacy.AddRemove)
			if err != nil {
				continue
			}
			known++
			want := mustLoss(t, a, privacy.Composed{whole, beside}).Epsilon(1e-6)
			exact := f.Currency == privacy.InZCDP && a == Accountant(Best{}) // of the Gaussian, by GDP
			if got := l.Epsilon(1e-6); got < want*(1-1e-12) || got > want*(1+1e-6) && !exact {
				t.Errorf("%v of %v: ε = %v, want %v", a, both, got, want)
			}
		}
		if known < 2 {
			t.Errorf("%d accountants know %v", known, both)
		}
	}
}

func TestChooseFilter(t *testing.T) {
	b := privacy.Budget{Epsilon: 1, Delta: 1e-8, Adjacency: privacy.AddRemove}
	search := privacy.AboveThreshold{Threshold: 100, Query: 200, Max: 10}
	pure := b
	pure.Delta = 0
	for _, c := range []struct {
		e    privacy.Event
		b    privacy.Budget
		want privacy.Currency
	}{
		{privacy.Gaussian{Sigma: 10}, b, privacy.InGDP},
		{privacy.Composed{privacy.Gaussian{Sigma: 10}, search}, b, privacy.InZCDP},
		{privacy.Composed{sampled(0.1, 8, 50), privacy.PoissonSampled{Rate: 0.1, Of: search}}, b, privacy.InRDP},
		{search, pure, privacy.InPure},
	} {
		f, part, err := ChooseFilter(c.e, c.b)
		if err != nil || f.Currency != c.want || !(part > 0 && part < 1) || f.Epsilon != c.b.Epsilon || f.Delta != c.b.Delta {
			t.Errorf("%v: %v, part %v, %v", c.e, f, part, err)
			continue
		}
		filter, err := newFiltered(f, c.b.Adjacency)
		if err != nil || filter.Charge(c.e) != nil || math.Abs(filter.Spent()/filter.Limit()/part-1) > 1e-9 {
			t.Errorf("%v of %v in %v: %v", filter.Spent(), filter.Limit(), f, err)
		}
	}
	var unsupported *UnsupportedError
	if _, _, err := ChooseFilter(privacy.Gaussian{Sigma: 10}, pure); !errors.As(err, &unsupported) {
		t.Errorf("Gaussian noise without δ: %v", err)
	}
	if _, part, err := ChooseFilter(privacy.Gaussian{Sigma: 0.1}, b); err != nil || part <= 1 {
		t.Errorf("what does not fit: part %v, %v", part, err)
	}
	if testing.Short() {
		return
	}
	// The order is at least nearly the best of a dense grid.
	steps := sampled(0.1, 3, 100)
	_, part, err := ChooseFilter(steps, b)
	if err != nil {
		t.Fatal(err)
	}
	for order := 2.0; order < 100; order++ {
		c := RDPCurrency{Orders: []float64{order}}
		cost, err := c.cost(steps, b.Adjacency)
		if err != nil {
			t.Fatal(err)
		}
		if _, p := mostLeft(cost, c.limits(b)); p < part*(1-1e-3) {
			t.Errorf("order %v: part %v, found %v", order, p, part)
		}
	}
}

func TestCalibrateFilter(t *testing.T) {
	b := privacy.Budget{Epsilon: 0.4, Delta: 1e-8, Adjacency: privacy.AddRemove}
	for name, event := range map[string]func(noise float64) privacy.Event{
		"table": func(noise float64) privacy.Event {
			return privacy.Repeated{Count: 50, Of: privacy.Gaussian{Sigma: noise}}
		},
		"sample": func(noise float64) privacy.Event { return sampled(0.1, noise, 50) },
	} {
		noise, f, err := CalibrateFilter(b, event)
		if err != nil {
			t.Fatal(err)
		}
		meter, err := NewMeter(f, Best{}, b)
		if err != nil || meter.Charge(event(noise)) != nil {
			t.Errorf("%s: %v does not admit noise %v: %v", name, f, noise, err)
		}
		if meter, err = NewMeter(f, Best{}, b); err != nil || !errors.Is(meter.Charge(event(noise*0.99)), privacy.ErrExhausted) {
			t.Errorf("%s: %v admits noise %v: %v", name, f, noise*0.99, err)
		}
	}
}

// A run that asks for whatever it likes, by what it saw, is stopped within its cap; what it
// spent is what its events cost, in whatever grouping.
func TestNewMeter(t *testing.T) {
	b := privacy.Budget{Epsilon: 1.5, Delta: 1e-8, Adjacency: privacy.AddRemove}
	for _, f := range filters {
		greedy := f
		greedy.Epsilon *= 1.01
		if _, err := NewMeter(greedy, Best{}, b); !errors.Is(err, privacy.ErrExhausted) {
			t.Errorf("%v: %v", greedy, err)
		}
		rapid.Check(t, func(t *rapid.T) {
			m, err := NewMeter(f, Best{}, b)
			if err != nil {
				t.Fatal(err)
			}
			var charged privacy.Composed
			epsilon := rapid.Float64Range(0.01, 0.5).Draw(t, "first")
			for refused := false; !refused; epsilon *= rapid.Float64Range(1, 2).Draw(t, "more") {
				var e privacy.Event = privacy.PureDP{Epsilon: epsilon}
				if f.Currency == privacy.InGDP {
					e = privacy.Gaussian{Sigma: 1 / epsilon}
				}
				err := m.Charge(e)
				if refused = errors.Is(err, privacy.ErrExhausted); err != nil && !refused {
					t.Fatal(err)
				}
				if !refused {
					charged = append(charged, e)
				}
			}
			spent, err := Spent(f, Best{}, charged, b.Adjacency, f.Delta)
			if err != nil || spent > f.Epsilon*(1+1e-12) || math.Abs(spent-m.(*Filter).Epsilon()) > 1e-12 {
				t.Fatalf("%v, %v; the filter says %v", spent, err, m.(*Filter).Epsilon())
			}
			tally := NewTally(currencyOf(f), b.Adjacency)
			if f.Currency == privacy.InRDP {
				return
			}
			if err := tally.Hold("run", f); err != nil {
				t.Fatal(err)
			}
			held := tally.Part(b)
			if err := tally.Settle("run", charged, 0); err != nil || tally.Part(b) > held {
				t.Fatalf("settled %v of %v: %v", tally.Part(b), held, err)
			}
			if err := tally.Hold("next", f); err != nil {
				t.Fatal(err)
			}
			if err := tally.Settle("next", append(charged, privacy.Gaussian{Sigma: 1e-3}, privacy.PureDP{Epsilon: 9}), 0); err == nil {
				t.Fatal("an overdrawn run is settled")
			}
		})
	}
}
