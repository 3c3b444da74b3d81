package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A view reads what a ledger holds while that is open elsewhere, and changes nothing.
func TestView(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		if _, err := View(t.Context(), where); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("a ledger that is not there: %v", err)
		}
		l := open(t, where)
		must(t, l.SetBudget(t.Context(), "clinic", "record", "", budget(1, 1e-5)))
		v, err := View(t.Context(), where)
		must(t, err)
		defer v.Close()
		limit := func(want float64) {
			t.Helper()
			d, err := v.Dataset(t.Context(), "clinic")
			must(t, err)
			if d.Budget.Epsilon != want {
				t.Errorf("the lifetime ε is %v, want %v", d.Budget.Epsilon, want)
			}
		}
		limit(1)
		if n := verify(t, v); n != 2 {
			t.Errorf("%d entries", n)
		}
		if err := v.SetBudget(t.Context(), "clinic", "record", "", budget(2, 1e-5)); err == nil {
			t.Error("a view has set a budget")
		}
		limit(1)
		must(t, l.SetBudget(t.Context(), "clinic", "record", "", budget(3, 1e-5)))
		limit(3)
	})
}

// A view of a file makes none, and leaves the bytes of the one that is there.
func TestViewOfAFile(t *testing.T) {
	dir := t.TempDir()
	where, empty := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "empty.db")
	must(t, open(t, where).SetBudget(t.Context(), "clinic", "record", "", budget(1, 1e-5)))
	must(t, os.WriteFile(empty, nil, 0o600))
	before, err := os.ReadFile(where)
	must(t, err)
	v, err := View(t.Context(), where)
	must(t, err)
	verify(t, v)
	must(t, v.Close())
	if _, err := View(t.Context(), empty); !errors.Is(err, ErrNotLedger) {
		t.Errorf("an empty file: %v", err)
	}
	after, err := os.ReadFile(where)
	must(t, err)
	if info, err := os.Stat(empty); err != nil || info.Size() != 0 || string(after) != string(before) {
		t.Errorf("a file has changed (%v)", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 3 { // and the queue
		t.Errorf("%v beside the ledger (%v)", names, err)
	}
}
