package private

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// lookedTable is a table of n random rows of norm up to 1, with numeric columns and an intercept, and the facts of a run
// with a first release: of a numeric label for 0 classes.
func lookedTable(rnd *rand.Rand, n, dim, classes int, sparse bool) (*data.Table, oracle.Public) {
	rows := randomRows(rnd, n, dim)
	facts := oracle.Public{Dim: dim, Rows: n, Classes: classes, NormBound: 1, Looked: true, OneMargin: classes == 2,
		Intercept: dim}
	if classes > 2 {
		facts.Dim *= classes
	}
	if classes == 0 {
		facts.LabelMin, facts.LabelSpan = -3, 8
	}
	for at := rnd.IntN(2); at < dim-1; at += 1 + rnd.IntN(3) {
		facts.Numeric = append(facts.Numeric, oracle.Numeric{At: at})
	}
	for i := range rows {
		if rows[i].y = float32(rnd.IntN(max(1, classes))); classes == 0 {
			rows[i].y = float32(-3 + 8*rnd.Float64())
		}
		if i%17 == 0 {
			clear(rows[i].x)
		}
	}
	return table(rows, classes, sparse), facts
}

// lookedModel is a model of a run with those facts.
func lookedModel(t testing.TB, dim int, facts oracle.Public) model.Model {
	t.Helper()
	name := map[int]string{0: "linear", 2: "logistic"}[facts.Classes]
	if name == "" {
		name = "softmax"
	}
	m, err := model.New(name, model.Options{Dim: dim, Classes: facts.Classes, NormBound: 1, LabelMin: facts.LabelMin, LabelMax: facts.LabelMin + facts.LabelSpan})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// lookedConfig is config for a run with a first release.
func lookedConfig(t testing.TB, tab *data.Table, facts oracle.Public, adj privacy.Adjacency) Config {
	cfg := config(t, tab, adj, tab.Rows())
	facts.Adjacency = adj
	cfg.Facts, cfg.Model = facts, lookedModel(t, tab.Dim, facts)
	return cfg
}

// looked is the answer of a fresh oracle to q.
func looked(t testing.TB, cfg Config, q oracle.Look) []float64 {
	t.Helper()
	b, err := openOracle(t, cfg).Batch(t.Context(), sample.Full{}, q)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := b.Look(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Look(q); err == nil {
		t.Error("a second answer to one charge")
	}
	return sums
}

// numbers are those of a row for each cell: the count, the row, the products of its lines.
func numbers(facts oracle.Public, x []float32, products bool) []float64 {
	v, norm := []float64{1}, 0.0
	for _, a := range x {
		v = append(v, float64(a))
	}
	for _, a := range facts.Numeric {
		norm += v[1+a.At] * v[1+a.At]
	}
	if !products {
		return v
	}
	for i, a := range facts.Numeric {
		for _, b := range facts.Numeric[i+1:] {
			p := v[1+a.At] * v[1+b.At]
			if norm > 0 {
				p /= math.Sqrt(norm)
			}
			v = append(v, p)
		}
	}
	return v
}

// direct are the sums of a first release, in float64.
func direct(tab *data.Table, facts oracle.Public, q oracle.Look) []float64 {
	var sums []float64
	for c := range q.Cells {
		cell := make([]float64, q.Len(facts)/q.Cells)
		for _, b := range tab.Blocks {
			var memory []float32
			for i := range b.N {
				h := 0.0
				if facts.Classes > 0 && int(b.Y[i]) == c {
					h = 1
				} else if facts.Classes == 0 { // a triangle around the cell's center
					h = max(0, 1-math.Abs((float64(b.Y[i])-facts.LabelMin)/facts.LabelSpan*float64(q.Cells-1)-float64(c)))
				}
				if b.Drop != nil && b.Drop[i] {
					h = 0
				}
				for k, v := range numbers(facts, b.Dense(i, &memory), q.Pairs > 0) {
					cell[k] += h * v
				}
			}
		}
		sums = append(sums, cell...)
	}
	return sums
}

// TestLookIsTheSums: without noise, the sums of a first release are those of the rows, for classes and for a numeric label.
func TestLookIsTheSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 1))
	const n = 2500
	for _, classes := range []int{0, 2, 3, 7} {
		for _, sparse := range []bool{false, true} {
			for _, pairs := range []float64{0, 0.5, 3} {
				for _, dim := range []int{1, 2, 9, 30} {
					tab, facts := lookedTable(rnd, n, dim, classes, sparse)
					for i := range tab.Blocks[0].N {
						tab.Blocks[0].Drop = append(tab.Blocks[0].Drop, i%5 == 0)
					}
					q := oracle.Look{Cells: classes, Count: 0.7, Pairs: pairs, Noise: mech.None{}}
					if classes == 0 {
						q.Cells = 2 + rnd.IntN(9)
					}
					got, want := looked(t, lookedConfig(t, tab, facts, privacy.AddRemove), q), direct(tab, facts, q)
					if len(got) != len(want) || len(got) != q.Len(facts) {
						t.Fatalf("%d numbers, want %d of %d", len(got), len(want), q.Len(facts))
					}
					for k := range want {
						// A row is rounded by a unit, its shares of cells by 2^-15.
						if limit := n * (testUnit*4/q.Count + 0x1p-15); math.Abs(got[k]-want[k]) > limit {
							t.Fatalf("%d classes, %d features, sparse %t: number %d is %v, want %v", classes, dim, sparse, k, got[k], want[k])
						}
					}
				}
			}
		}
	}
}

// refinedConfig is a run whose rows have two numeric columns with bumps, and places for two pairs before the intercept.
func refinedConfig(t testing.TB, n int, adj privacy.Adjacency, sparse bool) Config {
	rnd := rand.New(rand.NewPCG(79, 5))
	const dim = 6 + 4 + 50 + 1
	rows := make([]row, n)
	for i := range rows {
		v := make([]float64, dim)
		for at, bumps := range map[int]int{0: 5, 6: 3} {
			v[at] = 2*rnd.Float64() - 1
			j, left, right := schema.Bumps(bumps, v[at])
			v[at+1+j], v[at+2+j] = left, right
		}
		v[dim-1] = 1
		norm := 0.0
		for _, x := range v {
			norm += x * x
		}
		rows[i] = row{make([]float32, dim), float32(rnd.IntN(2))}
		for j, x := range v {
			rows[i].x[j] = float32(math.Trunc(x/math.Sqrt(norm)/testUnit) * testUnit)
		}
	}
	return lookedConfig(t, table(rows, 2, sparse), oracle.Public{Dim: dim, Rows: n, Classes: 2, NormBound: 1, OneMargin: true, Looked: true,
		Intercept: dim, Numeric: []oracle.Numeric{{At: 0, Bumps: 5}, {At: 6, Bumps: 3}}, Slots: 2}, adj)
}

// TestRefinedAnswers: after Refine, answers are those of an oracle over the refined table, and before those of the table as it was, for
// any number of workers; they stay so.
func TestRefinedAnswers(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, c := range []oracle.Choice{{}, {Lines: true}, {Pairs: [][2]int{{1, 0}}}, {Lines: true, Pairs: [][2]int{{0, 1}}}} {
			cfg := refinedConfig(t, 2600, privacy.AddRemove, sparse)
			cfg.Workers = 3
			r := data.Refinement{Lines: c.Lines, Pairs: c.Pairs, First: 10, Columns: []data.Bumped{{At: 0, Bumps: 5}, {At: 6, Bumps: 3}}}
			tab, err := cfg.Table.Refine(t.Context(), r, 1)
			if err != nil {
				t.Fatal(err)
			}
			other := cfg
			other.Table, other.Workers, other.Streams = tab, 1, noise.SeededStreams(1)
			if !c.Lines && c.Pairs == nil {
				other.Table = cfg.Table
			}
			was := cfg
			was.Streams = noise.SeededStreams(1)
			o, refined, plain := openOracle(t, cfg), openOracle(t, other), openOracle(t, was)
			grad := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
			w := make([]float64, cfg.Facts.Dim)
			for step := range 4 {
				for _, s := range []sample.Sampler{sample.Full{}, sample.Poisson{Rate: 0.3}} {
					answer := func(o *Oracle) []float64 {
						b, err := o.Batch(t.Context(), s, grad)
						if err != nil {
							t.Fatal(err)
						}
						g, err := b.Grad(grad, w)
						if err != nil {
							t.Fatal(err)
						}
						return g
					}
					got, after, before := answer(o), answer(refined), answer(plain)
					if step < 2 {
						after = before
					}
					if !slices.Equal(got, after) {
						t.Errorf("%+v, sparse %t, step %d, %T: %v, want %v", c, sparse, step, s, got, after)
					}
				}
				if step == 1 {
					if err := o.Refine(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// TestRefineRefuses: a choice that does not fit the run, a second one, and one amid a batch change nothing; none is charged.
func TestRefineRefuses(t *testing.T) {
	cfg := refinedConfig(t, 50, privacy.AddRemove, false)
	meter, journal := cfg.Meter.(*free), cfg.Journal.(*memo)
	o := openOracle(t, cfg)
	before := o.local.table
	refused := func(o *Oracle, c oracle.Choice, why string) {
		t.Helper()
		if err := o.Refine(t.Context(), c); err == nil || !strings.Contains(err.Error(), why) || o.local != nil && o.local.table != before {
			t.Errorf("%+v: %v, want %q", c, err, why)
		}
	}
	for _, c := range []struct {
		oracle.Choice
		why string
	}{
		{oracle.Choice{Pairs: [][2]int{{0, 1}, {0, 1}}}, "pair 1 is of a column with itself, or chosen before"},
		{oracle.Choice{Pairs: [][2]int{{0, 1}, {1, 0}}}, "chosen before"},
		{oracle.Choice{Pairs: [][2]int{{1, 1}}}, "with itself"},
		{oracle.Choice{Pairs: [][2]int{{0, 2}}}, "pair 0 is of column 2"},
		{oracle.Choice{Pairs: [][2]int{{-1, 0}}}, "pair 0 is of column -1"},
		{oracle.Choice{Pairs: make([][2]int, 3)}, "a choice of 3 pairs; rows have places for 2"},
	} {
		refused(o, c.Choice, c.why)
	}
	q, grad := oracle.Look{Cells: 2, Count: 1, Noise: mech.None{}}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	b, err := o.Batch(t.Context(), sample.Full{}, q, grad)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Look(q); err != nil {
		t.Fatal(err)
	}
	refused(o, oracle.Choice{Lines: true}, "were charged and not asked")
	if _, err := b.Grad(grad, make([]float64, cfg.Facts.Dim)); err != nil {
		t.Fatal(err)
	}
	if err := o.Refine(t.Context(), oracle.Choice{Lines: true}); err != nil {
		t.Fatal(err)
	}
	before = o.local.table
	refused(o, oracle.Choice{Lines: true}, "refined once")
	if meter.charges != 1 || len(journal.charged) != 1 || len(journal.released) != 1 {
		t.Errorf("%d charges, the log has %v", meter.charges, journal.charged)
	}
	plain := cfg
	plain.Facts.Looked = false
	o = openOracle(t, plain)
	before = o.local.table
	refused(o, oracle.Choice{Lines: true}, "for runs with a first release")
	elsewhere := cfg
	local, err := NewLocal(cfg.Table, cfg.Model, cfg.Facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	elsewhere.Table = &data.Table{Dim: cfg.Table.Dim, Classes: 2, NormBound: 1, Unit: testUnit, Labeled: true}
	elsewhere.Summer = &diary{Summer: local, adj: privacy.AddRemove}
	refused(openOracle(t, elsewhere), oracle.Choice{Lines: true}, oracle.ErrNotRefined.Error())
}
