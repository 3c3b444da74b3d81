package account

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// A sum whose noise owners share costs what the sum with all noise costs, by each accountant, bracket and currency, and says that it rests on
// sharing; a part alone costs what its share covers. Samples that owners cannot draw by themselves are refused.
func TestShared(t *testing.T) {
	shared := func(of privacy.Event) privacy.Event { return privacy.Shared{Owners: 10, Colluders: 3, Of: of} }
	gauss := privacy.Gaussian{Sigma: 30}
	both := privacy.GaussianSum{Presence: 40, Replacement: 30}
	for _, c := range []struct{ event, as privacy.Event }{
		{shared(gauss), gauss},
		{privacy.Repeated{Count: 50, Of: shared(gauss)}, privacy.Repeated{Count: 50, Of: gauss}},
		{privacy.Composed{shared(both), privacy.PureDP{Epsilon: 0.1}}, privacy.Composed{both, privacy.PureDP{Epsilon: 0.1}}},
		{privacy.Repeated{Count: 50, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{shared(both), gauss}}},
			privacy.Repeated{Count: 50, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{both, gauss}}}},
	} {
		for _, a := range accountants {
			for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
				want, refused := a.Loss(c.as, adj)
				got, err := a.Loss(c.event, adj)
				if refused != nil {
					if err == nil {
						t.Errorf("%v, %v: no error for %v", a, adj, c.event)
					}
					continue
				}
				if err != nil {
					t.Errorf("%v, %v: %v: %v", a, adj, c.event, err)
					continue
				}
				if x, y := got.Epsilon(1e-6), want.Epsilon(1e-6); x != y {
					t.Errorf("%v, %v: ε of %v is %v; want %v", a, adj, c.event, x, y)
				}
				if !slices.ContainsFunc(Basis(got), func(th Theorem) bool { return th.Anchor == "shared" }) {
					t.Errorf("%v: the basis of %v does not name what is shared", a, c.event)
				}
			}
		}
	}
	for _, c := range []struct{ event, as privacy.Event }{
		{shared(gauss), gauss},
		{privacy.Repeated{Count: 5, Of: privacy.PoissonSampled{Rate: 0.1, Of: shared(gauss)}}, privacy.Repeated{Count: 5, Of: privacy.PoissonSampled{Rate: 0.1, Of: gauss}}},
	} {
		low, high, err := PLD{}.Bracket(c.event, privacy.AddRemove, 1e-6)
		wantLow, wantHigh, wantErr := PLD{}.Bracket(c.as, privacy.AddRemove, 1e-6)
		if low != wantLow || high != wantHigh || err != nil || wantErr != nil {
			t.Errorf("bracket of %v: %v to %v, %v; want %v to %v, %v", c.event, low, high, err, wantLow, wantHigh, wantErr)
		}
		least, err := PLD{}.Least(c.event, privacy.AddRemove, 1e-6)
		if want, _ := (PLD{}).Least(c.as, privacy.AddRemove, 1e-6); least != want || err != nil {
			t.Errorf("%v costs %v at least, %v; want %v", c.event, least, err, want)
		}
	}
	for _, currency := range []Currency{ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
		got, err := currency.cost(shared(gauss), privacy.AddRemove)
		want, wantErr := currency.cost(gauss, privacy.AddRemove)
		if !slices.Equal(got, want) || err != nil || wantErr != nil {
			t.Errorf("%T: %v, %v; want %v, %v", currency, got, err, want, wantErr)
		}
	}
	step := privacy.PoissonSampled{Rate: 0.1, Of: shared(gauss)}
	plan, err := NewPlan(privacy.Repeated{Count: 2, Of: shared(gauss)}, GDP{}, privacy.Budget{Epsilon: 9, Delta: 1e-5, Adjacency: privacy.AddRemove})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		event privacy.Event
		ok    bool
	}{{gauss, false}, {step, false}, {privacy.Shared{Owners: 10, Colluders: 2, Of: gauss}, false}, {shared(gauss), true}, {shared(gauss), true}, {shared(gauss), false}} {
		if err := plan.Charge(c.event); (err == nil) != c.ok {
			t.Errorf("charge %d of %v: %v", i, c.event, err)
		}
	}

	// Alone reaches every share, and no other noise.
	deep := func(of privacy.Event) privacy.Event {
		return privacy.Repeated{Count: 3, Of: privacy.PoissonSampled{Rate: 0.1, Of: privacy.Composed{of, gauss}}}
	}
	less := math.Sqrt(7)
	found := privacy.Alone(deep(shared(both)))
	inner := found.(privacy.Repeated).Of.(privacy.PoissonSampled).Of.(privacy.Composed)[0].(privacy.GaussianSum)
	if !privacy.Equal(found, deep(inner)) || math.Abs(inner.Presence*less/both.Presence-1) > 1e-14 || math.Abs(inner.Replacement*less/both.Replacement-1) > 1e-14 {
		t.Errorf("alone: %v", found)
	}
	filter := privacy.Filtered{Currency: privacy.InGDP, Epsilon: 1, Delta: 1e-6}
	if l := mustLoss(t, GDP{}, privacy.Alone(filter)); !math.IsInf(l.Epsilon(1e-6), 1) {
		t.Errorf("a filter alone costs %v; nothing bounds it", l.Epsilon(1e-6))
	}
	d, err := RDP{}.Divergence(shared(gauss), privacy.AddRemove, 5)
	if want := mustDivergence(t, gauss, 5); d != want || err != nil {
		t.Errorf("divergence %v, %v; want %v", d, err, want)
	}
	lower, upper, err := PLD{}.Bracket(shared(privacy.Laplace{Scale: 1}), privacy.AddRemove, 1e-6)
	if err == nil {
		t.Errorf("Laplace noise in shares: no error; %v, %v", lower, upper)
	}
	for _, e := range []privacy.Event{
		privacy.FixedSampled{M: 5, N: 100, Of: shared(gauss)},
		privacy.FixedSampled{M: 100, N: 100, Of: shared(gauss)},
		privacy.Allocated{Batches: 4, Of: shared(gauss)},
		privacy.Tuned{Among: []privacy.Event{shared(gauss)}, Eta: 1, Gamma: 0.1},
	} {
		for _, a := range accountants {
			var refused *UnsupportedError
			if _, err := a.Loss(e, privacy.ReplaceOne); !errors.As(err, &refused) {
				t.Errorf("%v: %v: %v", a, e, err)
			}
		}
	}

	// The other line: a full pass at ε = 1, δ = 1e-5 of which ten owners make the noise, three of them colluders.
	budget := privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove}
	sigma, err := Calibrate(GDP{}, budget, func(s float64) privacy.Event { return shared(privacy.Gaussian{Sigma: s}) })
	if err != nil {
		t.Fatal(err)
	}
	whole := mustLoss(t, GDP{}, shared(privacy.Gaussian{Sigma: sigma})).Epsilon(1e-5)
	alone := mustLoss(t, GDP{}, privacy.Alone(shared(privacy.Gaussian{Sigma: sigma}))).Epsilon(1e-5)
	if math.Abs(whole-1) > 1e-6 || math.Abs(alone-2.95) > 0.05 {
		t.Errorf("ε is %v against the hub and three owners, %v against nine; want 1 and 2.95", whole, alone)
	}
}

// The assumption of a plan, and of what was charged of it, are read off the events; the ε alone is that of each share. Of shares that differ the
// fewest colluders count.
func TestSharesOf(t *testing.T) {
	shared := func(colluders int) privacy.Event {
		return privacy.Shared{Owners: 10, Colluders: colluders, Of: privacy.Gaussian{Sigma: 30}}
	}
	cost := func(n int) float64 {
		loss, err := GDP{}.Loss(privacy.Repeated{Count: n, Of: privacy.Gaussian{Sigma: 30 / math.Sqrt(7)}}, privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		return loss.Epsilon(1e-6)
	}
	plan := privacy.Retried{Of: privacy.Repeated{Count: 48, Of: shared(3)}, Retries: 2}
	for _, c := range []struct {
		event            privacy.Event
		colluders, count int
		retries          int
	}{{plan, 3, 50, 2}, {plan.Of, 3, 48, 0}, {privacy.Composed{shared(4), shared(3)}, 3, 0, 0}} {
		s := SharesOf(c.event, GDP{}, privacy.AddRemove, 1e-6)
		if s == nil || s.Owners != 10 || s.Colluders != c.colluders || s.Retries != c.retries || s.Alone == nil {
			t.Fatalf("%v: %+v", c.event, s)
		}
		if want := cost(c.count); c.count > 0 && math.Abs(*s.Alone-want) > 1e-9*want {
			t.Errorf("%v costs ε = %v alone; want %v", c.event, *s.Alone, want)
		}
	}
	for _, none := range []privacy.Event{privacy.Composed{}, privacy.Gaussian{Sigma: 30}, privacy.Retried{Of: privacy.Gaussian{Sigma: 30}, Retries: 1}} {
		if s := SharesOf(none, GDP{}, privacy.AddRemove, 1e-6); s != nil {
			t.Errorf("%v: %+v; nobody shares noise", none, s)
		}
	}
	if s := SharesOf(plan, Pure{}, privacy.AddRemove, 1e-6); s == nil || s.Alone != nil {
		t.Errorf("no pure ε is proven of Gaussian noise: %+v", s)
	}
}
