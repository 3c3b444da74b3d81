//go:build !race

// Left out under the race detector, which makes a minute of arithmetic ten; .ci/run runs
// it without.
package p3

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/papertest"
)

// tiny is enough to see that all parts are there.
var tiny = Size{Name: "tiny", Dense: [2]int{40, 20}, Sparse: [2]int{40, 60}, Whole: [2]int{45, 70}, Batch: 8, Seeds: 2}

// TestRun: figures, curves and page are complete and well formed, and what does not hang on the size holds or fails as it should.
func TestRun(t *testing.T) {
	e := Experiment
	e.Run = paper.Sized(tiny, tiny, run)
	found := papertest.Run(t, e, paper.Lab{}, []string{"tables.md", "cite.bib", "figure1.csv", "figure1.svg", "figure2.csv", "figure2.svg", "figure3.csv", "figure3.svg", "figure4.csv", "figure4.svg",
		"one-row.csv", "one-row.svg", "bounds.csv", "bounds.svg", "true-epsilon.csv", "true-epsilon.svg", "index.html"}, map[string]int{"true-epsilon.csv": 20, "figure1.csv": points * (2*(2*(4*5+3)+5+3) + 3)})
	r := found.R.(*Report)
	if want := 2*(2*(4*5+4)+5+3) + 4; len(r.Curves) != want || len(found.Claims) != 3+1+2*16+3 || len(r.Costs) != 20 {
		t.Errorf("%d curves, want %d; %d claims, %d costs", len(r.Curves), want, len(found.Claims), len(r.Costs))
	}
	for _, c := range found.Claims[:3] {
		if c.Holds || c.Why == "" {
			t.Errorf("%s holds, or fails without a reason: %s", c.Name, c.Found)
		}
	}
	for _, c := range r.Costs { // S-3's table
		for _, want := range []struct {
			table                    string
			share, claimed, noise, e float64
		}{{"epsilon", 0.1, 0.2, 0.25215, 28.08}, {"epsilon", 0.1, 1, 0.05043, 2422}, {"epsilon", 0.2, 0.2, 0.35659, 6.57}, {"epsilon", 0.2, 1, 0.07132, 1154}, {"rcv1", 0.1, 1, 0.03875, 4185}} {
			if c.Table == want.table && c.Share == want.share && c.Claimed == want.claimed && !(math.Abs(c.True/want.e-1) < 1e-2 && math.Abs(c.Noise/want.noise-1) < 1e-3) {
				t.Errorf("%+v, want %+v", c, want)
			}
		}
	}
	again, err := job{newTables()[0], tenth, "l2", 0.8, seed}.run(context.Background(), tiny)
	if err != nil {
		t.Fatal(err)
	}
	if first := r.find("epsilon-shaped", "l2", tenth, 0.8); !slices.Equal(first.Objective, again.Objective) {
		t.Errorf("a second run differs: %v, %v", first.Objective, again.Objective)
	}
}

// TestFirstFigure: a sentence on Figure 1 holds where each lead over [19] is clear by the seeds, fails where one is
// clearly the other way, and is not tested otherwise.
func TestFirstFigure(t *testing.T) {
	for _, c := range []struct {
		tenth   []float64 // objectives at the end, by seed, where [19] has 1 and ι = 0.2 has 0.8
		verdict string
	}{
		{[]float64{0.9, 0.91, 0.92}, "holds"}, {[]float64{1.1, 1.11, 1.12}, "fails"}, {[]float64{0.9, 1.1, 1}, "not tested"}, {[]float64{0.9}, "not tested"},
	} {
		r := &Report{Size: Size{Seeds: len(c.tenth)}}
		for i, f := range c.tenth {
			more := func(kind string, end, accuracy float64) {
				r.Curves = append(r.Curves, &Curve{Table: "t", Reg: "l2", Kind: kind, Epsilon: 0.8, Seed: seed + uint64(i), Iterations: []int{1, 10}, Objective: []float64{2 * end, end + 0.001*float64(i)}, Accuracy: accuracy})
			}
			more(tenth, f, 0.9)
			more(fifth, 0.8, 0.9)
			more(allActive, 1, 0.8+0.001*float64(i))
		}
		var all paper.Claims
		r.firstFigure("t", "", &all)
		accuracy := "holds"
		if len(c.tenth) == 1 {
			accuracy = "not tested"
		}
		for i, want := range []string{c.verdict, accuracy, c.verdict} {
			if got := all[i]; got.Verdict() != want {
				t.Errorf("%v: %+v, want %s", c.tenth, got, want)
			}
		}
	}
}

func newTables() []*table {
	return []*table{dense(tiny.Dense[0], tiny.Dense[1]), sparse("rcv1-shaped", tiny.Sparse[0], tiny.Sparse[1])}
}

// TestLeast: the least objective lies between its bounds, which meet, and no step from it leads lower.
func TestLeast(t *testing.T) {
	for _, table := range newTables() {
		for _, reg := range []string{"l2", "l1"} {
			l, err := table.least(context.Background(), reg)
			if err != nil {
				t.Fatal(err)
			}
			objective := func(x []float64) (value float64) {
				rows := rowsOf(table.own)
				for k := range rows {
					value += max(0, 1-rows[k].y*rows[k].dot(x)) / float64(len(rows))
				}
				for _, v := range x {
					if value += mu / 2 * v * v; reg == "l1" {
						value += phi*math.Abs(v) - mu/2*v*v
					}
				}
				return value
			}
			if v := objective(l.X); math.Abs(v-l.Value) > 1e-12 || l.Bound > l.Value || l.Value-l.Bound > 1e-4*l.Value {
				t.Errorf("%s, %s: found %v and at least %v after %d passes, objective %v", table.name, reg, l.Value, l.Bound, l.Passes, v)
			}
			for j := range l.X {
				for _, step := range []float64{-0.1, 0.1} {
					x := slices.Clone(l.X)
					if x[j] += step; objective(x) < l.Bound {
						t.Errorf("%s, %s: %v at a step in %d, at least %v", table.name, reg, objective(x), j, l.Bound)
					}
				}
			}
		}
	}
}

// TestTheorem2: (9) without noise and with γ = 0 is at most 4M/(μι(t+1)), as Appendix C has it, and close to it.
func TestTheorem2(t *testing.T) {
	const share, steps = 0.1, 100_000
	m := share/2 + 2*math.Sqrt(share)/(1-beta(share))
	most := 4 * m / (mu * share * (steps + 1))
	if v := theorem2(steps, "l2", share, 0, 0, 10, 3); v > most || v < 0.99*most {
		t.Errorf("found %v, at most %v", v, most)
	}
	if b := beta(share); math.Abs(b-0.973328526784575) > 1e-12 { // P3_beta_one_edge
		t.Errorf("β = %v", b)
	}
}

// TestTables: rows have a norm of 1, just below, on the table's unit.
func TestTables(t *testing.T) {
	for _, table := range newTables() {
		positive, rows := 0, 0
		for _, own := range table.own {
			if own.Rows() != table.q {
				t.Errorf("%s: an owner has %d rows of %d", table.name, own.Rows(), table.q)
			}
			for _, b := range own.Blocks {
				for i := range b.N {
					var x []float32
					if b.Start != nil {
						x = b.Val[b.Start[i]:b.Start[i+1]]
						if !slices.IsSorted(b.Col[b.Start[i]:b.Start[i+1]]) {
							t.Fatal("columns out of order")
						}
					} else {
						x = b.X[i*b.Dim : (i+1)*b.Dim]
					}
					square := 0.0
					for _, v := range x {
						square += float64(v) * float64(v)
						if u := float64(v) / unit; u != math.Trunc(u) {
							t.Fatalf("%v is no multiple of the unit", v)
						}
					}
					if n := math.Sqrt(square); n > float64(b.Norm[i]) || n < 0.999 || b.Norm[i] > 1 {
						t.Fatalf("norm %v, kept as %v", n, b.Norm[i])
					}
					if rows++; b.Y[i] == 1 {
						positive++
					}
				}
			}
		}
		if share := float64(positive) / float64(rows); share < 0.2 || share > 0.8 {
			t.Errorf("%s: %v of the rows are positive", table.name, share)
		}
	}
}

// TestReal: rcv1-small is read and divided, and the published noise works on it as on the others.
func TestReal(t *testing.T) {
	table, err := real(context.Background(), needs.Data(t))
	if err != nil {
		t.Fatal(err)
	}
	if table.q != 50 || table.own[0].Dim != 47236 || table.test.Rows() != 500 {
		t.Fatalf("%d rows an owner, %d features, %d to score on", table.q, table.own[0].Dim, table.test.Rows())
	}
	c, err := job{table, plain, "l2", 0, seed}.run(context.Background(), tiny)
	if err != nil {
		t.Fatal(err)
	}
	if c.Accuracy < 0.7 || c.Last() > 0.95 { // 50 rows an owner and few activations
		t.Errorf("accuracy %v, objective %v", c.Accuracy, c.Objective)
	}
}
