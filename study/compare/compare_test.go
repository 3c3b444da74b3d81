package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
)

const clinic = "../../examples/clinic/sotto.yaml"

// multiset counts the coins on one side.
func multiset(coins []uint64, held []bool, side bool) map[uint64]int {
	out := map[uint64]int{}
	for i, c := range coins {
		if held[i] == side {
			out[c]++
		}
	}
	return out
}

// apart is how many are in a and not in b.
func apart(a, b map[uint64]int) int {
	n := 0
	for c, k := range a {
		n += max(0, k-b[c])
	}
	return n
}

// Tables that differ in one record have parts that differ in at most one, on either
// side, in the sense of the relation; of folds under replace-one, in at most two. There
// the sizes are public numbers. This is ADR 15.
func TestNeighborsOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coins := rapid.SliceOfNDistinct(rapid.Uint64(), 3, 60, rapid.ID[uint64]).Draw(t, "coins")
		v := job.Comparison{Split: rapid.Float64Range(0.05, 0.95).Draw(t, "split")}
		fold := 0
		if rapid.Bool().Draw(t, "folded") {
			v = job.Comparison{Folds: rapid.IntRange(2, 7).Draw(t, "folds")}
			fold = rapid.IntRange(0, v.Folds-1).Draw(t, "fold")
		}
		at := rapid.IntRange(0, len(coins)-1).Draw(t, "at")

		fewer := slices.Delete(slices.Clone(coins), at, at+1)
		for _, side := range []bool{false, true} {
			a := multiset(coins, heldOut(coins, privacy.AddRemove, v, fold), side)
			b := multiset(fewer, heldOut(fewer, privacy.AddRemove, v, fold), side)
			if apart(b, a) != 0 || apart(a, b) > 1 {
				t.Fatalf("add-or-remove, held out %v: %d came, %d went", side, apart(b, a), apart(a, b))
			}
		}
		other := slices.Clone(coins)
		other[at] = rapid.Uint64().Filter(func(c uint64) bool { return !slices.Contains(coins, c) }).Draw(t, "new")
		for _, side := range []bool{false, true} {
			a := multiset(coins, heldOut(coins, privacy.ReplaceOne, v, fold), side)
			b := multiset(other, heldOut(other, privacy.ReplaceOne, v, fold), side)
			most := 1
			if v.Folds != 0 && !side && fold != 0 && fold != v.Folds-1 {
				most = 2
			}
			if apart(a, b) > most || apart(a, b) != apart(b, a) {
				t.Fatalf("replace-one, held out %v: %d came, %d went", side, apart(b, a), apart(a, b))
			}
		}
		table := table{rows: len(coins), adjacency: privacy.ReplaceOne}
		held := heldOut(coins, privacy.ReplaceOne, v, fold)
		if n := len(slices.DeleteFunc(held, func(h bool) bool { return h })); n != table.trainRows(v, fold) {
			t.Fatalf("%d rows to train on, declared %d", n, table.trainRows(v, fold))
		}
	})
}

// Each row is held out in exactly one fold.
func TestFolds(t *testing.T) {
	coins := make([]uint64, 101)
	for i := range coins {
		coins[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	for _, a := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		times := make([]int, len(coins))
		for fold := range 10 {
			for i, h := range heldOut(coins, a, job.Comparison{Folds: 10}, fold) {
				if h {
					times[i]++
				}
			}
		}
		if slices.Min(times) != 1 || slices.Max(times) != 1 {
			t.Errorf("%v: rows are held out %v times", a, times)
		}
	}
}

func flag(path, value string) run.Override {
	return run.Override{Path: path, Value: value, From: "test"}
}

func planned(t *testing.T, o Options) *Plan {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Prepare(2); err != nil {
		t.Fatal(err)
	}
	return p
}

// A cell is what `sotto fit --lab --seed` gets, also of a method whose last release makes the model.
func TestCellIsARun(t *testing.T) {
	for _, method := range []job.Settings{{flag("name", "sgd"), flag("steps", "20")}, {flag("name", "auto"), flag("last", "margins")}} {
		p := planned(t, Options{File: clinic, Varied: job.Comparison{Methods: []job.Settings{method}, Epsilon: []string{"0.5"}, Seeds: 2}})
		if err := p.Train(t.Context(), 2, func(*Cell, Result) error { return nil }); err != nil {
			t.Fatal(err)
		}
		p.Cells[0].order()
		for seed := range 2 {
			dir := t.TempDir()
			over := []run.Override{flag("privacy.epsilon", "0.5"), flag("lab", "true"),
				flag("seed", fmt.Sprint(seed)), flag("out", filepath.Join(dir, "run")), flag("ledger", filepath.Join(dir, "ledger.db"))}
			for _, o := range method {
				over = append(over, flag("method."+o.Path, o.Value))
			}
			spec, err := run.LoadSpec(clinic, over)
			if err != nil {
				t.Fatal(err)
			}
			job, err := run.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			info, _, err := run.Fit(t.Context(), job, run.Env{})
			if err != nil {
				t.Fatal(err)
			}
			got := p.Cells[0].Results[seed]
			if *got.Score != *info.Result.Test.Accuracy || got.Steps != info.Result.Steps || got.Noise != info.NoiseMultiplier || got.Outcome != info.Result.Outcome {
				t.Errorf("%s, seed %d: the cell has %+v with accuracy %v, the run %+v with %v", spec.MethodName, seed, got, *got.Score, info.Result, *info.Result.Test.Accuracy)
			}
		}
	}
}

// scores are all figures but the time.
func (p *Plan) scores() string {
	var b strings.Builder
	for _, c := range p.Cells {
		c.order()
		for _, r := range c.Results {
			fmt.Fprintln(&b, c.Table, c.Method, c.Epsilon, r.Seed, r.Fold, r.TrainRows, r.TestRows, *r.Score, *r.Objective)
		}
	}
	return b.String()
}

// A comparison that was stopped goes on: what is done is not done again, a torn line is
// cut off, and the figures are those of one that was never stopped.
func TestGoesOn(t *testing.T) {
	schema, rows := "../../examples/clinic/schema.yaml", []string{"../../examples/clinic/patients.csv", "../../examples/clinic/heldout.csv"}
	o := Options{File: clinic, Flags: []run.Override{flag("privacy.adjacency", "replace-one"), flag("method.steps", "5")}, Varied: job.Comparison{
		Tables:  []job.TableSpec{{Name: "both", Schema: schema, Data: rows, Rows: 5000}, {Name: "one", Schema: schema, Data: rows[:1], Model: job.Settings{flag("name", "huber-svm")}}},
		Methods: []job.Settings{{flag("name", "sgd")}, {flag("name", "sgd"), flag("label", "fast"), flag("rate", "100")}}, Epsilon: []string{"1", "none"}, Folds: 3, Seeds: 2,
	}}
	ok := func(*Cell, Result) error { return nil }
	unbroken := planned(t, o)
	if err := unbroken.Train(t.Context(), 1, ok); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	begin := func() (*Plan, *Store) {
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Open(dir, "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Prepare(1); err != nil {
			t.Fatal(err)
		}
		return p, s
	}
	p, s := begin()
	stopped, n := errors.New("stopped"), 0
	err := p.Train(t.Context(), 2, func(c *Cell, r Result) error {
		if n++; n > 10 {
			return stopped
		}
		return s.Add(c, r)
	})
	if !errors.Is(err, stopped) {
		t.Fatal(err)
	}
	if _, err := p.Open(dir, "test"); err == nil {
		t.Error("a second process may work in the directory")
	}
	s.Close()
	file := filepath.Join(dir, runsFile)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, `{"table":"bo`...), 0o644); err != nil {
		t.Fatal(err)
	}
	p, s = begin()
	if done := p.Runs - p.Left(); done != 10 {
		t.Errorf("%d trainings were kept, 10 were done", done)
	}
	n = 0
	if err := p.Train(t.Context(), 2, func(c *Cell, r Result) error { n++; return s.Add(c, r) }); err != nil {
		t.Fatal(err)
	}
	if n != p.Runs-10 || p.Runs != 2*2*2*3*2 {
		t.Errorf("%d of %d trainings were done again or never", n, p.Runs)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := p.scores(), unbroken.scores(); got != want {
		t.Errorf("found\n%s\nunbroken\n%s", got, want)
	}
	p, s = begin()
	if err := s.Close(); err != nil || p.Left() != 0 || p.scores() != unbroken.scores() {
		t.Errorf("what was kept is not what was found: %v", err)
	}

	// Another comparison does not go on there.
	o.Varied.Epsilon = []string{"1", "2"}
	if p, err = New(o); err != nil {
		t.Fatal(err)
	}
	var input *run.InputError
	if _, err := p.Open(dir, "test"); !errors.As(err, &input) || !strings.Contains(err.Error(), "another comparison") {
		t.Errorf("another comparison gives %v", err)
	}
}

// A method that refuses at one ε has a cell that says so; one that refuses everywhere is
// an error.
func TestRefusedCells(t *testing.T) {
	o := Options{File: clinic, Varied: job.Comparison{Methods: []job.Settings{{flag("name", "sgd"), flag("noise_multiplier", "5")}}, Epsilon: []string{"0.001", "10"}}}
	p := planned(t, o)
	if p.Cells[0].Refused == "" || p.Cells[1].Refused != "" || p.Left() != 1 || len(p.Warnings()) != 1 {
		t.Errorf("refused: %q, %q", p.Cells[0].Refused, p.Cells[1].Refused)
	}
	if err := p.Train(t.Context(), 1, func(*Cell, Result) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if text := p.Tables(); !strings.Contains(text, "| 0.001 | refused") {
		t.Errorf("the table says\n%s", text)
	}
	o.Varied.Epsilon = []string{"0.001"}
	p, err := New(o)
	if err == nil {
		err = p.Prepare(1)
	}
	if !errors.Is(err, privacy.ErrExhausted) || !strings.Contains(err.Error(), "ε = 0.001") {
		t.Errorf("refused everywhere: %v", err)
	}
}

// Parameters that are not finite make a cell that says so.
func TestDiverged(t *testing.T) {
	p := planned(t, Options{File: clinic, Varied: job.Comparison{Methods: []job.Settings{{flag("name", "sgd"), flag("rate", "1e300"), flag("clip", "1e60"), flag("steps", "5")}}}})
	if err := p.Train(t.Context(), 1, func(*Cell, Result) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if p.Cells[0].Diverged() != 1 || !strings.Contains(p.Tables(), "–, 1 diverged") {
		t.Errorf("found %+v\n%s", p.Cells[0].Results, p.Tables())
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Figure
	}{
		{nil, Figure{math.NaN(), math.NaN(), math.NaN(), 0}},
		{[]float64{3}, Figure{3, math.NaN(), 3, 1}},
		{[]float64{4, 1, 1}, Figure{2, math.Sqrt(3), 1, 3}},
		{[]float64{1, 9, 3, 3}, Figure{4, math.Sqrt(12), 3, 4}},
	} {
		text := func(f Figure) string { return fmt.Sprintf("%.12g %.12g %.12g %d", f.Mean, f.SD, f.Median, f.N) }
		if got := figure(c.values); text(got) != text(c.want) {
			t.Errorf("%v: found %v, want %v", c.values, got, c.want)
		}
	}
}

// A stopped context ends the training with its error.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := planned(t, Options{File: clinic, Varied: job.Comparison{Seeds: 3, Split: 0.5}})
	n := 0
	err := p.Train(ctx, 1, func(*Cell, Result) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("%d trainings, then %v", n, err)
	}
}
