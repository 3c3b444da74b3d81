package private

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"pgregory.net/rapid"
)

// Row i has the value 1 in column i, so that the sum of gradients at 0 tells which rows are in a batch.
func rowsByColumn(n int) *data.Table {
	rows := make([]row, n)
	for i := range rows {
		rows[i].x = make([]float32, n)
		rows[i].x[i] = 1
	}
	return table(rows, 2, false)
}

// An epoch is charged before its first batch and has each record in one batch; a batch cannot be asked twice; the next
// epoch is charged again and has other places; what the plan does not have is refused.
func TestAllocationByEpochs(tb *testing.T) {
	tb.Parallel()
	rapid.Check(tb, func(t *rapid.T) {
		n, batches, epochs := rapid.IntRange(1, 12).Draw(t, "n"), rapid.IntRange(2, 9).Draw(t, "batches"), rapid.IntRange(1, 3).Draw(t, "epochs")
		s := sample.Allocation{Batches: batches}
		q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 0.01}} // too little to hide a row
		epoch := privacy.Allocated{Batches: batches, Of: privacy.Gaussian{Sigma: 0.01}}
		plan, err := account.NewPlan(privacy.Repeated{Count: epochs, Of: epoch}, account.PLD{}, privacy.Budget{Epsilon: 1e6, Delta: 1e-5, Adjacency: privacy.AddRemove})
		if err != nil {
			t.Fatal(err)
		}
		journal := &memo{}
		cfg := config(tb, rowsByColumn(n), privacy.AddRemove, 20)
		cfg.Meter, cfg.Journal = plan, journal
		o := openOracle(tb, cfg)
		w := make([]float64, n)
		for e := range epochs {
			seen := make([]int, n)
			for k := range batches {
				b, err := o.Batch(tb.Context(), s, q)
				if err != nil {
					t.Fatal(err)
				}
				want := privacy.Event(epoch)
				if k > 0 {
					want = privacy.Continued{}
				}
				if got := journal.charged[len(journal.charged)-1]; !privacy.Equal(got, want) || len(journal.charged) != e*batches+k+1 {
					t.Fatalf("epoch %d, batch %d: charged %v, want %v", e, k, got, want)
				}
				g, err := b.Grad(q, w)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range g { // −½ or ½ over the nominal size of a row that is there
					if math.Abs(v)*s.Size(20) > 0.25 {
						seen[i]++
					}
				}
				if _, err := b.Grad(q, w); !errors.Is(err, oracle.ErrNotCharged) {
					t.Fatalf("asked again: %v", err)
				}
			}
			for i, k := range seen {
				if k != 1 {
					t.Fatalf("epoch %d: row %d is in %d batches", e, i, k)
				}
			}
		}
		if _, err := o.Batch(tb.Context(), s, q); !errors.Is(err, privacy.ErrExhausted) {
			t.Fatalf("an epoch more: %v", err)
		}
		if len(journal.charged) != epochs*batches || len(journal.released) != epochs*batches {
			t.Fatalf("%d charges and %d releases", len(journal.charged), len(journal.released))
		}
	})
}

// An epoch that the journal does not have was not charged: nor is one in which it failed continued.
func TestAllocationAfterAFailedCharge(t *testing.T) {
	t.Parallel()
	s := sample.Allocation{Batches: 3}
	q := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	journal := &memo{}
	cfg := config(t, rowsByColumn(5), privacy.AddRemove, 5)
	cfg.Journal = journal
	o := openOracle(t, cfg)
	full := errors.New("no space left")
	for i, fail := range []error{full, nil, nil, full, nil, nil, nil, nil} {
		journal.fail = fail
		if _, err := o.Batch(t.Context(), s, q); !errors.Is(err, fail) {
			t.Fatalf("question %d: %v", i, err)
		}
	}
	epoch, more := s.Event(q.Event()), privacy.Event(privacy.Continued{})
	want := []privacy.Event{epoch, more, epoch, more, more, epoch}
	if !slices.EqualFunc(journal.charged, want, privacy.Equal) {
		t.Errorf("charged %v, want %v", journal.charged, want)
	}
}

// What is asked between two batches of an epoch ends it, and what random allocation has no theorem for is refused.
func TestAllocationIsNotContinued(t *testing.T) {
	t.Parallel()
	s := sample.Allocation{Batches: 4}
	one := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	other := oracle.Grad{Clip: clip.Norm{C: 2}, Noise: mech.Gaussian{Sigma: 1}}
	journal := &memo{}
	cfg := config(t, rowsByColumn(5), privacy.AddRemove, 5)
	cfg.Journal = journal
	o := openOracle(t, cfg)
	ask := func(s sample.Sampler, q oracle.Query) string {
		t.Helper()
		if _, err := o.Batch(t.Context(), s, q); err != nil {
			t.Fatal(err)
		}
		return journal.charged[len(journal.charged)-1].String()
	}
	epoch, more := s.Event(one.Event()).String(), privacy.Continued{}.String()
	for i, c := range []struct {
		s    sample.Sampler
		q    oracle.Query
		want string
	}{
		{s, one, epoch}, {s, one, more}, {s, other, epoch}, {s, one, epoch}, {s, one, more}, {sample.Full{}, one, one.Event().String()},
		{s, one, epoch}, {s, one, more}, {s, one, more}, {s, one, more}, {s, one, epoch}, {sample.Allocation{Batches: 5}, one, "Allocated(5 batches, Gaussian(σ=1))"},
	} {
		if got := ask(c.s, c.q); got != c.want {
			t.Errorf("question %d charged %s, want %s", i, got, c.want)
		}
	}
	refused := func(cfg Config, s sample.Sampler, why string) {
		t.Helper()
		o := openOracle(t, cfg)
		if _, err := o.Batch(t.Context(), s, one); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v", s, err)
		}
	}
	refused(cfg, sample.Allocation{Batches: 4, Batch: 1}, "begins with batch 0")
	refused(config(t, rowsByColumn(5), privacy.ReplaceOne, 5), s, "random allocation")
	local, err := NewLocal(cfg.Table, cfg.Model, cfg.Facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	cfg.Table, cfg.Summer = &data.Table{Dim: 5, Classes: 2, NormBound: 1, Unit: testUnit, Labeled: true}, &diary{Summer: local}
	refused(cfg, s, "in this process")
}
