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
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/papertest"
)

// failing are the sentences of the paper that do not hold at the small size, times apart. OPT ends at the
// first small gradient, and DP-TR, which sees the curvature, has then come lower. Searches of OPT-LS err where budgets are
// small and tolerances tight, as in the paper, whose tables mark those runs as failed.
var failing = []string{
	"OPT loss, covtype-shaped, loose, ε = 0.6",
	"OPT loss, covtype-shaped, loose, ε = 1",
	"OPT-LS steps, covtype-shaped, tight, ε = 0.2",
	"OPT-LS Hessians, covtype-shaped, tight, ε = 0.2",
	"OPT-LS steps, covtype-shaped, tight, ℓ2, ε = 0.2",
	"OPT-LS Hessians, covtype-shaped, tight, ℓ2, ε = 0.2",
	"2OPT-LS steps, covtype-shaped, tight, ℓ2, ε = 0.2",
	"2OPT-LS Hessians, covtype-shaped, tight, ℓ2, ε = 0.2",
	"2OPT-LS converges, covtype-shaped, tight, ℓ2, ε = 0.2",
	"OPT-LS steps, covtype-shaped, tight, ℓ2, ε = 0.6",
	"OPT-LS Hessians, covtype-shaped, tight, ℓ2, ε = 0.6",
}

// TestSmall: at the small size every certificate is true, and of the paper's orderings those
// hold that are not in the list. The noise is seeded, so this does not change from run to run.
func TestSmall(t *testing.T) {
	found := papertest.Run(t, Experiment, paper.Lab{}, []string{"runs.csv", "cells.csv", "tables.md", "figure1.svg", "figure2.svg", "figure3.svg", "figure4.svg", "index.html"},
		map[string]int{"runs.csv": (4*3*7*2 + 7*4) + (4*3*7*1 + 7*5), "cells.csv": 2 * 4 * 3 * 7})
	r := found.R.(*Report)
	for _, run := range r.Runs {
		if run.Claim != nil && !run.Certified() {
			t.Errorf("%s, %s, ε = %v, %s, run %d: ‖∇F‖ = %v and λ = %v; claimed are %+v", run.Table, run.Setting.Name, run.Epsilon, run.Method, run.Number, run.Gradient, run.Curvature, *run.Claim)
		}
	}
	// What the claims give as the reason: noise decides which runs end.
	if all, none := ends(r.Cells); !(all > 0.9 && none < 1.8) {
		t.Errorf("all runs end up to a noise of %v × ε_g, none above %v", all, none)
	}
	var failed []string
	for _, c := range found.Claims {
		t.Logf("%-40s %v: %s", c.Name, c.Holds, c.Found)
		if !c.Holds && !c.NotTested && !strings.Contains(c.Name, " time, ") {
			failed = append(failed, c.Name)
		}
	}
	if !slices.Equal(failed, failing) {
		t.Errorf("claims that fail: %q, want %q", failed, failing)
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
			if r.Steps != 0 || r.Loss > r.Gap || r.Gap > r.Loss+0.1 || r.Gap > highest(w)+penalty.Value(w) {
				t.Errorf("run %d: F(w_0) = %v after %d steps, the bounds are %v and %v", run, r.Loss, r.Steps, r.Gap, highest(w))
			}
		}
	}
}
