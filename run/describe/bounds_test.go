package describe

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/schema"
)

const openColumns = `
columns:
  - {name: who, type: %s}
  - {name: income, type: numeric, bounds: unknown}
  - {name: change, type: numeric, bounds: unknown, missing: zero}
  - {name: known, type: numeric, min: 0, max: 1}
  - {name: y, type: label, classes: [a, b]}
`

// openTable writes a table with two columns of unknown range, incomes about 3000 and changes on both sides of 0, and its schema.
func openTable(t *testing.T, dir string, units, each int) (schemaFile, table string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(23, 61))
	var b strings.Builder
	b.WriteString("who,income,change,known,y\n")
	for u := range units {
		for range each {
			change := ""
			if rnd.IntN(4) > 0 {
				change = fmt.Sprintf("%.4f", rnd.Float64()-0.5) // up to 0.5
			}
			fmt.Fprintf(&b, "u%d,%.1f,%s,0.5,%s\n", u, 1001+3998*rnd.Float64(), change, []string{"a", "b"}[rnd.IntN(2)])
		}
	}
	head := fmt.Sprintf("dataset: incomes\nrows: %d", units) + fmt.Sprintf(openColumns, "ignore")
	if each > 1 {
		head = fmt.Sprintf("dataset: incomes\nunit: {name: person, rows: %d}\nunits: %d", each, units) + fmt.Sprintf(openColumns, "unit")
	}
	schemaFile, table = filepath.Join(dir, "open.yaml"), filepath.Join(dir, "open.csv")
	for path, text := range map[string]string{schemaFile: head, table: b.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return schemaFile, table
}

// TestEstimateBounds: bounds of columns under both relations, with both noises, of rows and of units; what it costs stands in the
// ledger, settled. The noise is known, so the bounds are, too.
func TestEstimateBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		adjacency   string
		delta       float64
		units, each int
	}{
		{"add-or-remove", 0, 4000, 1},
		{"replace-one", 1e-6, 4000, 1},
		{"add-or-remove", 1e-6, 2000, 3},
		{"replace-one", 0, 2000, 3},
	} {
		dir := t.TempDir()
		file, table := openTable(t, dir, c.units, c.each)
		o := BoundsOptions{Schema: file, Data: table, Ledger: filepath.Join(dir, "ledger.db"), Epsilon: 0.5, Delta: c.delta, Adjacency: c.adjacency, streams: noise.SeededStreams(1)}
		b, err := EstimateBounds(t.Context(), o)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if len(b.Columns) != 2 || *b.Columns[0].Bounds != (schema.Bounds{Min: 1000, Max: 5000}) || b.Columns[1].Bounds.Max != 0.5 || b.Columns[1].Bounds.Min != -0.5 {
			t.Errorf("%+v: %+v, %v, %v", c, b, b.Columns[0].Bounds, b.Columns[1].Bounds)
		}
		s, err := schema.Parse("", b.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if source := s.Column("income").Source; !strings.HasPrefix(source, "private estimate, ε = 0.5") || !strings.Contains(source, b.Run) {
			t.Errorf("source %q", source)
		}
		l := openLedger(t, dir)
		known, err := l.Run(t.Context(), b.Run)
		if err != nil || known.State != ledger.StateSettled || known.Caps != (ledger.Caps{Epsilon: 0.5, Delta: c.delta}) {
			t.Errorf("%+v: %+v, %v", c, known, err)
		}
		d, err := l.Dataset(t.Context(), "incomes")
		if err != nil || d.Adjacency != b.Budget.Adjacency || d.Unit != s.Unit || d.Void != nil || d.Spent.Epsilon != 0.5 {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
		// Its relation is the dataset's from now on, its bounds train, and a lifetime budget refuses another charge.
		if err := l.SetBudget(t.Context(), "incomes", s.Unit, "", privacy.Budget{Epsilon: 0.75, Delta: 1e-3, Adjacency: b.Budget.Adjacency}); err != nil {
			t.Fatal(err)
		}
		o.Adjacency = ""
		if _, err := EstimateBounds(t.Context(), o); !errors.Is(err, privacy.ErrExhausted) {
			t.Errorf("%+v: %v, want a refusal", c, err)
		}
		o.Epsilon, o.Columns = 0.25, []string{"change"}
		if b, err := EstimateBounds(t.Context(), o); err != nil || len(b.Columns) != 1 || b.Budget.Adjacency != d.Adjacency {
			t.Errorf("%+v: %+v, %v", c, b, err)
		}
	}
}

// TestGridCounts: a query's answer is the number of values in each bin plus noise of the deviation that is stated. 326 counts: the
// deviation's own is 4 % of Gaussian noise, 6.2 % of Laplace noise; 5 of them fail with probability 6e-7, and the seed is fixed.
func TestGridCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, table := openTable(t, dir, 4000, 1)
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.ParseOpen(file, src)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	columns := s.Unbounded()
	truth := make([]float64, len(columns)*schema.GridBins())
	for _, line := range strings.Split(strings.TrimSpace(string(rows)), "\n")[1:] {
		for i, cell := range strings.Split(line, ",")[1:3] {
			var v float64
			if _, err := fmt.Sscan(cell, &v); err == nil {
				truth[i*schema.GridBins()+schema.GridBin(v)]++
			}
		}
	}
	for _, delta := range []float64{0, 1e-6} {
		for _, adjacency := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			budget := privacy.Budget{Epsilon: 0.5, Delta: delta, Adjacency: adjacency}
			q, law, err := gridQuery(s.OnGrid(columns), budget, len(columns))
			if err != nil {
				t.Fatal(err)
			}
			cost, err := account.Best{}.Loss(q.Facts.Cost(sample.Full{}, q.Queries), adjacency)
			if err != nil || cost.Epsilon(delta) > 0.5 || cost.Epsilon(delta) < 0.499 {
				t.Errorf("it costs %v: %v", cost.Epsilon(delta), err)
			}
			q.Data, q.Ledger, q.Streams = table, filepath.Join(t.TempDir(), "ledger.db"), noise.SeededStreams(2)
			square := 0.0
			if _, err := q.Ask(t.Context(), func(b oracle.Batch) error {
				mean, err := b.Mean(q.Queries[0].(oracle.Mean))
				for k := range mean {
					d := mean[k]*float64(s.Rows) - truth[k]
					square += d * d / float64(len(mean))
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			width := 0.2
			if delta == 0 {
				width = 0.31
			}
			if got := math.Sqrt(square); math.Abs(got/law.deviation()-1) > width {
				t.Errorf("δ = %v, %v: the noise has deviation %v, stated is %v", delta, adjacency, got, law.deviation())
			}
		}
	}
}

// TestBoundsOfNoise: of 1,000 columns without values, noise gives bounds to at most one in a hundred: 25 of them or more have
// a probability below 5e-5, and the seed is fixed. A cluster that no bin shows but all of its bins together do is found; of a share
// below one in a thousand there is no trace.
func TestBoundsOfNoise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 62))
	c := &schema.Column{Missing: schema.RuleError}
	for _, law := range []*gridCounts{{columns: 1, scale: 20}, {columns: 1, scale: 20, gaussian: true}} {
		counts := func() []float64 {
			v := make([]float64, schema.GridBins())
			for k := range v {
				if law.gaussian {
					v[k] = law.scale * rnd.NormFloat64()
				} else {
					v[k] = law.scale * (rnd.ExpFloat64() - rnd.ExpFloat64())
				}
			}
			return v
		}
		found := 0
		for range 1000 {
			if law.read(counts(), 1000, c) != nil {
				found++
			}
		}
		if found >= 25 {
			t.Errorf("gaussian %t: noise alone gives bounds to %d columns of 1000", law.gaussian, found)
		}
		v := counts()
		low, high := schema.GridBin(1.5), schema.GridBin(1500) // 10 bins
		for k := low; k <= high; k++ {
			v[k] += 0.8 * law.least(1)
			if v[k] > law.least(1) {
				v[k] = law.least(1)
			}
		}
		if b := law.read(v, 1000, c); b == nil || b.Min > 5 || b.Max < 500 || b.Min < 0.01 || b.Max > 1e5 {
			t.Errorf("gaussian %t: a cluster of small bins has bounds %v", law.gaussian, b)
		}
	}
	exact := &gridCounts{columns: 1, scale: 1e-9}
	v := make([]float64, schema.GridBins())
	v[schema.GridBin(3)], v[schema.GridBin(9e9)] = 99_950, 50
	if b := exact.read(slices.Clone(v), 100_000, c); b == nil || *b != (schema.Bounds{Min: 2, Max: 5}) {
		t.Errorf("with one record in 2000 far off: %v", b)
	}
	if b := exact.read(slices.Clone(v), 100_000, &schema.Column{Missing: "-1"}); b == nil || *b != (schema.Bounds{Min: -1, Max: 5}) {
		t.Errorf("with missing: -1: %v", b)
	}
	v[schema.GridBin(-3)] = 1000
	if b := exact.read(slices.Clone(v), 100_000, &schema.Column{Missing: "zero", Transform: schema.TransformLog1p}); b == nil || *b != (schema.Bounds{Min: 0, Max: 5}) {
		t.Errorf("with log1p: %v", b)
	}
	clear(v)
	v[schema.GridBin(0)] = 1e5
	if b := exact.read(v, 100_000, c); b != nil {
		t.Errorf("of zeros alone: %v", b)
	}
}

// A dataset whose currency does not count Laplace noise takes Gaussian noise, within its budget.
func TestBoundsInACurrency(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, table := openTable(t, dir, 4000, 1)
	l := openLedger(t, dir)
	if err := l.SetBudget(t.Context(), "incomes", "record", ledger.InGDP, privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.ReplaceOne}); err != nil {
		t.Fatal(err)
	}
	o := BoundsOptions{Schema: file, Data: table, Ledger: filepath.Join(dir, "ledger.db"), Epsilon: 0.5}
	var input *run.InputError
	if _, err := EstimateBounds(t.Context(), o); !errors.As(err, &input) || !strings.Contains(err.Error(), "With --delta above 0") {
		t.Errorf("%v", err)
	}
	if runs, err := l.Runs(t.Context(), "incomes"); err != nil || len(runs) > 0 {
		t.Errorf("%v, %v", runs, err)
	}
	o.Delta = 1e-6
	b, err := EstimateBounds(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if known, err := l.Run(t.Context(), b.Run); err != nil || known.Settlement.Basis != ledger.BasisRecord {
		t.Errorf("%+v, %v", known, err)
	}
	if d, err := l.Dataset(t.Context(), "incomes"); err != nil || !(*d.Part > 0.1 && *d.Part < 0.5) {
		t.Errorf("%+v, %v", d, err)
	}
}

// What a person got wrong costs nothing and makes no ledger.
func TestBoundsRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(o *BoundsOptions, dir string){
		"--adjacency is missing":   func(o *BoundsOptions, _ string) { o.Adjacency = "" },
		"--adjacency: found":       func(o *BoundsOptions, _ string) { o.Adjacency = "both" },
		`--columns: found "known"`: func(o *BoundsOptions, _ string) { o.Columns = []string{"known"} },
		"epsilon: found 0":         func(o *BoundsOptions, _ string) { o.Epsilon = 0 },
		"which is at least 1/rows": func(o *BoundsOptions, _ string) { o.Delta = 0.1 },
		"no such file":             func(o *BoundsOptions, dir string) { o.Data = filepath.Join(dir, "nothing.csv") },
		"rows is missing":          func(o *BoundsOptions, _ string) { edit(t, o.Schema, "rows: 40\n", "") },
		"exactly 41": func(o *BoundsOptions, _ string) {
			edit(t, o.Schema, "rows: 40", "rows: 41")
			o.Adjacency = "replace-one"
		},
		"no column whose bounds":                      func(o *BoundsOptions, _ string) { edit(t, o.Schema, "bounds: unknown", "min: 0, max: 1") },
		"a finite number; values out":                 func(o *BoundsOptions, _ string) { edit(t, o.Data, "u7,", "u7,x") },
		"found no columns outcome; further columns 2": func(o *BoundsOptions, _ string) { edit(t, o.Schema, "name: income", "name: outcome") },
		"bounds: unknown on one line":                 func(o *BoundsOptions, _ string) { edit(t, o.Schema, "bounds: unknown}", "bounds:\n      unknown}") },
	} {
		dir := t.TempDir()
		file, table := openTable(t, dir, 40, 1)
		o := BoundsOptions{Schema: file, Data: table, Ledger: filepath.Join(dir, "ledger.db"), Epsilon: 0.5, Adjacency: "add-or-remove"}
		change(&o, dir)
		if _, err := EstimateBounds(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Stat(o.Ledger); !os.IsNotExist(err) {
			t.Errorf("%s: there is a ledger: %v", want, err)
		}
	}
}

func edit(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s has no %q", path, from)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), from, to)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func openLedger(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}
