package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// owner gives the test a state directory of its own.
func owner(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	return filepath.Join(dir, "sotto", "ledgers")
}

// lostAs wants every way to open the ledger to find it lost in this way.
func lostAs(t *testing.T, where, found string) {
	t.Helper()
	for how, open := range map[string]func(context.Context, string) (*Ledger, error){"Open": Open, "Find": Find, "View": View} {
		l, err := open(t.Context(), where)
		if err == nil {
			l.Close()
			t.Fatalf("%s: the ledger was opened; want it refused as %s", how, found)
		}
		var lost *WitnessError
		if !errors.As(err, &lost) || !errors.Is(err, ErrWitness) || lost.Found != found {
			t.Fatalf("%s: found %v; want it refused as %s", how, err, found)
		}
		for _, says := range []string{"sotto ledger accept", "ut th"} { // put that, or the, file back
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: the error does not say %q: %v", how, says, err)
			}
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, b, 0o600))
}

// B4: a ledger that was used here and is missing, emptied, overwritten, older, forked or
// exchanged is refused, and left as it is.
func TestB4LostLedgers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, path, older string)
		found  string
	}{
		"deleted":  {func(t *testing.T, path, _ string) { must(t, os.Remove(path)) }, Missing},
		"emptied":  {func(t *testing.T, path, _ string) { must(t, os.Truncate(path, 0)) }, Emptied},
		"one byte": {func(t *testing.T, path, _ string) { must(t, os.Truncate(path, 1)) }, Emptied},
		"overwritten": {func(t *testing.T, path, _ string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("name,age\n", 500)), 0o600))
		}, Emptied},
		"older": {func(t *testing.T, path, older string) { copyFile(t, older, path) }, Older},
		"forked": {func(t *testing.T, path, older string) {
			copyFile(t, older, path)
			owner(t) // somebody else goes on with the copy
			l := open(t, path)
			reserve(t, l, reservation("clinic", "other"))
			reserve(t, l, reservation("clinic", "another"))
			l.Close()
		}, Forked},
		"exchanged": {func(t *testing.T, path, _ string) {
			must(t, os.Remove(path))
			owner(t)
			l := open(t, path)
			reserve(t, l, reservation("clinic", "other"))
			l.Close()
		}, Another},
	} {
		t.Run(name, func(t *testing.T) {
			owner(t)
			home := os.Getenv("XDG_STATE_HOME")
			path := filepath.Join(t.TempDir(), "ledger.db")
			older := filepath.Join(t.TempDir(), "older.db")
			l := open(t, path)
			reserve(t, l, reservation("clinic", "first"))
			copyFile(t, path, older)
			reserve(t, l, reservation("clinic", "second"))
			must(t, l.Close())
			c.change(t, path, older)
			t.Setenv("XDG_STATE_HOME", home)
			before, _ := os.ReadFile(path)
			lostAs(t, path, c.found)
			after, err := os.ReadFile(path)
			if string(before) != string(after) || os.IsNotExist(err) != (c.found == Missing) {
				t.Error("the file was changed")
			}

			if name == "one byte" || name == "overwritten" { // something that somebody may still want
				_, err := Accept(t.Context(), path)
				wantError(t, err, ErrNotLedger)
				must(t, os.Rename(path, path+".away"))
			}
			r, err := Accept(t.Context(), path)
			must(t, err)
			if r.Last.Seq != 3 {
				t.Errorf("the restoration says %+v; want that 3 entries were seen", r)
			}
			l = open(t, path)
			reserve(t, l, reservation("clinic", "next"))
			d, err := l.Dataset(t.Context(), "clinic")
			must(t, err)
			if len(d.Restored) != 1 || !strings.HasPrefix(d.Statement, "The ledger was restored on ") || !strings.Contains(d.Statement, "are missing. No statement covers the missing charges") {
				t.Errorf("the statement is %q", d.Statement)
			}
			all, err := l.Datasets(t.Context())
			must(t, err)
			if len(all) != 1 || all[0].Statement != d.Statement {
				t.Errorf("the list says %v", all)
			}
			verify(t, l)
			must(t, l.Close())
			_, err = Accept(t.Context(), path)
			wantError(t, err, ErrNothingLost)
			if c.found == Older || c.found == Forked { // the one that was lost comes back
				_, err = View(t.Context(), older)
				wantError(t, err, ErrWitness)
			}
		})
	}
}

// B4: an older copy is noticed wherever it lies, and through symbolic links; a
// ledger that was moved is the same one.
func TestB4CopiesElsewhere(t *testing.T) {
	owner(t)
	dir := t.TempDir()
	path, copied, moved, link := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "copy.db"), filepath.Join(dir, "moved.db"), filepath.Join(dir, "link.db")
	open(t, path).Close()
	must(t, os.Symlink(path, link))
	l := open(t, link)
	reserve(t, l, reservation("clinic", "first"))
	l.Close()
	copyFile(t, path, copied)
	c, err := View(t.Context(), copied)
	must(t, err) // as new as the other
	c.Close()
	l = open(t, path)
	reserve(t, l, reservation("clinic", "second"))
	l.Close()
	lostAs(t, copied, Older)
	must(t, os.Rename(path, moved))
	open(t, moved).Close()
	lostAs(t, path, Missing)
	lostAs(t, link, Missing)
	must(t, os.Remove(link))
	lostAs(t, link, Missing)
}

// B4: a witness that is behind is normal, and moves forward.
func TestB4WitnessMovesForward(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		owner(t)
		home := os.Getenv("XDG_STATE_HOME")
		reserve(t, open(t, where), reservation("clinic", "first"))
		owner(t) // another machine
		reserve(t, open(t, where), reservation("clinic", "second"))
		t.Setenv("XDG_STATE_HOME", home)
		v, err := View(t.Context(), where)
		must(t, err)
		defer v.Close()
		seen, err := v.witness.last(v.witness.id)
		must(t, err)
		if seen.Head.Seq != 2 {
			t.Errorf("a view has moved the witness to entry %d", seen.Head.Seq)
		}
		l := open(t, where)
		head, err := l.Head(t.Context())
		must(t, err)
		if seen, err := l.witness.last(l.witness.id); err != nil || seen.Head != head {
			t.Errorf("the witness has entry %v, the ledger %v (%v)", seen.Head, head, err)
		}
	})
}

// B4: with any concurrent writers, the witness ends at the last entry.
func TestB4WitnessOfManyWriters(t *testing.T) {
	dir := owner(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	var writers sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		writers.Go(func() {
			l, err := Open(t.Context(), path)
			for i := 0; err == nil && i < 10; i++ {
				_, err = l.Reserve(t.Context(), reservation("clinic", name+strings.Repeat("i", i)))
			}
			if err == nil {
				err = l.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	l := open(t, path)
	head, err := l.Head(t.Context())
	must(t, err)
	seen, err := l.witness.last(l.witness.id)
	must(t, err)
	if seen.Head != head || head.Seq != 41 {
		t.Errorf("the witness has entry %v, the ledger %v", seen.Head, head)
	}
	info, err := os.Stat(dir)
	must(t, err)
	files, err := os.ReadDir(dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 || len(files) != 3 { // a place, a ledger, its lock
		t.Errorf("found %v with %v", info.Mode(), files)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v (%v)", f.Name(), info.Mode(), err)
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		if strings.Contains(string(b), string(l.key)) {
			t.Errorf("%s holds the key of the content marks", f.Name())
		}
	}
}

// B4: without a state directory a ledger goes on, with one warning.
func TestB4NoStateDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	must(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("XDG_STATE_HOME", file)
	var says []string
	warned = sync.Once{}
	Warn = func(text string) { says = append(says, text) }
	t.Cleanup(func() { Warn, warned = nil, sync.Once{} })
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	reserve(t, l, reservation("clinic", "first"))
	reserve(t, open(t, path), reservation("clinic", "second"))
	v, err := View(t.Context(), path)
	must(t, err)
	v.Close()
	if len(says) != 1 || !strings.Contains(says[0], "cannot be noted in the state directory") {
		t.Errorf("warned %q", says)
	}
}

// B4: a damaged witness is refused, and accepted as such.
func TestB4DamagedWitness(t *testing.T) {
	owner(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, path)
	reserve(t, l, reservation("clinic", "first"))
	must(t, os.WriteFile(l.witness.headFile(l.witness.id), []byte("{"), 0o600))
	l.Close()
	lostAs(t, path, Unreadable)
	_, err := Accept(t.Context(), path)
	must(t, err)
	verify(t, open(t, path))

	must(t, os.WriteFile(l.witness.placeFile(path), nil, 0o600))
	must(t, os.Remove(path))
	lostAs(t, path, Unreadable)
	_, err = Accept(t.Context(), path)
	must(t, err)
	verify(t, open(t, path))
}

// B4: a ledger that is overwritten in place under an open one is noticed.
func TestB4OverwrittenWhileOpen(t *testing.T) {
	owner(t)
	path, older := filepath.Join(t.TempDir(), "ledger.db"), filepath.Join(t.TempDir(), "older.db")
	l := open(t, path)
	reserve(t, l, reservation("clinic", "first"))
	copyFile(t, path, older)
	token := reserve(t, l, reservation("clinic", "second"))
	copyFile(t, older, path)
	wantError(t, l.Reach(t.Context(), "second", token, 1, batchesOf(1, 100)), ErrWitness)
	_, err := l.Reserve(t.Context(), reservation("clinic", "third"))
	wantError(t, err, ErrWitness)
}

// B4: a server's ledger whose tables are gone is missing, and can be accepted.
func TestB4EmptiedServer(t *testing.T) {
	owner(t)
	where := newSchema(t)
	l := open(t, where)
	reserve(t, l, reservation("clinic", "first"))
	for _, table := range []string{"sotto_ledger", "sotto_entries", "sotto_progress", "sotto_charges"} {
		_, err := l.store.db.Exec("DROP TABLE " + table)
		must(t, err)
	}
	l.Close()
	lostAs(t, where, Missing)
	_, err := Accept(t.Context(), where)
	must(t, err)
	if n := verify(t, open(t, where)); n != 1 {
		t.Errorf("found %d entries; want the restoration's", n)
	}
}

// A ledger that a full disk left without entries is missed in a whole sentence.
func TestWitnessOfNoEntries(t *testing.T) {
	for _, found := range []string{Missing, Emptied, Another, Older, Forked} {
		text := (&WitnessError{Found: found, what: ErrNotLedger}).Error()
		if !strings.Contains(text, "when it was last used it had no entries") {
			t.Errorf("%s: %s", found, text)
		}
	}
}
