package p0

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/account/claimed"
)

//go:embed page.html
var pageText string

var sheet = paper.Page("P0, reproduced", pageText)

// A Report is the outcome of the reproduction.
type Report struct {
	Size     Size
	Tables   []string
	Curves   []*Curve
	Times    []Time
	Epsilons []claimed.Claim // of MNIST and CIFAR-10, P0's beside Sotto's
	Claims   paper.Claims
	Files    []string // written, by name
}

// Run runs the experiment on the tables of a folder and writes it to dir, which it makes. done is told how many of all
// runs are over.
func (size Size) Run(ctx context.Context, folder, dir string, done func(runs, all int)) (*Report, error) {
	tasks, err := tables(ctx, size, folder)
	if err != nil {
		return nil, err
	}
	regression, err := synthetic(ctx, size)
	if err != nil {
		return nil, err
	}
	tasks = append(tasks, regression)
	r := &Report{Size: size}
	for _, t := range tasks {
		r.Tables = append(r.Tables, t.name)
	}
	if r.Epsilons, err = epsilons(); err != nil {
		return nil, err
	}
	list, groups, err := jobs(size, tasks)
	if err != nil {
		return nil, err
	}
	if r.Curves, err = all(ctx, size, list, groups, runtime.GOMAXPROCS(0), done); err != nil {
		return nil, err
	}
	if r.Times, err = times(ctx, size, tasks[0]); err != nil {
		return nil, err
	}
	r.claims()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r.Files, err = paper.Write(dir, r.figures(), sheet, map[string]any{"R": r})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// slug is a name for ids and files.
func slug(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name))
}

// epochs are 1, 2, … as many as v has.
func epochs(v []float64) []float64 {
	x := make([]float64, len(v))
	for i := range x {
		x[i] = float64(i + 1)
	}
	return x
}

// along is a plot of a figure of runs by epochs.
func along(id, title, label string, tight bool, runs []*Curve, of func(*Curve) []float64, name func(*Curve) string) chart.Plot {
	p := chart.Plot{ID: slug(id), Title: title, Desc: label + " by epochs, a line for each run.", XLabel: "epochs", YLabel: label, Tight: tight}
	for _, c := range runs {
		p.Lines = append(p.Lines, chart.Line{Name: name(c), X: epochs(of(c)), Y: of(c)})
	}
	return p
}

// figures are those of the paper.
func (r *Report) figures() []paper.Figure {
	clip := func(c *Curve) string { return fmt.Sprintf("C = %v", c.Clip) }
	train, test := func(c *Curve) []float64 { return c.Train }, func(c *Curve) []float64 { return c.Test }
	share, loss := func(c *Curve) []float64 { return c.Clipped }, func(c *Curve) []float64 { return c.Loss }

	one := paper.Figure{File: "figure1", Title: "Figure 1: accuracy and how often is clipped", CSV: r.csv(),
		Note: "Gradient clipping; frequency: the share of rows whose gradient is longer than C"}
	two := paper.Figure{File: "figure2", Title: "Figure 2: value clipping and gradient clipping, training accuracy", Note: "The best rate of each run"}
	three := paper.Figure{File: "figure3", Title: "Figure 3: the same, testing accuracy", Note: "The best rate of each run"}
	four := paper.Figure{File: "figure4", Title: "Figure 4: synthetic regression", Note: "10,000 rows of 256 normal features"}
	for _, table := range r.Tables {
		if table == "synthetic" {
			continue
		}
		for _, name := range []string{linear, network} {
			title, id := table+", "+name, table+" "+name
			runs := r.find(table, name, gc)
			one.Plots = append(one.Plots, along("f1a "+id, title, "training accuracy", true, runs, train, clip), along("f1c "+id, title, "clipping frequency", false, runs, share, clip))
			for _, k := range r.find(table, name, vc) {
				same := r.ofClip(table, name, k.Clip)
				kind := func(c *Curve) string { return c.Kind }
				at := fmt.Sprintf("%s, C = %v", title, k.Clip)
				two.Plots = append(two.Plots, along(fmt.Sprintf("f2 %s %v", id, k.Clip*10), at, "training accuracy", true, same, train, kind))
				three.Plots = append(three.Plots, along(fmt.Sprintf("f3 %s %v", id, k.Clip*10), at, "testing accuracy", true, same, test, kind))
			}
		}
	}
	var regression []*Curve
	for _, kind := range []string{gc, vcOld} {
		regression = append(regression, r.find("synthetic", linear, kind)...)
	}
	both := func(c *Curve) string { return c.Kind + ", " + clip(c) }
	four.Plots = []chart.Plot{
		along("f4c", "gradient clipping", "clipping frequency", false, r.find("synthetic", linear, gc), share, clip),
		along("f4l", "both", "mean loss", false, regression, loss, both),
	}
	return []paper.Figure{one, two, three, four, r.figure5()}
}

// ofClip is the runs of all kinds with a clip norm.
func (r *Report) ofClip(table, name string, clip float64) (list []*Curve) {
	for _, kind := range []string{gc, vc, vcOld} {
		for _, c := range r.find(table, name, kind) {
			if c.Clip == clip {
				list = append(list, c)
			}
		}
	}
	return list
}

func (r *Report) figure5() paper.Figure {
	f := paper.Figure{File: "figure5", Title: "Figure 5: testing accuracy by ε and δ", Note: fmt.Sprintf("MNIST, C = %v; ε at δ = 1e-5, δ at ε = %v", fifth, one)}
	for _, name := range []string{linear, network} {
		by := chart.Plot{ID: "f5e-" + slug(name), Title: name, Desc: "Testing accuracy by ε.", XLabel: "ε", YLabel: "testing accuracy", LogX: true, Tight: true}
		at := chart.Plot{ID: "f5d-" + slug(name), Title: name, Desc: "Testing accuracy by δ.", XLabel: "δ", YLabel: "testing accuracy", LogX: true, Tight: true}
		for _, kind := range []string{gc, vc, vcOld} {
			e, d := chart.Line{Name: kind}, chart.Line{Name: kind}
			for i, c := range r.budgets(name, kind) {
				to := &e
				x := c.Epsilon
				if i >= len(r.Size.Epsilons) {
					to, x = &d, c.Delta
				}
				to.X, to.Y = append(to.X, x), append(to.Y, Last(c.Test))
			}
			by.Lines, at.Lines = append(by.Lines, e), append(at.Lines, d)
		}
		f.Plots = append(f.Plots, by, at)
	}
	return f
}

// budgets is the runs of Figure 5: by ε, then by δ.
func (r *Report) budgets(name, kind string) (list []*Curve) {
	for _, c := range r.Curves {
		if c.Model == name && c.Kind == kind && c.Epsilon > 0 {
			list = append(list, c)
		}
	}
	return list
}

// Won are the lines of the table of what tighter bounds win back.
func (r *Report) Won() (lines []Won) {
	for _, name := range []string{linear, network} {
		for _, clip := range compared {
			lines = append(lines, Won{name, clip, r.at(name, gc, clip), r.at(name, vcOld, clip), r.at(name, vc, clip)})
		}
	}
	return lines
}

// Won is testing accuracy on MNIST.
type Won struct {
	Model         string
	Clip          float64
	GC, Old, Ours float64
}

func (r *Report) csv() string {
	var b strings.Builder
	b.WriteString("table,model,method,clip,rate,noise,epsilon,delta,epoch,training_accuracy,testing_accuracy,loss,clipping_frequency\n")
	for _, c := range r.Curves {
		for k := range c.Train {
			fmt.Fprintf(&b, "%s,%q,%q,%v,%v,%.6g,%v,%v,%d,%.6g,%.6g,%.6g,%.6g\n", c.Table, c.Model, c.Kind, c.Clip, c.Rate, c.Noise, c.Epsilon, c.Delta, k+1, c.Train[k], c.Test[k], c.Loss[k], c.Clipped[k])
		}
	}
	return b.String()
}
