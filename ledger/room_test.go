package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/simdisk"
)

// A disk that fills at any write of a ledger's making or of its first entry leaves no ledger without entries, and none that
// is missed: once there is room, the same run is reserved. A ledger that has an entry stays.
func TestDiskFullAtCreation(t *testing.T) {
	race.Skip(t) // as for other tests on the simulated disk
	t.Setenv("XDG_STATE_HOME", "/state")
	mount := simdisk.NewMount()
	const path = "/disk/ledger.db"
	refused := 0
	for _, fault := range []simdisk.Fault{simdisk.ENOSPC, simdisk.Short} {
		for full := 0; ; full++ {
			d := simdisk.New(1)
			mount.Disk = d
			disk := Disk{FS: d, SQLite: mount.Name}
			must(t, errors.Join(d.MkdirAll("/disk", 0o700), d.MkdirAll("/state", 0o700), d.SyncDir("/")))
			reserve := func(run string, full int) (writes int, err error) { // the write of that number finds no room
				plan := map[int]simdisk.Fault{}
				d.Start(plan)
				d.Told = func(n int, c simdisk.Call) {
					if c.Kind == simdisk.Writes {
						if writes == full || run == "second" {
							plan[n] = fault
						}
						writes++
					}
				}
				l, err := disk.Open(t.Context(), path)
				if err != nil {
					return writes, err
				}
				defer l.Close()
				_, err = l.Reserve(t.Context(), reservation("clinic", run))
				return writes, err
			}
			writes, err := reserve("first", full)
			if err == nil && writes <= full { // all had their fault
				break
			}
			if err != nil {
				refused++
				if _, there := d.Stat(path); !errors.Is(there, os.ErrNotExist) || errors.Is(err, ErrUncertain) {
					t.Fatalf("%v at write %d: %v; the ledger: %v", fault, full, err, there)
				}
				if _, err := reserve("first", -1); err != nil {
					t.Fatalf("%v at write %d, with room again: %v", fault, full, err)
				}
				continue
			}
			// It has an entry now.
			if _, err := reserve("second", 0); err == nil {
				t.Fatalf("a full disk took an entry")
			}
			d.Told = nil
			d.Start(nil)
			l, err := disk.Find(t.Context(), path)
			must(t, err)
			if runs, err := l.Runs(t.Context(), ""); err != nil || len(runs) != 1 || runs[0].ID != "first" {
				t.Fatalf("%v at write %d: found %v, %v", fault, full, runs, err)
			}
			l.Close()
		}
	}
	if refused < 50 {
		t.Errorf("%d writes found no room; want all of SQLite's", refused)
	}
}

// TestUnmadeLedgerOfTwo: while one process finds no room for the first entry of the ledger that it made, another one has the
// ledger open. Its entry, if it came first, stays; otherwise it is refused, and nothing is missed afterwards.
func TestUnmadeLedgerOfTwo(t *testing.T) {
	for _, first := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		maker, other := open(t, path), open(t, path)
		if first {
			reserve(t, other, reservation("clinic", "other"))
		}
		if _, err := maker.store.db.Exec(`PRAGMA max_page_count = 1`); err != nil { // no page more than there are
			t.Fatal(err)
		}
		r := reservation("clinic", "maker")
		r.Why = strings.Repeat("x", 1<<16)
		if _, err := maker.Reserve(t.Context(), r); err == nil || maker.unmade == first {
			t.Fatalf("the other was first: %v; the ledger was unmade: %v; %v", first, maker.unmade, err)
		}
		if !first {
			if _, err := other.Reserve(t.Context(), reservation("clinic", "other")); !errors.Is(err, ErrGone) {
				t.Fatalf("found %v", err)
			}
			reserve(t, open(t, path), reservation("clinic", "other"))
		}
		if n := verify(t, open(t, path)); n != 2 {
			t.Errorf("the other was first: %v; %d entries", first, n)
		}
	}
}
