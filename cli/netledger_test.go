//go:build linux

package cli

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// The ledger of an owner that dies right after it published has recorded all that it
// published: the settlement of its run directory costs no less (B2).
func TestB2LedgerAheadOfHub(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 3, rows: 1300, graph: path, schedule: all, rounds: 30, seed: 5", time.Minute)
	const victim = 1
	where := v.d.Owner(victim, "ledger.db")
	l, err := ledger.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.SetBudget(t.Context(), "clinic", "record", ledger.InRDP, privacy.Budget{Epsilon: 5, Delta: 1e-4, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	v.startHub()
	crashes := []string{"published:1", "published:6", "mixed:1", "published:14"}
	spent := func() float64 {
		d, err := l.Dataset(t.Context(), "clinic")
		if err != nil {
			t.Fatal(err)
		}
		return *d.Part
	}
	ahead := func() {
		info, err := runlog.ReadInfo(v.d.Owner(victim, "part"))
		if err != nil {
			t.Error(err)
			return
		}
		rec, err := runlog.JournalRecord(v.journal(victim))
		if err != nil {
			t.Error(err)
			return
		}
		recorded, err := l.Recorded(t.Context(), info.ID)
		if err != nil || recorded < rec.Charged() || rec.Charged() == 0 {
			t.Errorf("the ledger has recorded %d activations, the journal holds %d: %v", recorded, rec.Charged(), err)
		}
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			v.live(i, func(life int) string {
				if i != victim {
					return ""
				}
				if life > 0 && life <= len(crashes) {
					ahead()
				}
				if life < len(crashes) {
					return crashes[life]
				}
				return ""
			}, nil)
		})
	}
	all.Wait()
	v.check(v.all()...)
	if got := spent(); !(got > 0) {
		t.Errorf("%v of the budget is settled", got)
	}
}

// An owner that gives up has cost what its ledger recorded ahead: no less than the activations in its journal.
func TestB2AbandonedOwner(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 2, rows: 2000, schedule: all, rounds: 400, seed: 5", time.Minute)
	for i := range 2 {
		l, err := ledger.Open(t.Context(), v.d.Owner(i, "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		err = l.SetBudget(t.Context(), "clinic", "record", ledger.InRDP, privacy.Budget{Epsilon: 5, Delta: 1e-4, Adjacency: privacy.AddRemove})
		if l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	v.startHub()
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			c, _ := v.owner(i, "published:5")
			c.Run()
		})
	}
	all.Wait()
	for i := range 2 {
		part := filepath.Join(v.d.Owner(i, ""), "part")
		rec, err := runlog.JournalRecord(v.journal(i))
		if err != nil {
			t.Fatal(err)
		}
		info, err := runlog.ReadInfo(part)
		if err != nil {
			t.Fatal(err)
		}
		known, _, err := run.Abandon(t.Context(), part, "")
		if err != nil {
			t.Fatal(err)
		}
		if s := known.Settlement; s == nil || s.Basis != ledger.BasisRecord || s.Batches < rec.Charged() || s.Batches >= info.MaxSteps {
			t.Errorf("owner %d: %d activations in the journal; settled for %+v", i+1, rec.Charged(), s)
		}
		l, err := ledger.Open(t.Context(), v.d.Owner(i, "ledger.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		l.Close()
	}
}
