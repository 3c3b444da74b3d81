package private

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// parts divides a table as its relation has it: n of its records are held out, or about that share of them.
func parts(t *data.Table, adj privacy.Adjacency, key []byte, n int) [2]*data.Table {
	held := data.HeldOut(t, key, 0.4)
	if adj == privacy.ReplaceOne {
		held = data.HeldOutOf(t, key, n)
	}
	part := func(out bool) *data.Table {
		return data.Subset([]*data.Table{t}, func(record int) bool { return held[record] == out })
	}
	return [2]*data.Table{part(false), part(true)}
}

// What is asked of the parts of a divided table shows a record in the part that it is in, by what a record may show, and the noise
// and the sums of the other part stay to the last bit. Under replace-one a record may leave one part and another enter the other.
func TestRecordIsInOnePart(t *testing.T) {
	ask := askPart(t)
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "rows"), 1))
		adj := rapid.SampledFrom([]privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne}).Draw(t, "adjacency")
		rows := randomRows(rnd, rapid.IntRange(3, 40).Draw(t, "n"), 3)
		for i := range rows { // equal records are others' all the same
			if rapid.IntRange(0, 3).Draw(t, "like the first") == 0 {
				rows[i] = rows[0]
			}
		}
		at, key := rapid.IntRange(0, len(rows)-1).Draw(t, "at"), rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")
		other := slices.Delete(slices.Clone(rows), at, at+1)
		if adj == privacy.ReplaceOne {
			other = slices.Insert(other, rapid.IntRange(0, len(other)).Draw(t, "to"), randomRows(rnd, 1, 3)[0])
		}
		n := len(rows) / 3
		with, without := parts(table(rows, 2, false), adj, key, n), parts(table(other, 2, false), adj, key, n)
		moved := 0
		for k := range with {
			a, b := ask(with[k], adj), ask(without[k], adj)
			if slices.Equal(a.release, b.release) && slices.Equal(a.sum, b.sum) {
				continue
			}
			moved++
			most := 1.0
			if adj == privacy.ReplaceOne {
				most = 2
			}
			if d := distance(a.sum, b.sum); d > most {
				t.Fatalf("one record moves the sum of part %d by %v", k, d)
			}
		}
		if adj == privacy.AddRemove && moved > 1 {
			t.Fatal("one record more moves both parts")
		}
	})
}

type answer struct{ sum, release []float64 }

// askPart returns a function that asks a part for its clipped sum, exact and with noise.
func askPart(t *testing.T) func(tab *data.Table, adj privacy.Adjacency) answer {
	return func(tab *data.Table, adj privacy.Adjacency) answer {
		w := []float64{0.5, -1, 2}
		rows := 20
		if adj == privacy.ReplaceOne {
			rows = max(1, tab.Rows())
			if tab.Rows() == 0 {
				return answer{sum: make([]float64, 3)}
			}
		}
		o := openOracle(t, config(t, tab, adj, rows))
		q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 2}}
		b, err := o.Batch(t.Context(), sample.Full{}, q)
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grad(q, w)
		if err != nil {
			t.Fatal(err)
		}
		return answer{clippedSum(t, tab, w, 1, 1), slices.Clone(g)}
	}
}

// A charge names its part, before anything is drawn, and a plan of two parts admits each part's own releases, in their order.
func TestChargesNameThePart(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(1, 1)), 60, 3)
	split := parts(table(rows, 2, false), privacy.AddRemove, []byte("key"), 0)
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 2}}
	poisson := sample.Poisson{Rate: 0.5}
	plan := privacy.Composed{
		privacy.InPart("training", privacy.Repeated{Count: 2, Of: poisson.Event(q.Event())}),
		privacy.InPart("holdout", q.Event()),
	}
	meter, err := account.NewPlan(plan, account.Best{}, privacy.Budget{Epsilon: 8, Delta: 1e-5, Adjacency: privacy.AddRemove})
	if err != nil {
		t.Fatal(err)
	}
	journal := &memo{}
	open := func(part string, table *data.Table, first int) *Oracle {
		c := config(t, table, privacy.AddRemove, 30)
		c.Part, c.Meter, c.Journal, c.First, c.Streams = part, meter, journal, first, noise.SeededStreams(3)
		return openOracle(t, c)
	}
	ask := func(o *Oracle, s sample.Sampler) error {
		b, err := o.Batch(t.Context(), s, q)
		if err == nil {
			_, err = b.Grad(q, make([]float64, 3))
		}
		return err
	}
	training, held := open("training", split[0], 0), open("holdout", split[1], 2)
	if err := ask(held, sample.Full{}); !errors.Is(err, account.ErrNotPlanned) || len(journal.charged) > 0 {
		t.Fatalf("the part held out was asked before its turn: %v, %d charges", err, len(journal.charged))
	}
	for range 2 {
		if err := ask(training, poisson); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(training, sample.Full{}); !errors.Is(err, account.ErrNotPlanned) {
		t.Fatalf("the training part took the other part's release: %v", err)
	}
	if err := ask(held, sample.Full{}); err != nil {
		t.Fatal(err)
	}
	want := []privacy.Event{
		privacy.Parallel{Part: "training", Of: poisson.Event(q.Event())}, privacy.Parallel{Part: "training", Of: poisson.Event(q.Event())},
		privacy.Parallel{Part: "holdout", Of: q.Event()},
	}
	if !slices.EqualFunc(journal.charged, want, privacy.Equal) || len(journal.released) != 3 {
		t.Errorf("the journal holds %v", journal.charged)
	}
}
