//go:build !race

// Left out under the race detector, which makes a minute of arithmetic ten; .ci/run runs
// it without.
package p2

import (
	"context"
	"html/template"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/papertest"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/study/compare"
)

// TestSmall runs the small experiment: all is complete and well formed, another version judges it without a training,
// and those of the paper's claims hold that hold by far.
func TestSmall(t *testing.T) {
	t.Parallel()
	all := len(lines())
	l := paper.Lab{Data: needs.Data(t), Dir: filepath.Join(t.TempDir(), "out"), Version: "test"}
	r := papertest.Run(t, Experiment, l, []string{"tables.md", "cite.bib", "figure1.csv", "figure1.svg", "figure2.csv", "figure2.svg", "figure3.csv", "figure3.svg", "figure4.csv", "figure4.svg", "index.html"},
		map[string]int{"figure2.csv": 5, "figure3.csv": 2 * all * len(Small.Epsilon), "figure4.csv": 2 * all * len(Small.Epsilon)})
	clear := []string{"bank-has-a-small-range", "sampling-saves-evaluations"} // by far, at any seed
	for _, c := range r.Claims {
		t.Logf("%v %s: %s", c.Holds, c.Name, c.Found)
		if !c.Holds && slices.Contains(clear, c.Name) {
			t.Errorf("%s fails: %s", c.Name, c.Found)
		}
	}
	if len(r.Claims) != 29 {
		t.Errorf("%d claims", len(r.Claims))
	}
	for _, p := range r.Figures[0].Panels().Plots {
		if units := halfPoint(t, p.SVG()); units < 3 { // of 300 units of height
			t.Errorf("Figure 1, %s: half a point is %.1f units high", p.Title, units)
		}
	}
	l.Version, l.Judge = "another", true
	second, err := Experiment.Reproduce(context.Background(), &l)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range r.Claims {
		if second.Claims[i] != c {
			t.Errorf("from what was kept: %+v", second.Claims[i])
		}
	}
}

// halfPoint is the height of half a point on a plot's y axis, by the places of its ticks.
func halfPoint(t *testing.T, svg template.HTML) float64 {
	ticks := regexp.MustCompile(`y="([\d.]+)" class="ylab">([\d.]+)<`).FindAllStringSubmatch(string(svg), -1)
	if len(ticks) < 2 {
		t.Fatalf("%d ticks", len(ticks))
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first, last := ticks[0], ticks[len(ticks)-1]
	return (number(first[1]) - number(last[1])) / (number(last[2]) - number(first[2])) / 2
}

// An access counts passes: a search that finds its third candidate computes four losses.
func TestAccess(t *testing.T) {
	a := &access{tries: 10}
	for _, e := range []struct {
		event  privacy.Event
		answer float64
	}{
		{privacy.PoissonSampled{Rate: 0.1, Of: privacy.Gaussian{Sigma: 1}}, 0.5}, {privacy.PoissonSampled{Rate: 0.1, Of: privacy.AboveThreshold{Threshold: 1, Query: 2, Max: 10}}, 2},
		{privacy.Gaussian{Sigma: 1}, 0.5}, {privacy.AboveThreshold{Threshold: 1, Query: 2, Max: 10}, -1},
	} {
		if a.Charge(e.event) != nil || a.Release([][]float64{{e.answer}}) != nil {
			t.Fatal("an error")
		}
	}
	if math.Abs(a.Gradients-1.1) > 1e-12 || math.Abs(a.Objectives-11.4) > 1e-12 {
		t.Errorf("passes %v and %v", a.Gradients, a.Objectives)
	}
}

// TestWritten: P2's α is α/|B| of the test that compares means, with all rows where the batch is 0, and an iteration has a
// hundredth of ε.
func TestWritten(t *testing.T) {
	d, size := dataset{rows: 1000}, Size{Steps: 10, Split: 0.9, start: map[float64][2]string{0.2: {"0.1", "1"}, 0.05: {"3", "3"}}}
	for _, c := range []struct{ batch, armijo, want, start, steps string }{{"90", "0.45", "0.005", "0.1", "10"},
		{"45", "0.45", "0.01", "0.1", "40"}, {"0", "0.9", "0.001", "1", "10"}} {
		f := size.written(d, []string{"batch", c.batch, "armijo", c.armijo}, 0.2)
		want := []string{"batch", c.batch, "armijo", c.want, "rate", c.start, "noise_multiplier", "500", "steps", c.steps}
		if !slices.Equal(f, want) {
			t.Errorf("found %q, want %q", f, want)
		}
	}
}

// TestLabels: each value of a panel stands there with P2's test, and α and the budgets with Sotto's, once each.
func TestLabels(t *testing.T) {
	labels := map[string]bool{blsgd: true, blsgdAC: true}
	for _, v := range Full.hyper(0.2) {
		if labels[v.label] {
			t.Errorf("%q twice", v.label)
		}
		labels[v.label] = true
	}
	for _, p := range Full.panels() {
		for _, v := range p.values {
			if !labels[p.label(v)] || p.means && !labels[p.label(v)+perBatch] {
				t.Errorf("found no %q", p.label(v))
			}
		}
	}
}

// TestErrors: methods are compared seed by seed and fold by fold, and a value is the best unless another is ahead by more
// than two standard errors.
func TestErrors(t *testing.T) {
	cell := func(scores ...float64) *compare.Cell {
		c := &compare.Cell{}
		for i := range scores {
			c.Results = append(c.Results, compare.Result{Seed: i / 2, Fold: i % 2, Score: &scores[i]})
		}
		return c
	}
	a, b := cell(0.80, 0.70, 0.90, 0.60), cell(0.79, 0.68, 0.87, 0.56)
	b.Results[0], b.Results[3] = b.Results[3], b.Results[0]         // the order does not matter
	a.Results = append(a.Results, compare.Result{Seed: 9, Fold: 0}) // diverged
	points, se := difference(a, b)                                  // 1, 2, 3 and 4 points
	if math.Abs(points-2.5) > 1e-9 || math.Abs(se-math.Sqrt(5./3/4)) > 1e-9 {
		t.Errorf("ahead by %v ± %v points", points, se)
	}
	if n := errors(a, b); math.Abs(n-points/se) > 1e-9 || math.Abs(n+errors(b, a)) > 1e-9 || errors(a, a) != 0 {
		t.Errorf("found %v standard errors", n)
	}
	w := row{values: []string{"1", "2", "3"}, cells: []*compare.Cell{a, b, cell(0.85, 0.6, 0.99, 0.5)}}
	if by, n := w.beaten("1"); by != "3" || n > 2 {
		t.Errorf("the first is beaten by %s by %v", by, n)
	}
	if by, n := w.beaten("2"); by != "1" || n <= 2 {
		t.Errorf("the second is beaten by %s by %v", by, n)
	}
}

// TestAccounts: the table of accounts agrees with P2's own rule, and its sound figures stay below
// the claimed ones at P2's settings while the shared δ does not.
func TestAccounts(t *testing.T) {
	all, err := accounts([]float64{0.05, 1.6})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Iterations < 1 || a.Searches < a.Iterations || !(a.Fixed > 0 && a.Fixed < a.Claimed) || !(a.OneSample < a.Claimed) || !(a.Adaptive > a.Claimed) {
			t.Errorf("found %+v", a)
		}
	}
}

// TestNeural runs a small network instead of P2's: each training has its points, and the figure, the claims and the numbers are there.
func TestNeural(t *testing.T) {
	t.Parallel()
	x := &experiment{Lab: &paper.Lab{Data: needs.Data(t), Dir: t.TempDir(), Jobs: 1, Version: "test"}}
	n := Neural{Networks: []Network{{"tiny", "mlp", []string{"8 relu"}}, {"small", "cnn", []string{"conv 1 8x8 stride 4 relu", "4 relu"}}}, Epsilon: 2, Steps: 20, Every: 10, Scored: 500, Seeds: 2}
	r, err := x.neural(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	if x.done != n.trainings() || len(r.traces) != n.trainings() {
		t.Errorf("%d trainings of %d, %d were announced", x.done, n.trainings(), len(r.traces))
	}
	for _, tr := range r.traces {
		first, last := tr.at(10), tr.at(20)
		if len(tr.Points) != 2 || !(first.Epsilon < last.Epsilon && last.Epsilon > 1.99 && last.Epsilon <= 2) || !(last.Rate > 0) || !(last.Objective > 0) {
			t.Errorf("%+v", tr)
		}
	}
	f := r.figure()
	if want := 1 + 2*n.trainings(); strings.Count(f.CSV.String(), "\n") != want || len(f.Plots) != 8 {
		t.Errorf("%d lines of %d in the figure's data, %d plots", strings.Count(f.CSV.String(), "\n"), want, len(f.Plots))
	}
	var claims paper.Claims
	r.claims(&claims)
	if len(claims) != 5 {
		t.Errorf("%d claims", len(claims))
	}
	for _, c := range claims {
		t.Log(c.Name, c.Found)
	}
	r.printed(func(from, quantity string, printed, ours any, why string) {
		if p, ok := printed.(float64); ok && math.Abs(ours.(float64)/p-1) > 1e-12 {
			t.Errorf("%s: %v, not %v", quantity, ours, printed)
		}
	})
}
