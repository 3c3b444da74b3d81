package describe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// clinic writes a table of that many rows and its schema, and returns options for a description of it.
func clinic(t *testing.T, dir string, rows int) Options {
	t.Helper()
	rnd := rand.New(rand.NewPCG(45, 7))
	var b strings.Builder
	b.WriteString("a,rare,b,seen,y\n")
	for range rows {
		fmt.Fprintf(&b, "%.3f,%s,%s,2020-%02d-15,%s\n", 10*rnd.Float64(), []string{"", "0.5"}[rnd.IntN(2)], []string{"x", "y", "other"}[rnd.IntN(3)],
			1+rnd.IntN(12), []string{"n", "j"}[rnd.IntN(2)])
	}
	o := Options{Data: filepath.Join(dir, "t.csv"), Schema: filepath.Join(dir, "s.yaml"), Ledger: filepath.Join(dir, "ledger.db"),
		Out: filepath.Join(dir, "out"), Epsilon: 1, Delta: 1e-6, Adjacency: "add-or-remove", Version: "0.1.0", Pairs: [][2]string{{"b", "y"}}}
	for path, text := range map[string]string{o.Data: b.String(), o.Schema: fmt.Sprintf(described, rows)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestRun: a description is charged, settled and sealed, and holds under both relations; the exact counts are within a few deviations
// of the noise: of 60 counts with seeded noise none is further than 6.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, adj := range []string{"add-or-remove", "replace-one"} {
		dir := t.TempDir()
		o := clinic(t, dir, 3000)
		o.Adjacency, o.Bins, o.streams = adj, 10, noise.SeededStreams(3)
		e, out, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		l := openLedger(t, dir)
		defer l.Close()
		known, err := l.Run(t.Context(), e.ID)
		if err != nil || known.State != ledger.StateSettled || known.Caps != (ledger.Caps{Epsilon: 1, Delta: 1e-6}) {
			t.Errorf("%+v, %v", known, err)
		}
		read, err := runlog.ReadDescription(out)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Of(read)
		if err != nil {
			t.Fatal(err)
		}
		exact, _, err := data.Read(t.Context(), open{}, p.Cells, o.Data, data.Options{Unlabeled: true, Formats: source.Formats()})
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]float64, p.Facts.Dim)
		for _, b := range exact.Blocks {
			for _, j := range b.Col {
				counts[j]++
			}
		}
		square := 0.0
		for j, c := range counts {
			z := (read.Answer[j] - c) / p.deviation()
			if square += z * z; math.Abs(z) > 6 {
				t.Errorf("%s: count %d is %v, exactly %v, with noise of %v", adj, j, read.Answer[j], c, p.deviation())
			}
		}
		// The mean of n squares of standard normals has the standard deviation √(2/n).
		if n := float64(len(counts)); math.Abs(square/n-1) > 5*math.Sqrt(2/n) {
			t.Errorf("%s: the noise is %v times as large as it should be", adj, math.Sqrt(square/n))
		}
		for _, with := range []*ledger.Ledger{nil, l} {
			found, err := Verify(t.Context(), out, with)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if !f.Holds || with != nil && f.Skipped {
					t.Errorf("%s: %+v", adj, f)
				}
			}
		}
	}
}

// TestVerifyFinds changes of what a description says: by itself, or by the seal of the ledger.
func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := clinic(t, dir, 500)
	_, out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	defer l.Close()
	file := filepath.Join(out, runlog.DescriptionFile)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := func(l *ledger.Ledger) (names []string) {
		found, err := Verify(t.Context(), out, l)
		if err != nil {
			return []string{err.Error()}
		}
		for _, f := range found {
			if !f.Holds {
				names = append(names, f.What)
			}
		}
		return names
	}
	answer := regexpAnswer.FindString(string(whole))
	for _, c := range []struct{ from, to, finds string }{
		{`"value": `, `"value": 1`, "figures"},
		{answer, "\"answer\": [\n    5,", "figures"},
		{`"epsilon": 1`, `"epsilon": 0.5`, "budget"},
		{`"noise_multiplier": `, `"noise_multiplier": 1`, "plan"},
		{`"bins": `, `"bins": 1`, "answer: found"},
		{`"rows": 500`, `"rows": 600`, "schema: found another dataset"},
		{`"format": "sotto-description/1"`, `"format": "sotto-description/9"`, "expected sotto-description/1"},
	} {
		if strings.Count(string(whole), c.from) == 0 {
			t.Fatalf("no %s", c.from)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(whole), c.from, c.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(broken(nil), ", "); !strings.Contains(got, c.finds) {
			t.Errorf("%s: found %q, want %q", c.to, got, c.finds)
		}
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(whole), `"version": "`, `"version": "x`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := broken(nil); len(got) > 0 {
		t.Errorf("found %v without a ledger", got)
	}
	if got := broken(l); !slices.Equal(got, []string{"seal"}) {
		t.Errorf("found %v by the ledger", got)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(out, runlog.DescriptionTable)
	if err := os.WriteFile(table, []byte("column\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := broken(nil); !slices.Equal(got, []string{runlog.DescriptionTable}) {
		t.Errorf("found %v", got)
	}
}

// TestRefusals: a mistake in the input is said, with exit code 2, and nothing changes on disk; so it is where the budget is spent.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(o *Options){
		"unit: found 3 rows of a person": func(o *Options) {
			edit(t, o.Schema, "rows: 300\n", "units: 300\nunit: {name: person, rows: 3}\n")
			edit(t, o.Schema, "{name: b, type: categorical, levels: [x, y, z, none of these]}", "{name: b, type: unit}")
			o.Pairs = nil
		},
		"rows is missing": func(o *Options) { edit(t, o.Schema, "rows: 300\n", "") },
		"min":             func(o *Options) { edit(t, o.Schema, "type: numeric, min: 0, max: 10", "type: numeric") },
		"sotto schema bounds": func(o *Options) {
			edit(t, o.Schema, "type: numeric, min: 0, max: 10", "type: numeric, bounds: unknown")
		},
		"write a δ above 0":            func(o *Options) { o.Delta = 0 },
		"choose one well below":        func(o *Options) { o.Delta = 0.01 },
		"epsilon":                      func(o *Options) { o.Epsilon = -1 },
		"bins: found 1;":               func(o *Options) { o.Bins = 1 },
		`pairs: found "nothing"`:       func(o *Options) { o.Pairs = [][2]string{{"nothing", "a"}} },
		"--adjacency is missing":       func(o *Options) { o.Adjacency = "" },
		"--adjacency":                  func(o *Options) { o.Adjacency = "both" },
		"expected exactly 301":         func(o *Options) { o.Adjacency = "replace-one"; edit(t, o.Schema, "rows: 300", "rows: 301") },
		"found no columns":             func(o *Options) { edit(t, o.Data, "a,rare", "aa,rare") },
		"s.yaml":                       func(o *Options) { o.Schema += ".none" },
		"t.csv.none":                   func(o *Options) { o.Data += ".none" },
		"no such column in the header": func(o *Options) { edit(t, o.Data, "a,rare,b,seen,y\n", "a,rare,b,seen\n") },
		"not an empty directory":       func(o *Options) { o.Out = filepath.Dir(o.Schema) },
	} {
		dir := t.TempDir()
		o := clinic(t, dir, 300)
		change(&o)
		before := listing(t, dir)
		_, _, err := Run(t.Context(), o)
		var input *run.InputError
		if err == nil || !strings.Contains(err.Error(), says) || !errors.As(err, &input) && !strings.Contains(fmt.Sprintf("%T", err), "Error") {
			t.Errorf("%s: %T %v", says, err, err)
		}
		if after := listing(t, dir); !slices.Equal(before, after) {
			t.Errorf("%s: %v, before %v", says, after, before)
		}
	}
	dir := t.TempDir()
	o := clinic(t, dir, 300)
	l := openLedger(t, dir)
	if err := l.SetBudget(t.Context(), "d", "record", ledger.InCaps, privacy.Budget{Epsilon: 0.5, Delta: 1e-5, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	before := listing(t, dir)
	if _, _, err := Run(t.Context(), o); !errors.Is(err, privacy.ErrExhausted) {
		t.Errorf("%v", err)
	}
	if after := listing(t, dir); !slices.Equal(before, after) {
		t.Errorf("%v, before %v", after, before)
	}
	edit(t, o.Schema, "of these]", "of these], unknown: zero")
	s, err := data.LoadSchema(o.Schema)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "t.pack")
	if _, err := data.Pack(t.Context(), open{}, s.WithHats(0), o.Data, packed, data.Options{Formats: source.Formats()}); err != nil {
		t.Fatal(err)
	}
	o.Data, o.Epsilon = packed, 0.1
	if _, _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is a packed table") {
		t.Errorf("%v", err)
	}
}

// open is a gate that admits everything.
type open struct{}

func (open) RowKey() *data.RowKey { return nil }

func (open) Admit(context.Context, *data.Content) error { return nil }

// regexpAnswer finds the first of the noisy counts.
var regexpAnswer = regexp.MustCompile(`"answer": \[\s*[^,]*,`)

// listing is the files below dir with their sizes.
func listing(t *testing.T, dir string) (files []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		files = append(files, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}
