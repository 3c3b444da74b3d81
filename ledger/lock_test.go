//go:build unix

package ledger

import (
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/state"
	"github.com/sottodp/sotto/internal/vfs"
)

// A stopped holder of the witness's lock keeps nobody from writing: the witness falls behind, which is normal.
func TestB4StoppedHolderOfTheWitness(t *testing.T) {
	where := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, where)
	reserve(t, l, reservation("clinic", "first"))
	dir, err := state.Dir()
	must(t, err)
	locks, err := filepath.Glob(filepath.Join(dir, "ledgers", "*.lock"))
	must(t, err)
	if len(locks) == 0 {
		t.Fatal("found no lock of a witness")
	}
	for _, path := range locks {
		unlock, err := readfile.Lock(vfs.OS{}, path, 0o600, true)
		must(t, err)
		defer unlock()
	}
	reserve(t, l, reservation("clinic", "second"))
	if n := verify(t, l); n != 3 {
		t.Errorf("found %d entries", n)
	}
	must(t, l.Close())
	open(t, where) // behind, and no alarm
}

// After one wait without a turn the queue is left alone until the waiter has had it.
func TestB6StoppedHolderOfTheQueue(t *testing.T) {
	where := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, where)
	l.store.stuck.Store(true)
	unlock, err := readfile.Lock(vfs.OS{}, where+"-queue", 0o600, true)
	must(t, err)
	defer unlock()
	reserve(t, l, reservation("clinic", "first")) // would wait for 30 s
	if n := verify(t, l); n != 2 {
		t.Errorf("found %d entries", n)
	}
}
