package p0

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/account/claimed"
)

//go:embed page.html
var body string

// Experiment is the reproduction.
var Experiment = paper.Experiment{
	Name:  "p0",
	Short: "P0: gradient clipping and value clipping",
	Long: `P0 is Improved Convergence of Differential Private SGD with Gradient Clipping. This runs its
experiments on MNIST, on a synthetic regression and, where they are there, on features of CIFAR-10, and
writes Figures 1 to 5 as CSV and SVG, Table 2, its claims as inequalities that hold or fail, its ε beside Sotto's, and
what tighter bounds win back of what value clipping loses, with one page of HTML.

It needs MNIST as published in the folder --data: mnist/train-images-idx3-ubyte.gz, t10k-images-idx3-ubyte.gz
and their labels. Features are taken from cifar10-features/train.svm.gz and test.svm.gz, LIBSVM
files with classes 0 to 9 and 512 features, say of a trained VGG16. --small takes less than a minute;
--full is the paper's size and takes many minutes.`,
	Example: `  sotto paper p0 --data datasets
  sotto paper p0 --data datasets --full --out p0-full`,
	Small: "a tenth of the rows, few epochs", Full: "the size of the paper",
	Data: "mnist", Needed: true,
	Page: body,
	Run:  paper.Sized(Small, Full, run),
}

// A Report is the outcome.
type Report struct {
	Size     Size
	Tables   []string
	Curves   []*Curve
	Times    []Time
	Epsilons []claimed.Claim // of MNIST and CIFAR-10, P0's beside Sotto's
}

func run(ctx context.Context, l *paper.Lab, size Size) (*paper.Results, error) {
	tasks, err := tables(ctx, size, l.Data)
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
	if r.Epsilons, err = claimed.Example("p0"); err != nil {
		return nil, err
	}
	list, groups, err := jobs(size, tasks)
	if err != nil {
		return nil, err
	}
	curves, err := paper.Each(ctx, l, list, func(ctx context.Context, j job) (*Curve, error) { return j.run(ctx, size) })
	if err != nil {
		return nil, err
	}
	r.Curves = best(list, groups, curves)
	if r.Times, err = times(ctx, size, tasks[0]); err != nil {
		return nil, err
	}
	return &paper.Results{R: r, Tables: []paper.Table{r.costs(), r.won(), r.epochs()}, Claims: r.claims(), Figures: r.figures()}, nil
}

// costs is the table of ε.
func (r *Report) costs() paper.Table {
	t := paper.Table{Title: "ε", Head: []string{"experiment", "the paper", "by its orders", "Sotto", "accountant"}}
	for i, e := range r.Epsilons {
		for _, s := range e.Sound {
			t.Add(e.About, fmt.Sprintf("%.4f", printed[i]), fmt.Sprintf("%.6f", e.Claimed), fmt.Sprintf("%.6f", s.Value), s.By)
		}
	}
	return t
}

// won is the table of what tighter bounds recover.
func (r *Report) won() paper.Table {
	t := paper.Table{Title: "What tighter bounds win back", Note: "Testing accuracy on MNIST in the end.",
		Head: []string{"model", "C", "GC", "VC, P0's constants", "VC", "GC − VC, P0's constants", "the paper, about", "GC − VC"}}
	for _, name := range []string{linear, network} {
		for _, clip := range compared {
			lost := map[bool]string{true: "0.02", false: "0.02 to 0.03"}[name == linear]
			if name == network && clip == 10 {
				lost = "0.04"
			}
			g, old, own := r.at(name, gc, clip), r.at(name, vcOld, clip), r.at(name, vc, clip)
			t.Add(name, clip, g, old, own, g-old, lost, g-own)
		}
	}
	return t
}

// epochs is Table 2.
func (r *Report) epochs() paper.Table {
	t := paper.Table{Title: "Table 2: time of an epoch",
		Note: fmt.Sprintf("469 steps of 128 expected rows of MNIST on one core, from the time that a tenth of %d steps stays below, a fifth of micro-batches', taken in turns. "+
			"With noise: 7,840 and 101,770 exactly rounded normal numbers a step. Times depend on the machine and its load. The numbers of the paper's Table 2 are not in the text that this project has.", r.Size.Timed),
		Head: []string{"model", "method", "seconds", "÷ SGD", "seconds with noise"}}
	for _, v := range r.Times {
		noisy := ""
		if v.Noisy > 0 {
			noisy = fmt.Sprintf("%.3f", v.Noisy)
		}
		t.Add(v.Model, v.Kind, fmt.Sprintf("%.3f", v.Seconds), fmt.Sprintf("%.2f", v.Ratio), noisy)
	}
	return t
}

// slug is a name for ids and files.
func slug(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name))
}

// along is a plot of a figure of runs by epochs.
func along(id, title, label string, tight bool, runs []*Curve, of func(*Curve) []float64, name func(*Curve) string) chart.Plot {
	p := chart.Plot{ID: slug(id), Title: title, Desc: label + " by epochs, a line for each run.", XLabel: "epochs", YLabel: label, Tight: tight}
	for _, c := range runs {
		l := chart.Line{Name: name(c), Y: of(c)}
		for i := range l.Y {
			l.X = append(l.X, float64(i+1))
		}
		p.Lines = append(p.Lines, l)
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
			runs, n := r.budgets(name, kind), len(r.Size.Epsilons)
			by.Lines = append(by.Lines, paper.Line(kind, runs[:n], func(c *Curve) (float64, float64, bool) { return c.Epsilon, Last(c.Test), true }))
			at.Lines = append(at.Lines, paper.Line(kind, runs[n:], func(c *Curve) (float64, float64, bool) { return c.Delta, Last(c.Test), true }))
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

func (r *Report) csv() *paper.CSV {
	csv := paper.NewCSV("table,model,method,clip,rate,noise,epsilon,delta,epoch,training_accuracy,testing_accuracy,loss,clipping_frequency")
	for _, c := range r.Curves {
		for k := range c.Train {
			csv.Add(c.Table, strconv.Quote(c.Model), strconv.Quote(c.Kind), c.Clip, c.Rate, c.Noise, c.Epsilon, c.Delta, k+1, c.Train[k], c.Test[k], c.Loss[k], c.Clipped[k])
		}
	}
	return csv
}
