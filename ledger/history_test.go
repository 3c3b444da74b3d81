package ledger

import (
	"errors"
	"reflect"
	"testing"
)

// A history ends at an entry, is the same whatever came later, and holds no figure of what was charged.
func TestHistory(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		if _, err := l.History(ctx, "clinic", nil); !errors.Is(err, ErrUnknownDataset) {
			t.Errorf("of an unknown dataset: %v", err)
		}
		reserved := func(run string, epsilon float64) {
			t.Helper()
			r := reservation("clinic", run)
			r.Epsilon = epsilon
			token := reserve(t, l, r)
			must(t, l.Settle(ctx, run, token, Settlement{Outcome: Stopped, Epsilon: epsilon / 2}))
		}
		reserved("r1", 0.1)
		reserved("r2", 0.2)
		other := reservation("ward", "r3")
		reserve(t, l, other)
		first, err := l.History(ctx, "clinic", nil)
		must(t, err)
		if len(first.Runs) != 2 || first.Runs[0].ID != "r1" || first.Runs[1].Caps.Epsilon != 0.2 || len(first.Unprotected) != 0 || first.Facts.Spent != (Caps{}) {
			t.Errorf("the history is %+v", first)
		}
		if first.Total == nil || first.Total.Epsilon != 0.3 || first.Total.Delta != 2e-7 {
			t.Errorf("the total is %v, want (0.3, 2e-7)", first.Total)
		}

		reserved("r4", 0.3)
		must(t, l.RecordAccess(ctx, "clinic", nil, "lab1", "lab run"))
		now, err := l.History(ctx, "clinic", nil)
		must(t, err)
		if now.Total != nil || now.Why == "" || len(now.Runs) != 3 || len(now.Unprotected) != 1 || now.Unprotected[0].Why != "lab run" || now.Earlier != 0 {
			t.Errorf("after an access without protection the history is %+v", now)
		}
		again, err := l.History(ctx, "clinic", &first.Head)
		must(t, err)
		if !reflect.DeepEqual(again.Total, first.Total) || len(again.Runs) != 2 || again.Head != first.Head {
			t.Errorf("up to entry %d the history is %+v, and was %+v", first.Head.Seq, again, first)
		}
		for _, h := range []Head{{first.Head.Seq, now.Head.Hash}, {now.Head.Seq + 1, now.Head.Hash}} {
			var broken *ChainError
			if _, err := l.History(ctx, "clinic", &h); !errors.As(err, &broken) {
				t.Errorf("up to an entry that is not there: %v", err)
			}
		}
	})
}

// Under a filter the total is the largest budget that was ever set, whatever was charged.
func TestHistoryOfAFilter(t *testing.T) {
	ctx := t.Context()
	l := open(t, t.TempDir()+"/l.db")
	must(t, l.SetBudget(ctx, "clinic", "record", InZCDP, budget(2, 1e-5)))
	must(t, l.SetBudget(ctx, "clinic", "record", "", budget(1, 1e-6)))
	h, err := l.History(ctx, "clinic", nil)
	must(t, err)
	if h.Total == nil || *h.Total != (Caps{2, 1e-5}) || *h.Facts.Budget != (Caps{1, 1e-6}) || h.Facts.Part != nil {
		t.Errorf("the history is %+v", h)
	}
}

// A shown total is never below the sum.
func TestTotalRoundsUp(t *testing.T) {
	var sum total
	for range 3 {
		sum.add(Caps{0.1234567890123456, 1.2345678901234567e-7})
	}
	sum.add(Caps{1e-20, 1e-30})
	c := sum.above()
	if decimal(c.Epsilon).Cmp(&sum.epsilon) < 0 || decimal(c.Delta).Cmp(&sum.delta) < 0 {
		t.Errorf("%v is below the sum", c)
	}
}
