//go:build !race

// Left out under the race detector, which makes a minute of arithmetic ten; .ci/run runs
// it without.
package p4

import (
	"bytes"
	"compress/gzip"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/papertest"
)

// TestSmall: at the small size every certificate is true, the bars hold, and nothing of the paper is judged without its
// tables. The noise is seeded, so this does not change from run to run.
func TestSmall(t *testing.T) {
	found := papertest.Run(t, Experiment, paper.Lab{}, []string{"runs.csv", "cells.csv", "tables.md", "cite.bib", "figure1.csv", "figure1.svg", "figure2.csv", "figure2.svg", "figure3.csv", "figure3.svg", "figure4.csv", "figure4.svg", "index.html"},
		map[string]int{"runs.csv": (4*3*7*2 + 7*4) + (4*3*7*1 + 7*5), "cells.csv": 2 * 4 * 3 * 7})
	r := found.R.(*Report)
	for _, run := range r.Runs {
		if run.Claim != nil && !run.Certified() {
			t.Errorf("%s, %s, ε = %v, %s, run %d: ‖∇F‖ = %v and λ = %v; claimed are %+v", run.Table, run.Setting.Name, run.Epsilon, run.Method, run.Number, run.Gradient, run.Curvature, *run.Claim)
		}
		// What the claims give as the reason: noise decides which runs end.
		if end := run.Status == method.Converged; run.Bound == bounds[0] && slices.Contains([]string{"TR", "OPT-LS", "2OPT-LS"}, run.Method) &&
			(run.NoiseRatio <= 0.9 && !end || run.NoiseRatio > 1.8 && end) {
			t.Errorf("%s, %s, ε = %v, %s: converged %v at a noise of %v × ε_g", run.Table, run.Setting.Name, run.Epsilon, run.Method, end, run.NoiseRatio)
		}
	}
	for _, c := range found.Claims {
		if c.From == "" && !c.Holds || c.From != "" && !c.NotTested {
			t.Errorf("%s: %s, %s", c.Name, c.Verdict(), c.Found)
		}
	}
}

// TestPrinted: a cell holds where all five runs end and the paper prints a time, or where one does not and the paper
// prints ×, on rows of the norm with which most cells of the table are as printed. Several such norms that say different
// things, some of five runs that should all end, and runs that are broken off before all of their steps decide nothing.
func TestPrinted(t *testing.T) {
	cell := func(table string, epsilon float64, converged int) Cell {
		return Cell{Table: table, Of: sampled, Bound: bounds[0], Setting: Settings[0], Epsilon: epsilon, Method: "OPT-LS", Most: 150, Runs: 5, Converged: converged}
	}
	broken := cell(sampled, 0.2, 0)
	broken.Broken = 100
	for _, c := range []struct { // the paper prints × at 0.2 and times at 0.6 and 1
		cells   found
		verdict string
		why     string
	}{
		{found{cell(sampled, 0.2, 5)}, "fails", "of norm 1 5 of 5 end (0 of 1 cells of the table are as printed)."},
		{found{cell(sampled, 0.2, 4)}, "holds", ""},
		{found{cell(sampled, 0.2, 0)}, "holds", ""},
		{found{cell(sampled, 1, 5)}, "holds", ""},
		{found{cell(sampled, 1, 4)}, "not tested", "Too few runs decide: 4 of 5 end"},
		{found{cell(sampled, 1, 0)}, "fails", "the paper does not state its σ"},
		{found{broken}, "not tested", "runs stop at 100 of T = 150"},
		{found{cell(sampled, 0.2, 5), cell(sampled+ofNorm(2), 0.2, 0)}, "holds", ""}, // norm 2 fits better
		{found{cell(sampled, 0.2, 5), cell(sampled+ofNorm(2), 0.2, 0), cell(sampled, 1, 5), cell(sampled+ofNorm(2), 1, 0)}, "not tested",
			"the norm of rows: 5 of 5 end, after 0.0 ± 0.0 steps, at loss 0.000 ± 0.000 (the paper: 0.577); noise 0 × ε_g. The paper prints no norm of its rows; of norm 1 5 of 5 end (1 of 2 cells of the table are as printed); of norm 2 0 of 5 end (1 of 2 cells of the table are as printed)."},
		{found{cell(sampled, 0.2, 5), cell(sampled+ofNorm(2), 0.2, 0), cell(sampled, 1, 5)}, "fails", "of norm 2 0 of 5 end (1 of 1"}, // norm 2 was not run on all
	} {
		var list paper.Claims
		c.cells.printedClaims(&list)
		if len(list) == 0 || list[0].Verdict() != c.verdict || !strings.Contains(list[0].Why, c.why) {
			t.Errorf("%v: found %+v", c, list)
		}
		if v := list[0]; strings.Contains(v.Says, "loss") || !strings.Contains(v.Found+v.Why, "(the paper: 0.") { // losses stand beside
			t.Errorf("%v: found %+v", c, v)
		}
	}
}

// TestFactors: a general sentence holds where the mean of the logarithms of ratios is above 0 by two standard errors,
// one cell against it or not, and fails where it is below by as much; a single cell decides nothing.
func TestFactors(t *testing.T) {
	cells := func(ratios ...float64) (f found) {
		for i, r := range ratios {
			c := Cell{Table: sampled, Bound: bounds[0], Setting: Settings[0], Epsilon: float64(i), Runs: 5, Converged: 5}
			for _, m := range []string{"OPT", "TR"} {
				c.Method, c.Steps, c.Seconds = m, paper.Mean{Value: 10}, paper.Mean{Value: 1}
				if m == "TR" {
					c.Steps.Value, c.Seconds.Value = 10*r, 6*r
				}
				f = append(f, c)
			}
		}
		return f
	}
	const holds, fails, neither = "holds", "fails", "not tested"
	for _, c := range []struct {
		ratios []float64
		want   string
	}{{[]float64{0.5, 0.4, 0.45}, fails}, {[]float64{2, 3, 2, 0.9, 4}, holds}, {[]float64{2, 0.4, 1.2}, neither},
		{[]float64{3}, neither}, {nil, neither}} {
		v := cells(c.ratios...).beside("OPT", "TR", bounds[0], real, every)
		var list paper.Claims
		v.ofSteps.shown(&list, "§1", "fewer", "is fewer", "found", "It is slow.")
		got := fails
		if list[0].NotTested {
			got = neither
		} else if list[0].Holds {
			got = holds
		}
		if got != c.want || len(v.ofSteps) != len(c.ratios) || (got == fails) != (list[0].Why == "It is slow.") {
			t.Errorf("%v: %s, %s: %+v", c.ratios, v.ofSteps, got, list[0])
		}
		for i, x := range v.ofPer { // of 11 iterations, the last without a step, and one more than 10 × ratio
			if want := 6 * c.ratios[i] / (10*c.ratios[i] + 1) * 11; math.Abs(x-math.Log(want)) > 1e-9 {
				t.Errorf("%v: an iteration takes e^%v times as long, want %v", c.ratios[i], x, want)
			}
		}
	}
}

// TestEndless: runs that do not end count with the steps and the time that they take, where those of the other method end.
func TestEndless(t *testing.T) {
	cell := func(method string, converged int, seconds float64) Cell {
		return Cell{Table: sampled, Bound: bounds[0], Setting: Settings[0], Epsilon: 1, Method: method, Runs: 5, Converged: converged,
			Seconds: paper.Mean{Value: seconds}, Steps: paper.Mean{Value: 7}}
	}
	for _, c := range []struct {
		one, other int
		want       int
	}{{5, 5, 1}, {5, 3, 1}, {0, 5, 1}, {4, 0, 0}} {
		v := found{cell("OPT", c.one, 2), cell("TR", c.other, 6)}.beside("OPT", "TR", bounds[0], real, every)
		if len(v.ofTime) != c.want || len(v.ofSteps) != c.want || len(v.ofLoss) != 0 || c.want == 1 && math.Abs(v.ofTime[0]-math.Log(3)) > 1e-9 {
			t.Errorf("%d and %d of 5 end: %+v", c.one, c.other, v)
		}
	}
}

// TestMisprint: the file's rows judge how many IJCNN has; losses stand beside.
func TestMisprint(t *testing.T) {
	for rows, holds := range map[int]bool{4999: true, 49990: false} {
		var list paper.Claims
		found{{Table: ijcnn1, Of: ijcnn1, Rows: rows, Bound: bounds[0], Setting: Settings[3], Epsilon: 0.2, Method: "2OPT-LS", Runs: 5, Loss: paper.Mean{Value: 3.25}}}.misprint(&list)
		if len(list) != 1 || list[0].Holds != holds || !strings.Contains(list[0].Found, "all rows 3.25 (the paper 3.50), 1 of 1 cells end, or not, as printed") {
			t.Errorf("%d rows: %+v", rows, list)
		}
	}
}

// TestFirst: a printed cell is of as many runs as the paper's, the comparison with DP-TR of all.
func TestFirst(t *testing.T) {
	var runs []Run
	for k := range 30 {
		r := Run{Number: k, Status: method.Converged}
		if k == 7 {
			r.Status = method.Running
		}
		runs = append(runs, r)
	}
	if c := cellOf(runs); c.ended() || c.Runs != 30 || !c.first().ended() || c.first().Runs != 5 || cellOf(runs[:3]).first().Runs != 3 {
		t.Errorf("%s, of the first %s", c.ends(), c.first().ends())
	}
	for _, c := range []struct {
		table, bound string
		s            Setting
		want         int
	}{{sampled, bounds[0], Settings[0], 30}, {sampled, bounds[1], Settings[0], 5}, {sampled, bounds[0], Settings[1], 5}, {ijcnn1, bounds[0], Settings[0], 5}, {shaped, bounds[0], Settings[0], 20}} {
		if got := Full.runs(c.table, c.bound, c.s, 0.6); got != c.want {
			t.Errorf("%s, %s, %s: %d runs, want %d", c.table, c.bound, c.s.Name, got, c.want)
		}
	}
}

// TestTables: rows of norm 1 at most, whole numbers of the unit, in groups as Covertype's; files are
// read as what they are.
func TestTables(t *testing.T) {
	check := func(tab *data.Table, rows int) {
		t.Helper()
		if tab.Rows() != rows {
			t.Fatalf("%d rows, want %d", tab.Rows(), rows)
		}
		for _, b := range tab.Blocks {
			for i := range b.N {
				square := 0.0
				for _, v := range b.X[i*b.Dim : (i+1)*b.Dim] {
					if k := float64(v) / unit; k != math.Trunc(k) {
						t.Fatalf("%v is no multiple of the unit", v)
					}
					square += float64(v) * float64(v)
				}
				if n := float64(b.Norm[i]); n < math.Sqrt(square) || n > 1 {
					t.Fatalf("norm %v of a row of norm %v", n, math.Sqrt(square))
				}
			}
		}
	}
	s := synthetic(3000)
	check(s, 3000)
	positive := 0.0
	for _, b := range s.Blocks {
		for i := range b.N {
			positive += float64(b.Y[i])
			ones := 0
			for _, v := range b.X[i*coverDim+numeric : (i+1)*coverDim] {
				if v != 0 {
					ones++
				}
			}
			if ones != 2 {
				t.Fatalf("a row has %d of the two groups", ones)
			}
		}
	}
	if positive < 900 || positive > 2100 {
		t.Errorf("%v of 3,000 labels are positive", positive)
	}
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	head := strings.Join(coverColumns(), ",") + ",Cover_Type\n"
	row := func(class string) string { return "2858.5" + strings.Repeat(",0", coverDim-1) + "," + class + "\n" }
	c, err := covertype(t.Context(), file("c.gz", head+row("1")+row("3")+row("2")))
	if err != nil {
		t.Fatal(err)
	}
	check(c, 2)
	if y := c.Blocks[0].Y; y[0] != 1 || y[1] != 0 || c.Blocks[0].X[0] != 0 {
		t.Errorf("labels %v, elevation %v; want 1, 0 and the middle of the range", y, c.Blocks[0].X[0])
	}
	for _, bad := range []string{head + "1,2\n", head + "x" + row("1")} {
		if _, err := covertype(t.Context(), file("c.gz", bad)); err == nil || !strings.Contains(err.Error(), "c.gz:2:") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	j, err := ijcnn(t.Context(), file("j.gz", "-1 1:1 22:-0.5\n1 3:0.25\n"))
	if err != nil {
		t.Fatal(err)
	}
	check(j, 2)
	if y := j.Blocks[0].Y; y[0] != 0 || y[1] != 1 || j.Blocks[0].X[22+2] != 0.25 {
		t.Errorf("labels %v", y)
	}
	if _, err := ijcnn(t.Context(), file("j.gz", "1 23:1\n")); err == nil {
		t.Error("an index of 23 passed")
	}
}

// TestGap: the bound that is paid for is above F(w_0) of the table, and not by much; it is below the one
// for every table. Ten bounds miss with probability 0.01 in all; the seeds are fixed.
func TestGap(t *testing.T) {
	p, err := newProblem(shaped, synthetic(2000), 1)
	if err != nil {
		t.Fatal(err)
	}
	for run := range 5 {
		w := p.start(run)
		for _, s := range Settings[1:3] {
			penalty, err := reg.New(s.Reg, lambda)
			if err != nil {
				t.Fatal(err)
			}
			r, err := job{p, bounds[1], Setting{s.Name, s.Reg, 1e3, 1e3}, 100, "TR", run, 1}.run(context.Background()) // ends where it begins
			if err != nil {
				t.Fatal(err)
			}
			if r.Steps != 0 || r.Loss > r.Gap || r.Gap > r.Loss+0.1 || r.Gap > p.highest(w)+penalty.Value(w) {
				t.Errorf("run %d: F(w_0) = %v after %d steps, the bounds are %v and %v", run, r.Loss, r.Steps, r.Gap, p.highest(w))
			}
		}
	}
}

// TestPaired: runs of a number begin at one point, so that methods are compared run by run.
func TestPaired(t *testing.T) {
	cell := func(losses ...float64) (c Cell) {
		for i, v := range losses {
			c.runs = append(c.runs, Run{Number: i, Loss: v})
		}
		return c
	}
	a, b := cell(1, 2, 3, 4), cell(1.1, 2.12, 3.1, 4.09) // far closer to each other than runs are
	if !below(a, b, loss) || below(b, a, loss) || below(a, a, loss) || below(cell(1), cell(2), loss) {
		t.Error("a difference of four pairs is not seen, or one is seen of one pair or none")
	}
}

// TestPatience: the cells that the paper prints run all of T steps in the full experiment, on shorter rows, too, and no others.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		size            Size
		of, name, bound string
		norm            float64
		want            int
	}{
		{Full, ijcnn1, ijcnn1, bounds[0], 1, 0}, {Full, ijcnn1, ijcnn1, bounds[1], 1, 200},
		{Full, ijcnn1, ijcnn1 + tenth, bounds[0], 1, 200}, {Full, ijcnn1, ijcnn1 + ofNorm(0.75), bounds[0], 0.75, 0},
		{Full, ijcnn1, ijcnn1 + ofNorm(2), bounds[0], 2, 200}, {Full, shaped, shaped, bounds[0], 1, 200},
		{Small, sampled, sampled, bounds[0], 1, 100},
	} {
		p := &problem{Problem: &paper.Problem{Table: &data.Table{NormBound: c.norm}}, of: c.of, name: c.name}
		if got := c.size.patience(p, c.bound); got != c.want {
			t.Errorf("%s, %s, %s: %d steps, want %d", c.size.Name, c.name, c.bound, got, c.want)
		}
	}
}

// TestRowsDecide: where the table of the paper's size shows the opposite of a sample of its rows, a sentence on times is
// not tested.
func TestRowsDecide(t *testing.T) {
	cells := func(ratio float64) (f found) {
		for _, e := range epsilons {
			for _, m := range []string{"OPT", "OPT-LS"} {
				for _, table := range []string{sampled, shaped} {
					c := Cell{Table: table, Bound: bounds[0], Setting: Settings[0], Epsilon: e, Method: m, Runs: 5, Converged: 5}
					c.Seconds.Value = 1 + e/10
					if m == "OPT-LS" {
						if c.Seconds.Value = 2; table == shaped {
							c.Seconds.Value *= ratio
						}
					}
					f = append(f, c)
				}
			}
		}
		return f
	}
	for ratio, want := range map[float64]string{0.3: "not tested", 1: "fails"} {
		var list paper.Claims
		cells(ratio).improvements(&list)
		if c := list[0]; c.Name != "OPT-LS improves on OPT, time" || c.Verdict() != want {
			t.Errorf("%v: %s, %s: %s%s", ratio, c.Name, c.Verdict(), c.Found, c.Why)
		}
	}
}
