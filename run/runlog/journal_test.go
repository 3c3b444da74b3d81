package runlog

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/privacy"
)

var journalHead = JournalHead{Run: "r", Config: "c0ffee", Owner: 3, Dim: 4}

func event(rate float64) privacy.Event {
	return privacy.PoissonSampled{Rate: rate, Of: privacy.Gaussian{Sigma: 1.5}}
}

// write writes the activations to a new journal, each as a node does.
func writeJournal(t testing.TB, j *Journal, activations []*Activation) {
	t.Helper()
	for _, act := range activations {
		for _, b := range act.Batches {
			if err := errors.Join(j.Charge(b.Event), j.Release(b.Answers)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Send(act.Round, act.Sent); err != nil {
			t.Fatal(err)
		}
		if act.Done {
			j.Done(act.Round, act.Committed, act.State)
		}
	}
}

func readAll(t testing.TB, r *JournalReader) (activations []*Activation) {
	t.Helper()
	defer r.Close()
	for {
		act, err := r.Next()
		if err == io.EOF {
			return activations
		}
		if err != nil {
			t.Fatal(err)
		}
		activations = append(activations, act)
	}
}

func some(n int) []*Activation {
	var activations []*Activation
	for k := range n {
		v := func(x float64) []float64 { return []float64{x, float64(k), math.Copysign(0, -1), 1e-300} }
		activations = append(activations, &Activation{
			Round: 3 * k, Batches: []JournalBatch{{event(0.25), [][]float64{v(1), {7}}}}, Sent: v(2),
			Done: true, Committed: []bool{k%2 == 0, true}, State: v(3),
		})
	}
	return activations
}

// What was written is read back, and a journal that is opened again goes on.
func TestJournalRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	activations := some(5)
	activations[2].Done, activations[2].Committed, activations[2].State = false, nil, nil // as after a crash that lost it
	j, err := CreateJournal(path, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	writeJournal(t, j, activations[:3])
	if err := errors.Join(j.Flush(), j.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateJournal(path, journalHead); !os.IsExist(err) {
		t.Errorf("created a second time: %v", err)
	}
	other := journalHead
	other.Config = "00"
	if _, _, err := OpenJournal(path, other); !errors.Is(err, ErrOtherJournal) {
		t.Errorf("another run's: %v", err)
	}
	j, past, err := OpenJournal(path, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, past); !reflect.DeepEqual(got, activations[:3]) {
		t.Errorf("found %+v", got)
	}
	if j.Charged() != 3 {
		t.Errorf("%d batches charged, want 3", j.Charged())
	}
	writeJournal(t, j, activations[3:])
	if err := errors.Join(j.Flush(), j.Flush(), j.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := ReadJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, r); !reflect.DeepEqual(got, activations) {
		t.Errorf("found %+v", got)
	}
}

// Wherever a crash cuts the file, the activations before are there, and the journal goes on.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	activations := some(2)
	j, err := CreateJournal(whole, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	size := func() int {
		st, err := os.Stat(whole)
		if err != nil {
			t.Fatal(err)
		}
		return int(st.Size())
	}
	start := size()
	var ends []int // of the records
	for _, act := range activations {
		writeJournal(t, j, []*Activation{act})
		ends = append(ends, size())
	}
	j.Close()
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, zeros := range []bool{false, true} { // a system that grew the file before it wrote
		for cut := start; cut <= len(text); cut++ {
			b := append([]byte(nil), text[:cut]...)
			for _, end := range ends {
				if zeros && cut < end {
					b = append(b, make([]byte, end-cut)...)
					break
				}
			}
			path := filepath.Join(dir, "cut")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			j, past, err := OpenJournal(path, journalHead)
			if err != nil {
				t.Fatalf("cut at %d of %d: %v", cut, len(text), err)
			}
			got := readAll(t, past)
			for k, act := range got {
				if act.Done && !reflect.DeepEqual(act, activations[k]) || !act.Done && !slices.Equal(act.Sent, activations[k].Sent) {
					t.Fatalf("cut at %d: activation %d is %+v", cut, k, act)
				}
			}
			writeJournal(t, j, []*Activation{{Round: 100, Batches: []JournalBatch{}, Sent: activations[0].Sent}})
			j.Close()
			r, err := ReadJournal(path)
			if err != nil {
				t.Fatal(err)
			}
			if again := readAll(t, r); len(again) != len(got)+1 || again[len(got)].Round != 100 {
				t.Fatalf("cut at %d: %d activations, then %d", cut, len(got), len(again))
			}
		}
	}
}

// A change before the last frame is never taken for the end of the file.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	j, err := CreateJournal(path, journalHead)
	if err != nil {
		t.Fatal(err)
	}
	writeJournal(t, j, some(4))
	j.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := append([]byte(nil), text...)
		at := rapid.IntRange(0, len(b)*2/3).Draw(t, "at")
		b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		bad := filepath.Join(dir, "bad")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadJournal(bad)
		for activations := 0; err == nil; activations++ {
			if _, err = r.Next(); err == io.EOF {
				t.Fatalf("a flip at %d of %d was taken for the end, after %d activations", at, len(b), activations)
			}
		}
	})
}

// A full disk stops the journal for good.
func TestFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	j := &Journal{f: f, head: journalHead}
	if err := j.Charge(event(0.5)); err != nil {
		t.Fatal(err)
	}
	if err := j.Send(0, make([]float64, 4)); err == nil {
		t.Error("sent on a full disk")
	}
	if err := j.Send(1, make([]float64, 4)); err == nil {
		t.Error("sent after an error")
	}
	if j.Charge(event(0.5)) == nil || j.Flush() == nil {
		t.Error("went on after an error")
	}
}

// FuzzRead: no file makes a reader panic or a vector of another length.
func FuzzReadJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	j, err := CreateJournal(path, journalHead)
	if err != nil {
		f.Fatal(err)
	}
	writeJournal(f, j, some(2))
	j.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-5])
	f.Add([]byte(journalMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadJournal(path)
		if err != nil {
			return
		}
		defer r.Close()
		for {
			act, err := r.Next()
			if err != nil {
				return
			}
			if len(act.Sent) != r.Head.Dim || act.Done && len(act.State) != r.Head.Dim {
				t.Fatalf("an activation of %d and %d numbers", len(act.Sent), len(act.State))
			}
		}
	})
}

func BenchmarkTurn(b *testing.B) {
	for _, dim := range []int{2_000, 47_236} {
		b.Run(map[int]string{2_000: "2000", 47_236: "47236"}[dim], func(b *testing.B) {
			j, err := CreateJournal(filepath.Join(b.TempDir(), "j"), JournalHead{Dim: dim})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			v := make([]float64, dim)
			for k := 0; b.Loop(); k++ {
				writeJournal(b, j, []*Activation{{Round: k, Batches: []JournalBatch{{event(0.1), [][]float64{v}}}, Sent: v, Done: true, Committed: []bool{true}, State: v}})
			}
		})
	}
}
