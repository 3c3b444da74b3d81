package private

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/schema"
)

// totalsTable is a table of n random rows of norm up to 1, with numeric columns and an intercept, and the facts of a run
// with a first release: of a numeric label for 0 classes.
func totalsTable(rnd *rand.Rand, n, dim, classes int, sparse bool) (*data.Table, oracle.Public) {
	rows := randomRows(rnd, n, dim)
	facts := oracle.Public{Dim: dim, Rows: n, Classes: classes, NormBound: 1, Totals: true, OneMargin: classes == 2,
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

// totalsModel is a model of a run with those facts.
func totalsModel(t testing.TB, dim int, facts oracle.Public) model.Model {
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

// totalsConfig is config for a run with a first release.
func totalsConfig(t testing.TB, tab *data.Table, facts oracle.Public, adj privacy.Adjacency) Config {
	cfg := config(t, tab, adj, tab.Rows())
	facts.Adjacency = adj
	cfg.Facts, cfg.Model = facts, totalsModel(t, tab.Dim, facts)
	return cfg
}

// totalsOf is the answer of a fresh oracle to q.
func totalsOf(t testing.TB, cfg Config, q oracle.Totals) []float64 {
	t.Helper()
	b, err := openOracle(t, cfg).Batch(t.Context(), sample.Full{}, q)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := b.Totals(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Totals(q); err == nil {
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
func direct(tab *data.Table, facts oracle.Public, q oracle.Totals) []float64 {
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

// TestTotalsAreTheSums: without noise, the sums of a first release are those of the rows, for classes and for a numeric label.
func TestTotalsAreTheSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 1))
	const n = 2500
	for _, classes := range []int{0, 2, 3, 7} {
		for _, sparse := range []bool{false, true} {
			for _, pairs := range []float64{0, 0.5, 3} {
				for _, dim := range []int{1, 2, 9, 30} {
					tab, facts := totalsTable(rnd, n, dim, classes, sparse)
					for i := range tab.Blocks[0].N {
						tab.Blocks[0].Drop = append(tab.Blocks[0].Drop, i%5 == 0)
					}
					q := oracle.Totals{Cells: classes, Count: 0.7, Pairs: pairs, Noise: mech.None{}}
					if classes == 0 {
						q.Cells = 2 + rnd.IntN(9)
					}
					got, want := totalsOf(t, totalsConfig(t, tab, facts, privacy.AddRemove), q), direct(tab, facts, q)
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
	return totalsConfig(t, table(rows, 2, sparse), oracle.Public{Dim: dim, Rows: n, Classes: 2, NormBound: 1, OneMargin: true, Totals: true,
		Intercept: dim, Numeric: []oracle.Numeric{{At: 0, Bumps: 5}, {At: 6, Bumps: 3}}, Slots: 2}, adj)
}

// TestRefinedAnswers: after Refine, answers are those of an oracle over the refined table, and before those of the table as it was, for
// any number of workers; they stay so.
func TestRefinedAnswers(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, c := range []oracle.Choice{{}, {Pairs: [][2]int{{1, 0}}}, {Pairs: [][2]int{{0, 1}}}, {Lines: true}} {
			cfg := refinedConfig(t, 2600, privacy.AddRemove, sparse)
			cfg.Workers = 3
			tab, err := cfg.Table.Refine(t.Context(), Refinement(cfg.Facts, c), 1)
			if err != nil {
				t.Fatal(err)
			}
			other := cfg
			other.Table, other.Workers, other.Streams = tab, 1, noise.SeededStreams(1)
			if c.Pairs == nil && !c.Lines {
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
	if oracle.PairFeatures != schema.PairFeatures {
		t.Error("places of pairs are not as many features as a pair has")
	}
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
	q, grad := oracle.Totals{Cells: 2, Count: 1, Noise: mech.None{}}, oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	b, err := o.Batch(t.Context(), sample.Full{}, q, grad)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Totals(q); err != nil {
		t.Fatal(err)
	}
	refused(o, oracle.Choice{Pairs: [][2]int{{0, 1}}}, "were charged and not asked")
	if _, err := b.Grad(grad, make([]float64, cfg.Facts.Dim)); err != nil {
		t.Fatal(err)
	}
	if err := o.Refine(t.Context(), oracle.Choice{Pairs: [][2]int{{0, 1}}}); err != nil {
		t.Fatal(err)
	}
	before = o.local.table
	refused(o, oracle.Choice{Pairs: [][2]int{{0, 1}}}, "refined once")
	if meter.charges != 1 || len(journal.charged) != 1 || len(journal.released) != 1 {
		t.Errorf("%d charges, the log has %v", meter.charges, journal.charged)
	}
	plain := cfg
	plain.Facts.Totals = false
	o = openOracle(t, plain)
	before = o.local.table
	refused(o, oracle.Choice{Pairs: [][2]int{{0, 1}}}, "for runs with a first release")
	elsewhere := cfg
	local, err := NewLocal(cfg.Table, cfg.Model, cfg.Facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(local.Close)
	elsewhere.Table = &data.Table{Dim: cfg.Table.Dim, Classes: 2, NormBound: 1, Unit: testUnit, Labeled: true}
	elsewhere.Summer = &diary{Summer: local, adj: privacy.AddRemove}
	refused(openOracle(t, elsewhere), oracle.Choice{Pairs: [][2]int{{0, 1}}}, oracle.ErrNotRefined.Error())
}

// totalsSum is the exact sum of a first release over a table, in units, with the release that it gets.
func totalsSum(t testing.TB, tab *data.Table, facts oracle.Public, q oracle.Totals, workers int) (release, []int64) {
	t.Helper()
	cfg := totalsConfig(t, tab, facts, facts.Adjacency)
	cfg.Workers = workers
	o := openOracle(t, cfg)
	r, err := o.totals(q)
	if err != nil {
		t.Fatal(err)
	}
	s := sum.Sum{Of: sum.CellTotals, Unit: r.unit, Totals: q, Numbers: q.Len(facts)}
	if err := o.local.Draw(t.Context(), sum.Draw{Sampler: sample.Full{}, Total: tab.Rows()}); err != nil {
		t.Fatal(err)
	}
	if err := o.local.Sum(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	counts := make([]int64, s.Len())
	o.local.Take(counts, 0)
	return r, counts
}

// longest is a row of norm up to 1 with all of it in equal numbers of the features from first on.
func longest(rnd *rand.Rand, dim, first int) []float32 {
	x := make([]float32, dim)
	for j := first; j < dim; j++ {
		x[j] = float32(math.Trunc(1/math.Sqrt(float64(dim-first))/testUnit) * testUnit * float64(1-2*rnd.IntN(2)))
	}
	return x
}

// TestTotalsMoves: no row, however hostile, adds more than the bound to the sums of a first release, before and after rounding to the
// grid, under both relations; a row whose norm is in many lines adds nearly all of it.
func TestTotalsMoves(tb *testing.T) {
	most := 0.0
	rapid.Check(tb, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 79))
		classes, sparse := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "classes"), rapid.Bool().Draw(t, "sparse")
		dim := rapid.SampledFrom([]int{1, 2, 5, 70}).Draw(t, "dim")
		_, facts := totalsTable(rnd, 1, dim, classes, sparse)
		if rapid.Bool().Draw(t, "all lines") {
			facts.Numeric = nil
			for at := range dim - 1 {
				facts.Numeric = append(facts.Numeric, oracle.Numeric{At: at})
			}
		}
		facts.Adjacency = privacy.AddRemove
		facts.Rows = rapid.SampledFrom([]int{1, 1000, 1 << 22, 1 << 31}).Draw(t, "rows")
		weight := rapid.SampledFrom([]float64{1. / 1024, 0.1, 1, 16})
		q := oracle.Totals{Cells: max(2, classes), Count: weight.Draw(t, "count"), Pairs: weight.Draw(t, "pairs"), Noise: mech.Gaussian{Sigma: 1}}
		if classes == 0 {
			q.Cells = rapid.IntRange(2, 9).Draw(t, "cells")
		}
		hostile := func() row {
			r := randomRows(rnd, 1, dim)[0]
			switch rnd.IntN(4) {
			case 0:
				clear(r.x)
				r.x[rnd.IntN(dim)] = float32(1 - 2*rnd.IntN(2))
			case 1:
				r.x = longest(rnd, dim, 0)
			case 2:
				for j := range r.x {
					r.x[j] = float32(testUnit * float64(rnd.IntN(3)-1))
				}
			}
			if r.y = float32(rnd.IntN(max(1, classes))); classes == 0 {
				r.y = []float32{-3, 5, -100, 100, float32(-3 + 8*rnd.Float64())}[rnd.IntN(5)]
			}
			return r
		}
		bound := new(big.Float).SetFloat64(q.Bound(facts))
		rows := make([]row, 12)
		for i := range rows {
			rows[i] = hostile()
			r, counts := totalsSum(tb, table(rows[i:i+1], classes, sparse), facts, q, 1)
			size := sizeOf(counts, r.unit, 2)
			if size.Cmp(bound) > 0 {
				t.Fatalf("a row adds %v, above the bound %v", size, bound)
			}
			times, _ := new(big.Float).Quo(size, bound).Float64()
			most = max(most, times)
		}
		differ := func(adj privacy.Adjacency, a, b []row) {
			f := facts
			f.Adjacency = adj
			if adj == privacy.ReplaceOne {
				f.Rows = len(a)
			}
			r, x := totalsSum(tb, table(a, classes, sparse), f, q, 1)
			_, y := totalsSum(tb, table(b, classes, sparse), f, q, 1)
			mech.RoundShift(x, r.shift)
			mech.RoundShift(y, r.shift)
			for j := range x {
				x[j] -= y[j]
			}
			if size, _ := sizeOf(x, r.grid, 2).Float64(); size > r.sens {
				t.Fatalf("%v: sums differ by %v, the sensitivity is %v", adj, size, r.sens)
			}
		}
		i := rnd.IntN(len(rows))
		differ(privacy.AddRemove, rows, slices.Delete(slices.Clone(rows), i, i+1))
		other := slices.Clone(rows)
		if other[i] = hostile(); rnd.IntN(2) == 0 { // the same numbers, some with the other sign
			other[i].x = slices.Clone(rows[i].x)
			for j := range rnd.IntN(dim) + 1 {
				other[i].x[j] *= -1
			}
		}
		if rnd.IntN(2) == 0 {
			other[i].y = rows[i].y
		}
		differ(privacy.ReplaceOne, rows, other)
	})
	tb.Logf("the largest part of a row is %.5f of the bound", most)
	// A row that is in equal numbers in 69 lines has products of nearly its norm over √2.
	x := longest(rand.New(rand.NewPCG(79, 9)), 70, 1)
	facts := oracle.Public{Dim: 70, Rows: 1, Classes: 2, OneMargin: true, NormBound: 1, Totals: true, Adjacency: privacy.AddRemove}
	for at := range 69 {
		facts.Numeric = append(facts.Numeric, oracle.Numeric{At: at + 1})
	}
	for _, weights := range [][2]float64{{1, 0}, {1, 1}, {1. / 1024, 16}, {3, 3}, {16, 16}} {
		q := oracle.Totals{Cells: 2, Count: weights[0], Pairs: weights[1], Noise: mech.Gaussian{Sigma: 1}}
		r, counts := totalsSum(tb, table([]row{{x, 1}}, 2, false), facts, q, 1)
		if size, _ := sizeOf(counts, r.unit, 2).Float64(); size < 0.99*q.Bound(facts) || r.sens > 1.001*q.Bound(facts) {
			tb.Errorf("weights %v: the longest row adds %v, the bound is %v, the sensitivity %v", weights, size, q.Bound(facts), r.sens)
		}
	}
	// Under replace-one the farthest of the same class is −x; with a heavy count it is a row of another class.
	facts.Adjacency = privacy.ReplaceOne
	one, minus := make([]float32, 70), make([]float32, 70)
	one[5], minus[5] = 1, -1
	for _, c := range []struct {
		weights [2]float64
		a, b    row
		least   float64
	}{
		{[2]float64{1. / 1024, 0}, row{one, 1}, row{minus, 1}, 0.999},
		{[2]float64{1, 1}, row{x, 1}, row{x, 0}, 0.99},
		{[2]float64{1, 0}, row{one, 1}, row{minus, 1}, 0.999},
		{[2]float64{16, 16}, row{x, 1}, row{x, 0}, 0.99},
	} {
		q := oracle.Totals{Cells: 2, Count: c.weights[0], Pairs: c.weights[1], Noise: mech.Gaussian{Sigma: 1}}
		r, a := totalsSum(tb, table([]row{c.a}, 2, false), facts, q, 1)
		_, b := totalsSum(tb, table([]row{c.b}, 2, false), facts, q, 1)
		for j := range a {
			a[j] -= b[j]
		}
		if size, _ := sizeOf(a, r.unit, 2).Float64(); size < c.least*q.Sensitivity(facts) || size > q.Sensitivity(facts) {
			tb.Errorf("weights %v: the rows are %v apart, the sensitivity is %v", c.weights, size, q.Sensitivity(facts))
		}
	}
}

// TestTotalsAreTheSameInAnyOrder: a first release is the same bit for bit, with its noise, in any order of rows, stored dense or sparse, and
// for any number of workers.
func TestTotalsAreTheSameInAnyOrder(t *testing.T) {
	for _, classes := range []int{0, 2, 3} {
		var want []float64
		for k := range 6 {
			rnd := rand.New(rand.NewPCG(79, 2))
			tab, facts := totalsTable(rnd, 3*data.BlockRows+17, 12, classes, k%2 == 1)
			if k > 1 {
				order := rand.New(rand.NewPCG(79, uint64(k))).Perm(tab.Rows())
				rows := make([]row, 0, len(order))
				var memory []float32
				for _, i := range order {
					b := tab.Blocks[i/data.BlockRows]
					rows = append(rows, row{slices.Clone(b.Dense(i%data.BlockRows, &memory)), b.Y[i%data.BlockRows]})
				}
				tab = table(rows, classes, k%2 == 1)
			}
			q := oracle.Totals{Cells: max(2, classes), Count: 1, Pairs: 2, Noise: mech.Gaussian{Sigma: 0.5}}
			cfg := totalsConfig(t, tab, facts, privacy.AddRemove)
			cfg.Workers = 1 + k%3
			if got := totalsOf(t, cfg, q); want == nil {
				want = slices.Clone(got)
			} else if !slices.Equal(got, want) {
				t.Errorf("%d classes, table %d has another first release", classes, k)
			}
		}
	}
}

// TestTotalsFits: up to eight times the nominal rows no count of a first release leaves an int64, whatever the weights are.
func TestTotalsFits(t *testing.T) {
	for rows := 1; rows <= 1<<34; rows *= 2 {
		for _, n := range []int{rows, rows + rows/2, 2*rows - 1} {
			for _, norm := range []float64{1e-9, 1, 1.5, 1e9} {
				c := scale{rowUnit: 0x1p-20 * math.Exp2(math.Ceil(math.Log2(norm)))} // as schema.RowRule has it
				q := oracle.Totals{Cells: 2, Count: 16, Pairs: 16}
				most := 8 * float64(n) * q.Bound(oracle.Public{NormBound: norm}) / c.totalsUnit(n)
				if n < 1<<34 && most >= 1<<62 {
					t.Fatalf("%d rows of norm %v: counts up to 2^%v", n, norm, math.Log2(most))
				}
			}
		}
	}
}

// TestTotalsNoise: the noise of each part of a first release has the standard deviation that is charged, under both relations. An estimate
// from n draws has a relative sd of 1/√(2n), n being 40,000 of features and of products, and 398 of counts; 5 of them fail with probability 6e-7, and the seed is
// fixed.
func TestTotalsNoise(t *testing.T) {
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		const dim, sigma, few = 101, 3, 50
		facts := oracle.Public{Dim: dim, Rows: few, Classes: 2, OneMargin: true, NormBound: 1, Totals: true}
		for at := range dim - 1 {
			facts.Numeric = append(facts.Numeric, oracle.Numeric{At: at})
		}
		q := oracle.Totals{Cells: 2, Count: 0.5, Pairs: 3, Noise: mech.Gaussian{Sigma: sigma}}
		o := openOracle(t, totalsConfig(t, table(slices.Repeat([]row{{x: make([]float32, dim)}}, few), 2, false), facts, adj))
		var square, draws [3]float64
		for draws[1] < 40_000 {
			b, err := o.Batch(t.Context(), sample.Full{}, q)
			if err != nil {
				t.Fatal(err)
			}
			sums, err := b.Totals(q)
			if err != nil {
				t.Fatal(err)
			}
			width := len(sums) / 2
			if sums[0] -= few; width != 1+dim+4950 { // rows of class 0
				t.Fatalf("%d numbers", width)
			}
			for k, v := range sums {
				part := 0
				switch k %= width; {
				case k > dim:
					part = 2
				case k > 0:
					part = 1
				}
				if draws[part] < 40_000 {
					square[part], draws[part] = square[part]+v*v, draws[part]+1
				}
			}
		}
		facts.Adjacency = adj
		want := sigma * q.Sensitivity(facts)
		for part, weight := range []float64{q.Count, 1, q.Pairs} {
			got, limit := math.Sqrt(square[part]/draws[part]), 5/math.Sqrt(2*draws[part])
			if math.Abs(got*weight/want-1) > limit+0x1p-10 {
				t.Errorf("%v, part %d: standard deviation %v, want %v", adj, part, got, want/weight)
			}
		}
	}
}

// TestTotalsThatAreNone: first releases that a run does not answer, or that have no bound, are refused and cost nothing; so are runs that
// say that they answer them, over rows of which that is not so.
func TestTotalsThatAreNone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(79, 7))
	good := oracle.Totals{Cells: 2, Count: 1, Pairs: 1, Noise: mech.Gaussian{Sigma: 1}}
	with := func(change func(q *oracle.Totals)) oracle.Totals { q := good; change(&q); return q }
	run := func(classes int, change func(c *Config)) Config {
		tab, facts := totalsTable(rnd, 40, 8, classes, false)
		cfg := totalsConfig(t, tab, facts, privacy.AddRemove)
		if change != nil {
			change(&cfg)
		}
		return cfg
	}
	none := func(*oracle.Totals) {}
	for _, c := range []struct {
		cfg    Config
		change func(q *oracle.Totals)
		s      sample.Sampler
		why    string
	}{
		{run(2, nil), none, sample.Poisson{Rate: 0.5}, "a first release is over all rows"},
		{run(2, nil), none, sample.Allocation{Batches: 3}, "a first release is over all rows"},
		{run(2, nil), func(q *oracle.Totals) { q.Cells = 3 }, sample.Full{}, "has 3 cells; the label has 2 classes"},
		{run(3, nil), none, sample.Full{}, "has 2 cells; the label has 3 classes"},
		{run(0, nil), func(q *oracle.Totals) { q.Cells = 65 }, sample.Full{}, "has 65 cells for a numeric label; choose at most 64"},
		{run(0, nil), func(q *oracle.Totals) { q.Cells = 0 }, sample.Full{}, "has no cell"},
		{run(0, func(c *Config) { c.Facts.LabelSpan = 0 }), none, sample.Full{}, "has no bounds"},
		{run(2, nil), func(q *oracle.Totals) { q.Count = 1e-9 }, sample.Full{}, "the count of a first release has weight 1e-09"},
		{run(2, nil), func(q *oracle.Totals) { q.Count = math.NaN() }, sample.Full{}, "the count of a first release has weight NaN"},
		{run(2, nil), func(q *oracle.Totals) { q.Count = 17 }, sample.Full{}, "has weight 17; choose a number"},
		{run(2, nil), func(q *oracle.Totals) { q.Pairs = -1 }, sample.Full{}, "the products of a first release have weight -1"},
		{run(2, nil), func(q *oracle.Totals) { q.Pairs = math.Inf(1) }, sample.Full{}, "have weight +Inf"},
		{run(2, nil), func(q *oracle.Totals) { q.Noise = nil }, sample.Full{}, "unknown noise"},
		{run(2, nil), func(q *oracle.Totals) { q.Noise = mech.Laplace{Scale: 1} }, sample.Full{}, "choose Gaussian noise"},
		{run(2, nil), func(q *oracle.Totals) { q.Noise = mech.Gaussian{} }, sample.Full{}, ""},
		{run(2, func(c *Config) { c.Facts.Totals = false }), none, sample.Full{}, "this run has others"},
	} {
		q := good
		c.change(&q)
		meter := c.cfg.Meter.(*free)
		if _, err := openOracle(t, c.cfg).Batch(t.Context(), c.s, q); err == nil || !strings.Contains(err.Error(), c.why) || meter.charges > 0 {
			t.Errorf("%+v over %v: %v, want %q; %d charges", q, c.s, err, c.why, meter.charges)
		}
	}
	// What was not charged is not answered.
	b, err := openOracle(t, run(2, nil)).Batch(t.Context(), sample.Full{}, good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Totals(with(func(q *oracle.Totals) { q.Pairs = 0 })); err != oracle.ErrNotCharged {
		t.Errorf("another query than was charged: %v", err)
	}
	wide := oracle.Public{Dim: 3000, Classes: 2, OneMargin: true, Totals: true, Numeric: make([]oracle.Numeric, 2999)}
	if err := good.Fits(wide); err == nil || !strings.Contains(err.Error(), "leave out the products") {
		t.Errorf("more than 2²² numbers: %v", err)
	}

	for name, change := range map[string]func(c *Config){
		"each row a record":    func(c *Config) { c.Facts.UnitRows = 3; c.Table = unitTable(c.Table, make([]int32, 40)) },
		"of one owner":         func(c *Config) { c.Facts.Owners = 3 },
		"have 9 features":      func(c *Config) { c.Facts.Dim, c.Model = 9, logistic(t, 9) },
		"norms up to 1, the":   func(c *Config) { c.Facts.NormBound = 0.5 },
		"does not follow":      func(c *Config) { c.Facts.Numeric = []oracle.Numeric{{At: 0, Bumps: 2}, {At: 2}} },
		"and 1 bumps":          func(c *Config) { c.Facts.Numeric = []oracle.Numeric{{At: 0, Bumps: 1}} },
		"features up to 8, an": func(c *Config) { c.Facts.Numeric = []oracle.Numeric{{At: 7}} }, // the intercept
		"and 1 pairs those":    func(c *Config) { c.Facts.Slots = 1 },
		"for linear models": func(c *Config) {
			c.Model, _ = model.New("mlp", model.Options{Dim: 8, Classes: 2, NormBound: 1, Config: model.MLP{Layers: []string{"3 tanh"}}})
			c.Facts.Dim = c.Model.Dim()
		},
	} {
		cfg := run(2, change)
		if err := cfg.checkTotals(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: an oracle opens", name)
		}
	}
	coded := run(2, nil)
	coded.Table.Short, coded.Facts.Short = &data.Short{}, true
	if _, err := New(coded); err == nil || !strings.Contains(err.Error(), "float32 numbers") {
		t.Errorf("rows of 16-bit numbers: %v", err)
	}
}

// TestTotalsCosts: what is charged for a first release is the event of its noise, in the part of the table that the oracle has, and what is
// charged is what the facts say without an oracle.
func TestTotalsCosts(t *testing.T) {
	tab, facts := totalsTable(rand.New(rand.NewPCG(79, 8)), 40, 8, 0, false)
	for _, part := range []string{"", "train"} {
		for law, want := range map[mech.Additive]privacy.Event{
			mech.Gaussian{Sigma: 3}: privacy.Gaussian{Sigma: 3},
			mech.None{}:             mech.None{}.Event(),
		} {
			for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
				cfg := totalsConfig(t, tab, facts, adj)
				cfg.Part, cfg.Facts.Presence = part, adj == privacy.ReplaceOne
				q := oracle.Totals{Cells: 5, Count: 1, Pairs: 1, Noise: law}
				sums := totalsOf(t, cfg, q)
				journal := cfg.Journal.(*memo)
				if want := privacy.InPart(part, want); len(journal.charged) != 1 || !privacy.Equal(journal.charged[0], want) ||
					!privacy.Equal(privacy.InPart(part, cfg.Facts.Cost(sample.Full{}, []oracle.Query{q})), want) {
					t.Errorf("charged %v, want %v", journal.charged, want)
				}
				if len(journal.released) != 1 || !slices.Equal(journal.released[0][0], sums) {
					t.Errorf("the log has %v, the answer is %v", journal.released, sums)
				}
			}
		}
	}
}

// TestTotalsOfCells: of rows that are cells of histograms, the totals are the counts of the cells, without a label. One row moves them by
// the root of the histograms, and one that is replaced by √2 times that, which rows without a common cell reach; where rows have other
// numbers it is 2 times that. A table that is not of cells is refused.
func TestTotalsOfCells(t *testing.T) {
	rnd := rand.New(rand.NewPCG(45, 3))
	const dim, histograms, n = 30, 9, 2500
	draw := func() row {
		r := row{x: make([]float32, dim)}
		for h := range histograms {
			if rnd.IntN(8) > 0 { // some rows are in no cell of some histogram
				r.x[3*h+rnd.IntN(3)] = 1
			}
		}
		return r
	}
	cells := func(rows []row, sparse bool) *data.Table {
		tab := table(rows, 0, sparse)
		tab.NormBound, tab.Unit, tab.Cells, tab.Labeled = 3, 0x1p-18, true, false
		for _, b := range tab.Blocks {
			b.Y = nil
		}
		return tab
	}
	rows := make([]row, n)
	for i := range rows {
		rows[i] = draw()
	}
	facts := oracle.Public{Dim: dim, Rows: n, NormBound: 3, Totals: true, Cells: true}
	linear, err := model.New("linear", model.Options{Dim: dim, NormBound: 3})
	if err != nil {
		t.Fatal(err)
	}
	q := oracle.Totals{Cells: 1, Noise: mech.None{}}
	for _, sparse := range []bool{false, true} {
		for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
			tab := cells(rows, sparse)
			for i := range tab.Blocks[1].N {
				tab.Blocks[1].Drop = append(tab.Blocks[1].Drop, i%7 == 0)
			}
			want := make([]float64, dim)
			for i, r := range rows {
				if b := tab.Blocks[i/data.BlockRows]; b.Drop != nil && b.Drop[i%data.BlockRows] {
					continue
				}
				for j, v := range r.x {
					want[j] += float64(v)
				}
			}
			cfg := config(t, tab, adj, n)
			cfg.Model, cfg.Facts = linear, facts
			cfg.Facts.Adjacency = adj
			if got := totalsOf(t, cfg, q); !slices.Equal(got, want) {
				t.Errorf("sparse %v, %v: counts %v, want %v", sparse, adj, got, want)
			}
		}
	}
	noisy := oracle.Totals{Cells: 1, Noise: mech.Gaussian{Sigma: 1}}
	most := map[privacy.Adjacency]float64{}
	differ := func(adj privacy.Adjacency, a, b []row) {
		f := facts
		f.Adjacency, f.Rows = adj, max(len(a), len(b))
		r, x := totalsSum(t, cells(a, true), f, noisy, 1)
		_, y := totalsSum(t, cells(b, true), f, noisy, 1)
		mech.RoundShift(x, r.shift)
		mech.RoundShift(y, r.shift)
		for j := range x {
			x[j] -= y[j]
		}
		size, _ := sizeOf(x, r.grid, 2).Float64()
		if size > r.sens {
			t.Fatalf("%v: counts differ by %v, the sensitivity is %v", adj, size, r.sens)
		}
		most[adj] = max(most[adj], size/r.sens)
	}
	for k := range 300 {
		a := []row{draw(), draw(), draw()}
		b := slices.Clone(a)
		if b[1] = draw(); k == 0 { // in each histogram another cell
			a[1], b[1] = row{x: make([]float32, dim)}, row{x: make([]float32, dim)}
			for h := range histograms {
				a[1].x[3*h], b[1].x[3*h+1] = 1, 1
			}
		}
		differ(privacy.ReplaceOne, a, b)
		differ(privacy.AddRemove, a, slices.Delete(slices.Clone(a), 1, 2))
	}
	for adj, part := range most {
		if part < 0.999 {
			t.Errorf("%v: the largest move is %v of the sensitivity", adj, part)
		}
	}
	f := facts
	f.Adjacency = privacy.ReplaceOne
	if got := noisy.Sensitivity(f); math.Abs(got-3*math.Sqrt2) > 1e-12 {
		t.Errorf("sensitivity %v", got)
	}
	if f.Cells = false; math.Abs(noisy.Sensitivity(f)-6) > 1e-12 || noisy.Sensitivity(f) < 6 {
		t.Errorf("sensitivity of other rows %v", noisy.Sensitivity(f))
	}
	plain := cells(rows, true)
	plain.Cells = false
	cfg := config(t, plain, privacy.AddRemove, n)
	cfg.Model, cfg.Facts = linear, facts
	cfg.Facts.Adjacency = privacy.AddRemove
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "the table's are not") {
		t.Errorf("a table of other rows: %v", err)
	}
}
