package account

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
	"pgregory.net/rapid"
)

func retried(retries int, of privacy.Event) privacy.Event {
	return privacy.Retried{Of: of, Retries: retries}
}

// A plan with retries costs what its batches and so many more of the costliest cost, by each accountant.
func TestRetries(t *testing.T) {
	race.Skip(t)
	g := func(sigma float64) privacy.Event { return privacy.Gaussian{Sigma: sigma} }
	times := func(n int, e privacy.Event) privacy.Event { return privacy.Repeated{Count: n, Of: e} }
	on := func(rate float64, e ...privacy.Event) privacy.Event {
		return privacy.PoissonSampled{Rate: rate, Of: privacy.Composed(e)}
	}
	sum := func(presence, replacement float64) privacy.Event {
		return privacy.GaussianSum{Presence: presence, Replacement: replacement}
	}
	step, alone := privacy.PoissonSampled{Rate: 0.1, Of: g(2)}, privacy.Composed{g(30), g(40)}
	for name, c := range map[string]struct{ event, as privacy.Event }{
		"steps":              {retried(2, times(10, step)), times(12, step)},
		"no retries":         {retried(0, times(10, step)), times(10, step)},
		"newton":             {retried(3, privacy.Composed{alone, times(9, g(40))}), privacy.Composed{times(4, alone), times(9, g(40))}},
		"grads and Hessians": {retried(3, times(5, alone)), times(8, alone)},
		"a schedule":         {retried(2, privacy.Composed{g(30), g(20), g(25)}), privacy.Composed{g(30), times(3, g(20)), g(25)}},
		"a mean, then steps": {retried(1, privacy.Composed{g(10), times(9, g(30))}), privacy.Composed{times(2, g(10)), times(9, g(30))}},
		"phases":             {retried(1, privacy.Composed{privacy.Composed{times(2, g(30)), times(3, g(50))}}), privacy.Composed{times(3, g(30)), times(3, g(50))}},
		"samples":            {retried(1, times(2, privacy.Composed{on(0.1, g(2)), on(0.1, g(3))})), privacy.Composed{times(3, on(0.1, g(2))), times(2, on(0.1, g(3)))}},
		"two rates":          {retried(2, privacy.Composed{on(0.1, g(2)), on(0.2, g(3))}), privacy.Composed{times(3, on(0.1, g(2))), times(3, on(0.2, g(3)))}},
		"part of a sample":   {retried(2, privacy.Composed{on(0.1, g(2), g(5)), on(0.1, g(6))}), privacy.Composed{times(3, on(0.1, g(2), g(5))), on(0.1, g(6))}},
		"two moves":          {retried(1, privacy.Composed{on(0.1, sum(4, 2)), on(0.1, sum(3, 3))}), privacy.Composed{times(2, on(0.1, sum(4, 2))), times(2, on(0.1, sum(3, 3)))}},
		"shared": {retried(2, times(10, on(0.1, privacy.Shared{Owners: 5, Colluders: 1, Of: g(2)}))),
			times(12, step)},
		"beside others": {privacy.Composed{retried(2, times(10, g(30))), privacy.PureDP{Epsilon: 0.01}}, privacy.Composed{times(12, g(30)), privacy.PureDP{Epsilon: 0.01}}},
	} {
		for _, a := range accountants {
			for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
				want, refused := a.Loss(c.as, adj)
				got, err := a.Loss(c.event, adj)
				if (refused != nil) != (err != nil) {
					t.Errorf("%s: %v, %v: %v, %v", name, a, adj, err, refused)
				}
				if refused != nil || err != nil {
					continue
				}
				if x, y := got.Epsilon(1e-6), want.Epsilon(1e-6); math.Abs(x-y) > 1e-12*y {
					t.Errorf("%s: %v, %v: ε is %v; want %v", name, a, adj, x, y)
				}
				if !slices.ContainsFunc(Basis(got), func(th Theorem) bool { return th.Anchor == "retries" }) {
					t.Errorf("%s: %v: the basis does not name retries", name, a)
				}
			}
		}
		low, high, err := PLD{}.Bracket(c.event, privacy.AddRemove, 1e-6)
		wantLow, wantHigh, wantErr := PLD{}.Bracket(c.as, privacy.AddRemove, 1e-6)
		if math.Abs(low-wantLow) > 1e-12*low || math.Abs(high-wantHigh) > 1e-12*high || err != nil || wantErr != nil {
			t.Errorf("%s: bracket %v to %v, %v; want %v to %v, %v", name, low, high, err, wantLow, wantHigh, wantErr)
		}
		for _, currency := range []Currency{ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
			got, err := currency.cost(c.event, privacy.AddRemove)
			want, wantErr := currency.cost(c.as, privacy.AddRemove)
			near := func(x, y float64) bool { return x == y || math.Abs(x-y) <= 1e-12*y }
			if !slices.EqualFunc(got, want, near) || (err != nil) != (wantErr != nil) {
				t.Errorf("%s: %T: %v, %v; want %v, %v", name, currency, got, err, want, wantErr)
			}
		}
	}
	// By hand: ten Gaussians of σ = 30 and two more are one of σ = 30/√12.
	l := mustLoss(t, GDP{}, retried(2, times(10, g(30))))
	if got, want := l.Epsilon(1e-6), mustLoss(t, GDP{}, g(30/math.Sqrt(12))).Epsilon(1e-6); math.Abs(got-want) > 1e-9 {
		t.Errorf("ε is %v; want %v", got, want)
	}
	curve, err := NewTradeOff(l, 1e-5)
	if err != nil || math.Abs(curve.Mu-math.Sqrt(12)/30) > 1e-12 {
		t.Errorf("μ is %v, %v; want √12/30", curve, err)
	}
	// Nothing costs as much as several kinds of batches together, of which a retry makes one; a plan of one kind does.
	if least, err := (PLD{}).Least(retried(2, privacy.Composed{on(0.1, g(2)), on(0.2, g(3))}), privacy.AddRemove, 1e-6); least != 0 || err != nil {
		t.Errorf("two kinds cost at least %v, %v", least, err)
	}
	least, err := PLD{}.Least(retried(2, times(10, step)), privacy.AddRemove, 1e-6)
	if want, _ := (PLD{}).Least(times(12, step), privacy.AddRemove, 1e-6); math.Abs(least-want) > 1e-12 || !(want > 0) || err != nil {
		t.Errorf("costs at least %v, %v; want %v", least, err, want)
	}
	// The other line has the shares' noise everywhere.
	both := retried(2, privacy.Composed{privacy.Shared{Owners: 5, Colluders: 1, Of: g(20)}, privacy.Shared{Owners: 5, Colluders: 1, Of: g(30)}})
	if got, want := mustLoss(t, GDP{}, privacy.Alone(both)).Epsilon(1e-6), mustLoss(t, GDP{}, privacy.Composed{times(3, g(10)), g(15)}).Epsilon(1e-6); math.Abs(got-want) > 1e-9 {
		t.Errorf("alone ε is %v; want %v", got, want)
	}
}

// What has no theorem with retries is refused, and said so, by accountants, currencies and meters.
func TestRetriesRefused(t *testing.T) {
	g := privacy.Gaussian{Sigma: 30}
	for _, bad := range []privacy.Event{
		privacy.Filtered{Currency: privacy.InGDP, Epsilon: 1, Delta: 1e-6},
		privacy.NonPrivate{Why: "a score"},
		privacy.Allocated{Batches: 4, Of: g},
		privacy.Parallel{Part: "1", Of: g},
		privacy.FixedSampled{M: 1, N: 10, Of: g},
		privacy.Tuned{Among: []privacy.Event{g}, Eta: 1, Gamma: 0.1},
		privacy.PureDP{Epsilon: 0.1}, privacy.Laplace{Scale: 30}, privacy.Select{Epsilon: 0.1}, privacy.ApproxDP{Epsilon: 0.1, Delta: 1e-9},
		privacy.AboveThreshold{Threshold: 30, Query: 60, Max: 3},
		privacy.Continued{},
	} {
		for _, plan := range []privacy.Event{bad, privacy.Composed{g, privacy.Repeated{Count: 2, Of: bad}}} {
			var refused *UnsupportedError
			check := func(by string, err error) {
				t.Helper()
				if !errors.As(err, &refused) || !privacy.Equal(refused.Event, bad) || !strings.Contains(err.Error(), "retries are proven only") {
					t.Errorf("%s: %v: %v", by, plan, err)
				}
			}
			for _, a := range accountants {
				_, err := a.Loss(retried(1, plan), privacy.AddRemove)
				check(a.String(), err)
				_, err = Retrying(a, 1).Loss(plan, privacy.AddRemove)
				check("retrying "+a.String(), err)
			}
			for _, c := range []Currency{PureCurrency{}, ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
				_, err := c.cost(retried(1, plan), privacy.AddRemove)
				check(c.String(), err)
			}
			_, _, err := PLD{}.Bracket(retried(1, plan), privacy.AddRemove, 1e-6)
			check("bracket", err)
			_, err = NewMeter(retried(1, plan), Best{}, budget(9, 1e-5))
			check("meter", err)
		}
	}
	many := privacy.Composed{}
	for i := range mostKinds + 1 {
		many = append(many, privacy.PoissonSampled{Rate: 1 / float64(i+2), Of: g})
	}
	if _, err := (RDP{}).Loss(retried(1, many), privacy.AddRemove); err == nil || !strings.Contains(err.Error(), "too many kinds") {
		t.Errorf("%v", err)
	}
	for _, e := range []privacy.Event{retried(-1, g), retried(1, retried(1, g)), privacy.PoissonSampled{Rate: 0.5, Of: retried(1, g)}, privacy.Parallel{Part: "1", Of: retried(1, g)}} {
		if _, err := (RDP{}).Loss(e, privacy.AddRemove); err == nil {
			t.Errorf("%v was taken", e)
		}
	}
}

// Retrying calibrates the noise of a plan with its retries.
func TestRetrying(t *testing.T) {
	ten := func(sigma float64) privacy.Event {
		return privacy.Repeated{Count: 10, Of: privacy.Gaussian{Sigma: sigma}}
	}
	b := budget(1, 1e-5)
	a := Retrying(Best{}, 6)
	if a.String() != "best" || Retrying(Best{}, 0) != Accountant(Best{}) {
		t.Errorf("%v", a)
	}
	with, err := Calibrate(a, b, ten)
	without, err2 := Calibrate(Best{}, b, ten)
	if err != nil || err2 != nil || math.Abs(with/without-math.Sqrt(1.6)) > 1e-5 {
		t.Errorf("noise %v and %v, %v, %v; want √1.6 times as much", with, without, err, err2)
	}
	if _, err := NewMeter(retried(6, ten(with)), Best{}, b); err != nil {
		t.Error(err)
	}
	if _, err := NewMeter(retried(7, ten(with)), Best{}, b); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("one retry more: %v", err)
	}
	if _, err := a.Loss(nil, privacy.AddRemove); err == nil {
		t.Error("no event, no error")
	}
}

// One retry of the plan's next batch, of another grouping, of what a plan does not hold, and behind the plan's end.
func TestPlanRetries(t *testing.T) {
	g, h := privacy.Gaussian{Sigma: 50}, privacy.Gaussian{Sigma: 60}
	both := privacy.Composed{h, g}
	wide := privacy.Gaussian{Sigma: 70}
	p, err := NewPlan(retried(2, privacy.Composed{both, privacy.Repeated{Count: 2, Of: g}, privacy.Repeated{Count: 1, Of: both}, wide}), RDP{}, budget(1, 1e-5))
	if err != nil {
		t.Fatal(err)
	}
	charge := func(e privacy.Event, want error, left int) {
		t.Helper()
		before, at, last := p.Charged(), p.next.clone(nil), p.last
		err := p.Charge(e)
		if !errors.Is(err, want) || (want == nil) != (err == nil) || p.retries != left || (p.Charged() > before) != (want == nil) {
			t.Errorf("charging %v: %v, %d retries left; want %v, %d", e, err, p.retries, want, left)
		}
		if want != nil && (!slices.EqualFunc(at.stack, p.next.stack, func(a, b frame) bool { return a.done == b.done }) || !privacy.Equal(last, p.last)) {
			t.Errorf("charging %v changed the plan", e)
		}
	}
	charge(g, ErrNotPlanned, 2)
	charge(both, nil, 2)
	charge(both, nil, 1) // a retry, since g comes
	charge(privacy.Composed{g, h}, ErrNotPlanned, 1)
	charge(privacy.Composed{g}, nil, 1)
	charge(g, nil, 1)    // the plan's second
	charge(both, nil, 1) // the plan's, though both were charged before
	charge(wide, nil, 1)
	charge(g, privacy.ErrExhausted, 1) // not what was charged last
	charge(wide, nil, 0)               // a retry behind the end
	charge(wide, privacy.ErrExhausted, 0)
	charge(privacy.Continued{}, ErrNotPlanned, 0)

	p, err = NewPlan(retried(1, privacy.Composed{g, h}), RDP{}, budget(1, 1e-5))
	if err != nil {
		t.Fatal(err)
	}
	charge(g, nil, 1)
	charge(g, nil, 0)
	charge(g, privacy.ErrExhausted, 0) // and not ErrNotPlanned: it was planned no more often
	charge(h, nil, 0)

	// Two batches that were charged together are more than one retry.
	p, err = NewPlan(retried(1, privacy.Composed{g, h, wide}), RDP{}, budget(1, 1e-5))
	if err != nil {
		t.Fatal(err)
	}
	charge(privacy.Composed{g, h}, nil, 1)
	charge(privacy.Composed{g, h}, ErrNotPlanned, 1)
	charge(wide, nil, 1)
	charge(privacy.Composed{g, h}, privacy.ErrExhausted, 1)

	// What a plan has in one batch may be charged one by one, and made again alone.
	p, err = NewPlan(retried(1, privacy.Repeated{Count: 2, Of: both}), RDP{}, budget(1, 1e-5))
	if err != nil {
		t.Fatal(err)
	}
	charge(h, nil, 1)
	charge(h, nil, 0)
	charge(g, nil, 0)
	charge(both, nil, 0)
}

// batchesDrawn draws a plan for each list of batches that it holds, and the batches.
func batchesDrawn(t *rapid.T) (plan privacy.Composed, batches []privacy.Event) {
	g := func(what string) privacy.Event {
		return privacy.Gaussian{Sigma: float64(rapid.IntRange(3, 5).Draw(t, what)) * 10}
	}
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		b := g("σ")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			b = privacy.Composed{g("Hessian"), b}
		case 1:
			b = privacy.PoissonSampled{Rate: rapid.SampledFrom([]float64{0.1, 0.2}).Draw(t, "rate"), Of: privacy.Composed{b, g("loss")}}
		case 2:
			b = privacy.Shared{Owners: 4, Colluders: 1, Of: b}
		}
		n := rapid.IntRange(1, 4).Draw(t, "times")
		if n == 1 && rapid.Bool().Draw(t, "bare") {
			plan = append(plan, b)
		} else {
			plan = append(plan, privacy.Repeated{Count: n, Of: b})
		}
		for range n {
			batches = append(batches, b)
		}
	}
	return plan, batches
}

// Every run that makes each batch of its plan in order, and up to so many once more, is admitted, also when its charges are made again from its
// record, and settles. Whatever else is charged, what is admitted costs no more than the plan.
func TestPlanWithRetries(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	draws := 0
	rapid.Check(t, func(t *rapid.T) {
		of, batches := batchesDrawn(t)
		left := rapid.IntRange(1, 6).Draw(t, "retries")
		plan := retried(left, of)
		open := func() *Plan {
			p, err := NewPlan(plan, RDP{}, budget(1e6, 1e-5))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		attempts := privacy.Composed{}
		for i, b := range batches {
			n := 1 + rapid.IntRange(0, left).Draw(t, "given up")
			if left -= n - 1; i == len(batches)-1 {
				n += left // T + R attempts in all
			}
			for range n {
				attempts = append(attempts, b)
			}
		}
		p, again := open(), open()
		broken := rapid.IntRange(0, len(attempts)).Draw(t, "broken")
		for i, b := range attempts {
			if err := p.Charge(b); err != nil {
				t.Fatalf("attempt %d of %v: %v", i, plan, err)
			}
			if i == broken { // a process that goes on with the record of another
				for _, b := range attempts[:i+1] {
					if err := again.Charge(b); err != nil {
						t.Fatalf("attempt %d of the record: %v", i, err)
					}
				}
				AllowGaps(again)
				p = again
			}
		}
		for _, b := range batches {
			if err := p.Charge(b); !errors.Is(err, privacy.ErrExhausted) {
				t.Fatalf("one attempt more of %v than %v: %v", b, plan, err)
			}
		}
		if err := partOf(plan, attempts, len(attempts)); err != nil {
			t.Fatalf("%v has charged %v: %v", plan, attempts, err)
		}
		if err := partOf(plan, append(attempts, batches[0]), len(attempts)+1); !errors.Is(err, ErrNotPlanned) {
			t.Fatalf("settled for more than the plan: %v", err)
		}

		// Any charges at all.
		p = open()
		if rapid.Bool().Draw(t, "gaps") {
			AllowGaps(p)
		}
		admitted := privacy.Composed{}
		for range rapid.IntRange(1, 30).Draw(t, "charges") {
			b := rapid.SampledFrom(batches).Draw(t, "batch")
			if err := p.Charge(b); err == nil {
				admitted = append(admitted, b)
			}
		}
		for _, e := range []privacy.Event{attempts, admitted} {
			for _, a := range []Accountant{GDP{}, RDP{Orders: []float64{2, 8, 64}}} {
				whole, err := a.Loss(plan, privacy.AddRemove)
				if err != nil { // there are samples
					continue
				}
				part, err := a.Loss(e, privacy.AddRemove)
				if err != nil {
					t.Fatal(err)
				}
				atMost(t, a.String(), part.Epsilon(1e-6), whole.Epsilon(1e-6))
			}
			if draws++; draws <= 20 {
				least, _, err := PLD{}.Bracket(e, privacy.AddRemove, 1e-6)
				_, most, err2 := PLD{}.Bracket(plan, privacy.AddRemove, 1e-6)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				atMost(t, "pld", least, most)
			}
		}
	})
}

// A batch covers itself, and what is part of it or has more noise; and what it covers costs no more, under both relations.
func TestCovers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sigma := func(what string) float64 { return float64(rapid.IntRange(2, 5).Draw(t, what)) }
		sums := rapid.Bool().Draw(t, "sums")
		a, b := privacy.Composed{}, privacy.Composed{}
		for range rapid.IntRange(1, 3).Draw(t, "releases") {
			var g privacy.Event = privacy.Gaussian{Sigma: sigma("σ")}
			if sums {
				r := sigma("replacement")
				g = privacy.GaussianSum{Presence: r * rapid.SampledFrom([]float64{1, 1.5, 2}).Draw(t, "presence"), Replacement: r}
			}
			if rapid.IntRange(0, 3).Draw(t, "shared") == 0 {
				g = privacy.Shared{Owners: 4, Colluders: 1, Of: g}
			}
			a = append(a, g)
			if len(b) == 0 || rapid.Bool().Draw(t, "also of b") {
				more, _ := privacy.WithNoise(g, rapid.SampledFrom([]float64{1, 1.25, 2}).Draw(t, "more noise"))
				b = slices.Insert(b, rapid.IntRange(0, len(b)).Draw(t, "at"), more)
			}
		}
		on := func(e privacy.Event) privacy.Event { return e }
		if rate := rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "rate"); rate < 1 {
			on = func(e privacy.Event) privacy.Event { return privacy.PoissonSampled{Rate: rate, Of: e} }
		}
		switch {
		case !covers(on(a), on(a)):
			t.Fatalf("%v does not cover itself", a)
		case covers(on(a), privacy.PoissonSampled{Rate: 0.25, Of: b}):
			t.Fatalf("%v covers a sample of another rate", on(a))
		case covers(on(a), on(slices.Concat(a, b))):
			t.Fatalf("%v covers more releases, %v", a, slices.Concat(a, b))
		case covers(on(a), on(b)):
		case sums: // of two moves: the search for a match is not complete
			return
		default:
			t.Fatalf("%v does not cover %v", a, b)
		}
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			for _, view := range []func(privacy.Event) privacy.Event{pooled, privacy.Alone} {
				for _, order := range []float64{2, 8} {
					most, err := RDP{}.Divergence(view(on(a)), adj, order)
					less, err2 := RDP{}.Divergence(view(on(b)), adj, order)
					if (err != nil) != (err2 != nil) {
						t.Fatal(err, err2)
					}
					atMost(t, "divergence", less, most)
				}
			}
		}
	})
}
