package account

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy"
)

// TestParallel: under add-or-remove a divided table costs what its dearest part does, with all that was asked of the whole
// table, and under replace-one what all releases do.
func TestParallel(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	release := rapid.Custom(func(t *rapid.T) privacy.Event {
		sigma := rapid.Float64Range(0.5, 20).Draw(t, "sigma")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return privacy.Laplace{Scale: sigma}
		case 1:
			return privacy.Repeated{Count: rapid.IntRange(0, 3).Draw(t, "count"), Of: privacy.Gaussian{Sigma: sigma}}
		}
		return privacy.Gaussian{Sigma: sigma}
	})
	rapid.Check(t, func(t *rapid.T) {
		of := map[string]privacy.Composed{} // "": of the whole table
		var divided, all privacy.Composed
		for range rapid.IntRange(1, 6).Draw(t, "releases") {
			part, e := rapid.SampledFrom([]string{"", "training", "holdout"}).Draw(t, "part"), release.Draw(t, "release")
			all = append(all, e)
			if part == "" {
				for _, p := range []string{"", "training", "holdout"} {
					of[p] = append(of[p], e)
				}
				divided = append(divided, e)
				continue
			}
			of[part] = append(of[part], e)
			if rapid.Bool().Draw(t, "one by one") {
				divided = append(divided, privacy.InPart(part, e))
			} else {
				divided = append(divided, privacy.Parallel{Part: part, Of: e})
			}
		}
		delta := math.Pow(10, -rapid.Float64Range(2, 9).Draw(t, "delta"))
		a := rapid.SampledFrom(append([]Accountant{Best{}}, candidates...)).Draw(t, "accountant")
		epsilon := func(e privacy.Event, adj privacy.Adjacency) float64 {
			l, err := a.Loss(e, adj)
			var refused *UnsupportedError
			if errors.As(err, &refused) {
				return math.NaN()
			}
			if err != nil {
				t.Fatal(err)
			}
			return l.Epsilon(delta)
		}
		same := func(got, want float64, adj privacy.Adjacency) {
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) && !(math.Abs(got-want) <= 1e-9*want) {
				t.Fatalf("%v under %v: %v, want %v for %v", a, adj, got, want, divided)
			}
		}
		want := epsilon(of[""], privacy.AddRemove) // of no part is asked
		for _, part := range []string{"training", "holdout"} {
			if e := epsilon(of[part], privacy.AddRemove); e > want || math.IsNaN(e) {
				want = e
			}
		}
		same(epsilon(divided, privacy.AddRemove), want, privacy.AddRemove)
		same(epsilon(divided, privacy.ReplaceOne), epsilon(all, privacy.ReplaceOne), privacy.ReplaceOne)
		for _, c := range []Currency{PureCurrency{}, ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
			cost, err := c.cost(divided, privacy.AddRemove)
			if err != nil {
				continue
			}
			for i, v := range cost {
				most := 0.0
				for _, part := range []string{"", "training", "holdout"} {
					one, err := c.cost(of[part], privacy.AddRemove)
					if err != nil {
						t.Fatal(err)
					}
					most = math.Max(most, one[i])
				}
				same(v, most, privacy.AddRemove)
			}
		}
	})
}

// TestParallelOfEnumeratedLaws: the largest δ of randomized responses, each of the presence of a record in the whole table or in a
// part, and the second of twice the noise after a 1 of the first, is the loss of a divided table or less.
func TestParallelOfEnumeratedLaws(t *testing.T) {
	t.Parallel()
	// Of bits: whole table, part a, part b. The answer to the second is worth e, or e/2 if the first answer was 1.
	costs := []float64{0.4, 0.9, 0.6}
	probability := func(transcript int, inA, inB bool) float64 {
		p := 1.0
		for k, in := range []bool{true, inA, inB} {
			e := costs[k]
			if k == 1 && transcript&1 == 1 {
				e /= 2
			}
			bit := transcript >> k & 1
			truth := 0
			if in {
				truth = 1
			}
			yes := math.Exp(e) / (1 + math.Exp(e))
			if bit == truth {
				p *= yes
			} else {
				p *= 1 - yes
			}
		}
		return p
	}
	without := func(transcript int) float64 { // the record is nowhere
		p := probability(transcript, false, false)
		yes := math.Exp(costs[0]) / (1 + math.Exp(costs[0]))
		if transcript&1 == 1 {
			return p / yes * (1 - yes)
		}
		return p / (1 - yes) * yes
	}
	event := privacy.Composed{privacy.PureDP{Epsilon: costs[0]}, privacy.Parallel{Part: "a", Of: privacy.PureDP{Epsilon: costs[1]}}, privacy.Parallel{Part: "b", Of: privacy.PureDP{Epsilon: costs[2]}}}
	for _, a := range []Accountant{Pure{}, PLD{}, RDP{}, Best{}} {
		l, err := a.Loss(event, privacy.AddRemove)
		if err != nil {
			t.Fatal(err)
		}
		if least, most := l.Epsilon(0), costs[0]+costs[1]; a == Accountant(Pure{}) && math.Abs(least-most) > 1e-12 {
			t.Errorf("pure: %v, want %v", least, most)
		}
		for epsilon := 0.0; epsilon < 2; epsilon += 0.1 {
			worst := 0.0
			for _, inA := range []bool{true, false} {
				there, gone := 0.0, 0.0
				for transcript := range 8 {
					p, q := probability(transcript, inA, !inA), without(transcript)
					there += math.Max(0, p-math.Exp(epsilon)*q)
					gone += math.Max(0, q-math.Exp(epsilon)*p)
				}
				worst = math.Max(worst, math.Max(there, gone))
			}
			if bound := l.Delta(epsilon); bound < worst-1e-12 {
				t.Errorf("%v at ε = %v: δ = %v, and the laws have %v", a, epsilon, bound, worst)
			}
		}
	}
}

// TestParallelPlan: a plan takes what it holds of each part, in its order, and nothing of another.
func TestParallelPlan(t *testing.T) {
	t.Parallel()
	step, score := privacy.Gaussian{Sigma: 20}, privacy.Gaussian{Sigma: 5}
	plan := privacy.Composed{privacy.InPart("training", privacy.Repeated{Count: 3, Of: step}), privacy.InPart("holdout", score)}
	whole := privacy.Composed{privacy.Repeated{Count: 3, Of: step}, score}
	dearest, err := (GDP{}).Loss(score, privacy.AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	budget := privacy.Budget{Epsilon: dearest.Epsilon(1e-5), Delta: 1e-5, Adjacency: privacy.AddRemove}
	if _, err := NewPlan(whole, GDP{}, budget); !errors.Is(err, privacy.ErrExhausted) {
		t.Fatalf("all on the same records: %v", err)
	}
	p, err := NewPlan(plan, GDP{}, budget)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Charge(privacy.Parallel{Part: "holdout", Of: step}); !errors.Is(err, ErrNotPlanned) {
		t.Errorf("a step on the holdout: %v", err)
	}
	if err := p.Charge(step); !errors.Is(err, ErrNotPlanned) {
		t.Errorf("a step on the whole table: %v", err)
	}
	for i := range 3 {
		if err := p.Charge(privacy.Parallel{Part: "training", Of: privacy.Composed{step}}); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if err := p.Charge(privacy.Parallel{Part: "holdout", Of: score}); err != nil {
		t.Fatal(err)
	}
	if err := p.Charge(privacy.Parallel{Part: "holdout", Of: score}); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("a second score: %v", err)
	}
	if l, err := (Best{}).Loss(plan, privacy.AddRemove); err != nil {
		t.Fatal(err)
	} else if curve, err := NewTradeOff(l, 1e-5); err != nil || math.Abs(curve.Mu-math.Max(math.Sqrt(3)/20, 1.0/5)) > 1e-9 {
		t.Errorf("μ = %v, %v", curve, err)
	}
	epoch := privacy.Parallel{Part: "training", Of: privacy.Allocated{Batches: 2, Of: step}}
	if p, err = NewPlan(epoch, Best{}, budget); err != nil {
		t.Fatal(err)
	}
	for i, e := range []privacy.Event{epoch, privacy.Continued{}} {
		if err := p.Charge(e); err != nil {
			t.Errorf("batch %d of an epoch: %v", i, err)
		}
	}
}

// TestSettleParts: a method that converges asks for less of its part than was planned, and the other part is asked then. The run settles
// for what it asked. Nothing is left out within a part, and none comes twice.
func TestSettleParts(t *testing.T) {
	t.Parallel()
	first, step, score := privacy.Gaussian{Sigma: 10}, privacy.Gaussian{Sigma: 20}, privacy.Gaussian{Sigma: 5}
	training := func(n int, e privacy.Event) privacy.Event {
		return privacy.Repeated{Count: n, Of: privacy.InPart("training", e)}
	}
	holdout := privacy.Parallel{Part: "holdout", Of: score}
	plan := privacy.Composed{training(1, first), training(3, step), holdout}
	for name, c := range map[string]struct {
		charged privacy.Composed
		ok      bool
	}{
		"all":               {privacy.Composed{training(1, first), training(3, step), holdout}, true},
		"no score":          {privacy.Composed{training(1, first), training(2, step)}, true},
		"converged":         {privacy.Composed{training(1, first), training(1, step), holdout}, true},
		"the score alone":   {privacy.Composed{holdout}, true},
		"a step left out":   {privacy.Composed{training(2, step), holdout}, false},
		"a score more":      {privacy.Composed{training(1, first), holdout, holdout}, false},
		"a step behind it":  {privacy.Composed{training(1, first), holdout, training(1, step)}, false},
		"of the whole":      {privacy.Composed{training(1, first), training(1, step), score}, false},
		"of a third part":   {privacy.Composed{training(1, first), privacy.Parallel{Part: "test", Of: score}}, false},
		"a score with less": {privacy.Composed{training(1, first), privacy.Parallel{Part: "holdout", Of: first}}, false},
	} {
		tally := NewTally(ZCDPCurrency{}, privacy.AddRemove)
		if err := tally.Hold("run", plan); err != nil {
			t.Fatal(err)
		}
		err := tally.Settle("run", c.charged, math.MaxInt)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotPlanned) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		spent := NewTally(ZCDPCurrency{}, privacy.AddRemove)
		if err := spent.Hold("run", c.charged); err != nil {
			t.Fatal(err)
		}
		if got, want := tally.Epsilon(1e-5), spent.Epsilon(1e-5); got != want {
			t.Errorf("%s: ε = %v settled, %v for what was asked", name, got, want)
		}
	}
}

// TestTwoRulesAddUp: the parts of two rules share records, so everything composes, however a rule is written; those of one rule do not.
func TestTwoRulesAddUp(t *testing.T) {
	t.Parallel()
	train, score := privacy.Repeated{Count: 4, Of: privacy.Gaussian{Sigma: 4}}, privacy.Gaussian{Sigma: 2}
	all, most := privacy.Composed{train, score}, train // which costs as much as score
	for name, c := range map[string]struct {
		event privacy.Event
		added bool
	}{
		"one rule":         {privacy.Composed{privacy.Parallel{Part: "training", Rule: "a", Of: train}, privacy.Parallel{Part: "holdout", Rule: "a", Of: score}}, false},
		"one without name": {privacy.Composed{privacy.Parallel{Part: "training", Of: train}, privacy.Parallel{Part: "holdout", Of: score}}, false},
		"one, twice named": {privacy.Composed{privacy.Parallel{Part: "training", Rule: "a", Of: train}, privacy.InPart("holdout of split a", score)}, false},
		"two rules":        {privacy.Composed{privacy.Parallel{Part: "training", Rule: "a", Of: train}, privacy.Parallel{Part: "holdout", Rule: "b", Of: score}}, true},
		"old names":        {privacy.Composed{privacy.Parallel{Part: "training of split a", Of: train}, privacy.Parallel{Part: "holdout of split b", Of: score}}, true},
		"one by one":       {privacy.Composed{privacy.InPart("training of split a", train), privacy.InPart("holdout of split b", score)}, true},
		"the same part":    {privacy.Composed{privacy.InPart("training of split a", train), privacy.InPart("training of split b", score)}, true},
		"one has no name":  {privacy.Composed{privacy.InPart("training", train), privacy.InPart("holdout of split b", score)}, true},
		"inside":           {privacy.Composed{privacy.Composed{privacy.InPart("training of split a", train)}, privacy.Repeated{Count: 1, Of: privacy.InPart("holdout of split b", score)}}, true},
	} {
		want := privacy.Event(most)
		if c.added {
			want = all
		}
		for _, a := range append([]Accountant{Best{}}, candidates...) {
			got, err := a.Loss(c.event, privacy.AddRemove)
			if errors.As(err, new(*UnsupportedError)) {
				continue
			}
			l, err2 := a.Loss(want, privacy.AddRemove)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if g, w := got.Epsilon(1e-5), l.Epsilon(1e-5); math.Abs(g-w) > 1e-3*w {
				t.Errorf("%s: %v gives ε = %v, want %v", name, a, g, w)
			}
		}
		for _, currency := range []Currency{ZCDPCurrency{}, GDPCurrency{}, RDPCurrency{}} {
			got, err := currency.cost(c.event, privacy.AddRemove)
			w, err2 := currency.cost(want, privacy.AddRemove)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for i := range w {
				if math.Abs(got[i]-w[i]) > 1e-9*w[i] {
					t.Errorf("%s: %v costs %v, want %v", name, currency, got[i], w[i])
				}
			}
		}
		least, err := PLD{}.Least(c.event, privacy.AddRemove, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		if c.added && least != 0 { // records need not be in both parts
			t.Errorf("%s: claims ε ≥ %v", name, least)
		}
	}
}
