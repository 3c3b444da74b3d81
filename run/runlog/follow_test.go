package runlog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
)

// A follower sees each whole line once, and charges only with the steps of their group.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f := Follow(dir)
	look := func(news bool, steps, charged int) {
		t.Helper()
		if got, err := f.Read(); err != nil || got != news {
			t.Fatalf("news %v, %v", got, err)
		}
		if len(f.Steps) != steps || f.Record().Charged() != charged {
			t.Fatalf("%d steps, %d charged; want %d, %d", len(f.Steps), f.Record().Charged(), steps, charged)
		}
	}
	look(false, 0, 0)
	step := func(n int) {
		if err := w.Charge(privacy.Gaussian{Sigma: 2}); err != nil {
			t.Fatal(err)
		}
		if err := w.Release([][]float64{{1}}); err != nil {
			t.Fatal(err)
		}
		w.Step(Step{T: n, Rate: 1, GradNorm: 1, Moved: 1})
	}
	step(1)
	look(false, 0, 0) // nothing has left the writer
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	look(true, 1, 1)
	look(false, 1, 1)
	step(2)
	step(3)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	look(true, 3, 3)

	// A group whose charges are there and whose steps are not: neither is shown.
	path := filepath.Join(dir, EventsFile)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(`{"first":3,"count":1,"event":{"event":"gaussian","sigma":2}}` + "\n" + `{"first":4`); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour) // it has only just been written, however long this test takes
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	look(false, 3, 3)
	// Long after, what is whole was synced or never will be.
	before := time.Now().Add(-time.Minute)
	for _, name := range []string{EventsFile, StepsFile} {
		if err := os.Chtimes(filepath.Join(dir, name), before.Add(time.Duration(len(name))), before.Add(time.Duration(len(name)))); err != nil {
			t.Fatal(err)
		}
	}
	look(true, 3, 4)

	// The run ends: the charges have fewer lines, in another file.
	rec := f.Record()
	if len(rec.Events) < 2 {
		t.Fatalf("%d series of charges before they are joined", len(rec.Events))
	}
	if err := machine.Join(dir, rec); err != nil {
		t.Fatal(err)
	}
	look(false, 3, 4) // just written
	f.Ended = true
	if _, err := f.Read(); err != nil || len(f.Events) != 1 || f.Record().Charged() != 4 {
		t.Fatalf("%v, %v", f.Events, err)
	}
	f.Ended = false

	if err := os.WriteFile(filepath.Join(dir, StepsFile), []byte("{}\n"), 0o600); err != nil { // another run's
		t.Fatal(err)
	}
	if _, err := f.Read(); err != nil || len(f.Steps) != 1 {
		t.Errorf("%d steps, %v", len(f.Steps), err)
	}
}
