package private

import (
	"math"

	"math/rand/v2"

	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
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
