package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

const every = 3 // batches from one state to the next

func stateAfter(batch int) State {
	return State{Step: batch + 1, Fold: json.RawMessage(`{"n":7}`), Vectors: [][]float64{{float64(batch), 0.5}, {-1}}}
}

// saving goes on with a run that saves states, from a batch up to another; copies takes the directory as it is before and after each.
func saving(t *testing.T, w *Writer, from, to int, around func(batch int, saved bool)) {
	t.Helper()
	if err := w.SaveStates(); err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		noted(t, w, step, i)
		if (i+1)%every != 0 {
			continue
		}
		if around != nil {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			around(i, false)
		}
		if err := w.Save(stateAfter(i)); err != nil {
			t.Fatal(err)
		}
		if around != nil {
			around(i, true)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// saved makes a run of n batches that saves states.
func saved(t *testing.T, n int, around func(dir string, batch int, saved bool)) string {
	t.Helper()
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if around == nil {
		around = func(string, int, bool) {}
	}
	saving(t, w, 0, n, func(batch int, saved bool) { around(dir, batch, saved) })
	return dir
}

// files are the contents of a run's directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all[e.Name()] = string(contents(t, dir, e.Name()))
	}
	return all
}

func putAll(t *testing.T, all map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range all {
		put(t, dir, name, []byte(text))
	}
	return dir
}

func upTo(n int) (batches []int) {
	for i := range n {
		batches = append(batches, i)
	}
	return batches
}

// A run that saves states keeps the releases behind the last state but one, and can be gone on from the last.
func TestSavedStates(t *testing.T) {
	for n := range 4*every + 1 {
		dir := saved(t, n, nil)
		rec := read(t, dir)
		checkBatches(t, rec, upTo(n)...)
		states := n / every
		parts, err := machine.partsIn(dir)
		if err != nil || len(parts) != min(states, 1)+1 || parts[len(parts)-1] != states || len(rec.States) != min(states, 2) {
			t.Fatalf("%d batches: files %v, %d states, %v", n, parts, len(rec.States), err)
		}
		if rec.Charged() != n || len(rec.Steps) != n {
			t.Errorf("%d batches: %d charged, %d steps", n, rec.Charged(), len(rec.Steps))
		}
		if states == 0 {
			if rec.Newest() != nil || rec.Oldest() != nil {
				t.Error("a state from nowhere")
			}
			continue
		}
		got := rec.Newest()
		if err := rec.Load(got); err != nil {
			t.Fatal(err)
		}
		want := stateAfter(states*every - 1)
		if got.Step != want.Step || got.Batch != want.Step-1 || got.Released != want.Step || string(got.Fold) != string(want.Fold) ||
			!slices.EqualFunc(got.Vectors, want.Vectors, slices.Equal) {
			t.Errorf("%d batches: state %+v, want %+v", n, got, want)
		}
		if (rec.Oldest() == nil) != (states == 1) {
			t.Errorf("%d batches: the oldest state is %+v", n, rec.Oldest())
		}
	}
}

// A crash while a state is saved, at any byte of the new file and before or after the oldest is taken away, loses nothing: the
// run goes on and ends with the same files as one that was not broken.
func TestCrashWhileSaving(t *testing.T) {
	const n = 4*every + 1
	var before map[string]string
	type crash struct {
		files map[string]string
		done  int
		whole bool
	}
	var crashes []crash
	whole := saved(t, n, func(dir string, batch int, isSaved bool) {
		now := files(t, dir)
		if !isSaved {
			before = now
			crashes = append(crashes, crash{now, batch + 1, false})
			return
		}
		name := partFile((batch + 1) / every)
		for size := len(now[name]); size >= 0; size -= 13 { // the first is whole
			left := map[string]string{}
			for name, text := range before { // the oldest is there still
				left[name] = text
			}
			left[name] = now[name][:size]
			crashes = append(crashes, crash{left, batch + 1, size == len(now[name])})
		}
	})
	want := files(t, whole)
	delete(want, EventsFile) // its lines follow the groups
	for i, c := range crashes {
		dir := putAll(t, c.files)
		w, rec, err := Continue(dir, false)
		if err != nil {
			t.Fatalf("crash %d: %v", i, err)
		}
		if rec.Released != c.done || rec.Charged() != c.done || len(rec.Steps) != c.done {
			t.Fatalf("crash %d: %d released, %d charged, %d steps; want %d", i, rec.Released, rec.Charged(), len(rec.Steps), c.done)
		}
		if newest := rec.Newest(); (newest != nil && newest.Step == c.done) != c.whole {
			t.Fatalf("crash %d: the newest state is %+v", i, newest)
		}
		from := c.done
		if !c.whole { // the method, replayed, saves it again
			if err := errors.Join(w.SaveStates(), w.Save(stateAfter(c.done-1))); err != nil {
				t.Fatal(err)
			}
		}
		saving(t, w, from, n, nil)
		got := files(t, dir)
		delete(got, EventsFile)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("crash %d: another directory than that of an unbroken run", i)
		}
	}
	if len(crashes) < 50 {
		t.Errorf("%d crashes", len(crashes))
	}
}

// What is kept cannot be exchanged: a file's content fixes that of the one before.
func TestExchangedReleases(t *testing.T) {
	dir := saved(t, 3*every+2, nil)
	whole := files(t, dir)
	older, newer := partFile(2), partFile(3)
	for name, change := range map[string]func(map[string]string){
		"another release": func(f map[string]string) {
			release := string(appendRelease(nil, 7, answers(7)))
			other := string(appendRelease(nil, 7, [][]float64{{8, -0.5, 1}, {1. / 8}}))
			if f[older] = strings.Replace(f[older], release, other, 1); f[older] == whole[older] {
				t.Fatal("no such release")
			}
		},
		"a release less": func(f map[string]string) {
			f[older] = strings.TrimSuffix(f[older], string(appendRelease(nil, 8, answers(8))))
		},
		"a torn one before": func(f map[string]string) { f[older] = f[older][:len(f[older])-1] },
		"another file":      func(f map[string]string) { f[older] = f[newer] },
		"another first line": func(f map[string]string) {
			f[newer] = strings.Replace(f[newer], `"step":9`, `"step":8`, 1)
		},
		"a state in the middle": func(f map[string]string) { f[newer] = f[newer][:len(stateMagic)+40] + f[newer][len(stateMagic)+41:] },
		"none before":           func(f map[string]string) { delete(f, older) },
		"events lost":           func(f map[string]string) { f[EventsFile] = f[EventsFile][:1] },
		"a fourth file":         func(f map[string]string) { f[partFile(4)] = f[newer] },
	} {
		f := files(t, dir)
		change(f)
		if _, err := Read(putAll(t, f)); err == nil {
			t.Errorf("%s: not noticed", name)
		} else if name == "none before" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := []byte(whole[newer])
	for bit := range len(b) * 8 {
		f := bytes.Clone(b)
		f[bit/8] ^= 1 << (bit % 8)
		put(t, dir, newer, f)
		rec, err := Read(dir)
		// The last record may pass for a write that was cut; nothing else may.
		if err == nil && (!rec.Torn || rec.Released != 3*every+1) {
			t.Fatalf("bit %d of %s: %d releases, torn is %v", bit, newer, rec.Released, rec.Torn)
		}
	}
}

// A charge that is not durable, of a batch of which nothing was released, can be withdrawn; another cannot.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	charge := func() {
		t.Helper()
		if err := w.Charge(step); err != nil {
			t.Fatal(err)
		}
	}
	want := func(charged int) {
		t.Helper()
		w.Withdraw()
		w.Withdraw()
		if n := (&Record{Events: w.all}).Charged(); n != charged || w.charged != charged || w.batch != charged-1 {
			t.Errorf("%d charged, want %d", n, charged)
		}
	}
	want(0)
	charge()
	want(0)
	noted(t, w, step, 0)
	want(1) // it was released
	charge()
	want(1)
	charge()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want(2) // it is durable
	noted(t, w, step, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rec := read(t, dir); rec.Charged() != 3 || rec.Released != 2 {
		t.Errorf("%d charged, %d released", rec.Charged(), rec.Released)
	}
}
