package p0

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
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
	Of: of, Contents: contents, Record: record,
	Name:  "p0",
	Short: "P0: gradient clipping and value clipping",
	Long: `P0 is Improved Convergence of Differential Private SGD with Gradient Clipping. This runs its
experiments on MNIST, on a synthetic regression and, where they are there, on features of CIFAR-10, and
writes Figures 1 to 5 as CSV and SVG, Table 2, its claims as inequalities that hold or fail, its ε beside Sotto's, and
what tighter bounds win back of what value clipping loses, with one page of HTML.

It needs MNIST as published in the folder --data: mnist/train-images-idx3-ubyte.gz, t10k-images-idx3-ubyte.gz
and their labels. Features are taken from cifar10-features/train.svm.gz and test.svm.gz, LIBSVM
files with classes 0 to 9 and 512 features, say of a trained VGG16. --small takes half a minute;
--full is the paper's size, about 200 trainings in half an hour of processor time.`,
	Example: `  sotto paper p0 --data datasets
  sotto paper p0 --data datasets --full --out p0-full`,
	Small: "a tenth of the rows, few epochs", Full: "the size of the paper",
	Data: "mnist", Needed: true,
	Page:  body,
	Seeds: "1, with a stream of its own for each training",
	Run:   paper.Sized(Small, Full, run),
}

// A Report is the outcome.
type Report struct {
	Size     Size
	Tables   []string
	Curves   []*Curve // of each experiment the best rate's
	Tried    []*Curve // those of all rates
	Times    []Time
	Load     [2]string       // of the machine, before and after Times
	Epsilons []claimed.Claim // of MNIST and CIFAR-10, P0's beside Sotto's
	Cells    []Cell          // of the theorem
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
	scaled := map[string]*task{}
	for setting, schema := range scalings {
		if scaled[setting], err = mnist(ctx, size, l.Data, schema); err != nil {
			return nil, err
		}
	}
	list, groups, err := jobs(size, tasks, scaled)
	if err != nil {
		return nil, err
	}
	curves, err := paper.Each(ctx, l, list, func(ctx context.Context, j job) (*Curve, error) { return j.run(ctx, size) })
	if err != nil {
		return nil, err
	}
	r.Tried, r.Curves = curves, best(list, groups, curves)
	if r.Cells, err = paper.Each(ctx, l, size.Theorem.cells(), func(ctx context.Context, c Cell) (Cell, error) {
		return c.run(ctx)
	}); err != nil {
		return nil, err
	}
	alone := *l
	alone.Progress = nil
	timed, err := paper.Each(ctx, &alone, tasks[:1], func(ctx context.Context, t *task) (timing, error) {
		begin := paper.Load()
		list, err := times(ctx, size, t)
		return timing{list, [2]string{begin, paper.Load()}}, err
	})
	if err != nil {
		return nil, err
	}
	r.Times, r.Load = timed[0].Times, timed[0].Load
	return &paper.Results{R: r,
		Tables:  []paper.Table{r.printed(), r.costs(), r.ladder(), r.epochs(), r.theorem(), slips(), r.settings()},
		Claims:  r.claims(),
		Figures: append(r.figures(), r.theoremFigure())}, nil
}

// costs is the table of ε.
func (r *Report) costs() paper.Table {
	t := paper.Table{ID: "epsilon",
		Title: "ε", Seeds: paper.NoSeed,
		Head: []string{"experiment", "printed", "by its orders", "Sotto", "Sotto ÷ paper", "accountant"}}
	for i, e := range r.Epsilons {
		for _, s := range e.Sound {
			t.Add(e.About, fmt.Sprintf("%.4f", printed[i]), fmt.Sprintf("%.6f", e.Claimed), fmt.Sprintf("%.6f", s.Value),
				fmt.Sprintf("%.3f", s.Value/printed[i]), s.By)
		}
	}
	return t
}

// A figure is one that the paper prints about its experiments.
type figure struct {
	where, what string
	paper       string
	low, high   float64 // of the paper, with half a unit more and less where it says about
	sotto       float64
	why         string  // ours differs
	se          float64 // standard error of sotto over the rows that are scored; 0 where it has none
	others      []other
}

// about widens what the paper prints in whole percents by half a unit.
func about(f figure) figure {
	f.low, f.high = f.low-half, f.high+half
	return f
}

func (f figure) agrees() bool { return f.sotto >= f.low-5e-5 && f.sotto <= f.high+5e-5 }

// differs says that ours is outside by more than two standard errors.
func (f figure) differs() bool { return f.sotto < f.low-2*f.se-5e-5 || f.sotto > f.high+2*f.se+5e-5 }

// An other is what value clipping loses where one or more choices that the paper leaves open are made in another way.
type other struct {
	name string
	loss float64
}

// unprinted are the losses under choices that the paper does not print, or prints in two ways.
func (r *Report) unprinted(name string, clip float64, part string) []other {
	list := []other{
		{"min(1, 2f) of Appendix D", r.loss(name, vcLeast, clip, part)},
		{"pixels in [0, 1], rows a third as long", r.lossIn(pixels, name, vcOld, clip, part)},
		{signed, r.lossIn(signed, name, vcOld, clip, part)},
	}
	if name == network {
		list = append(list,
			other{"norms by one step of power iteration, which is not sound", r.loss(name, vcPower, clip, part)},
			other{"min(1, 2f) and power iteration", r.loss(name, vcBoth, clip, part)},
			other{"all three", r.lossIn(pixels, name, vcBoth, clip, part)})
	}
	return list
}

// byOthers names the choices with which the result agrees with the paper, where ours does not; or those with which it
// differs from the paper, where ours agrees.
func (f figure) byOthers() string {
	var names []string
	agrees := f.agrees()
	for _, o := range f.others {
		if f.sotto = o.loss; !agrees && f.agrees() || agrees && f.differs() {
			names = append(names, fmt.Sprintf("%s (%.1f %%)", o.name, 100*o.loss))
		}
	}
	return strings.Join(names, ", ")
}

// printedFigures are those of the results, in the order of the paper.
func (r *Report) printedFigures() (list []figure) {
	for i, e := range r.Epsilons {
		list = append(list,
			figure{"Figure 1", "ε of " + []string{"MNIST", "CIFAR-10"}[i], fmt.Sprintf("%.4f", printed[i]), printed[i],
				printed[i], e.Claimed, "", 0, nil})
	}
	for _, k := range r.find("MNIST", network, gc) {
		if k.Clip >= 20 {
			list = append(list,
				about(figure{"§6.1", fmt.Sprintf("clipping frequency of the MLP in the end, C = %v", k.Clip), "15 %", 0.15, 0.15,
					Last(k.Clipped),
					fmt.Sprintf("%s; with %s %.1f %%, with %s %.1f %%, each at its best rate", r.oftenByRate(k), pixels, 100*r.often(pixels, k.Clip), signed,
						100*r.often(signed, k.Clip)),
					r.shareError(0.15), nil}))
		}
	}
	for _, part := range []string{"training", "testing"} {
		for _, name := range []string{linear, network} {
			for _, clip := range compared {
				f := figure{where: "§6.2", what: fmt.Sprintf("%s, C = %v, GC − VC, %s accuracy", name, clip, part),
					paper: "about 2 %", low: 0.02, high: 0.02, sotto: r.loss(name, vcOld, clip, part),
					se: r.pairedIn("", name, clip, part)}
				if name == network {
					if f.paper, f.low, f.high = "2 to 3 %", 0.02, 0.03; clip == 10 {
						f.paper, f.low, f.high = "about 4 %", 0.04, 0.04
					}
				}
				f = about(f)
				f.others = r.unprinted(name, clip, part)
				f.why = fmt.Sprintf("P0's constants: with Sotto's the loss is %.1f %%", 100*r.loss(name, vc, clip, part))
				for _, o := range f.others {
					f.why += fmt.Sprintf("; %s: %.1f %%", o.name, 100*o.loss)
				}
				if f.sotto < f.low {
					f.why = "value clipping does better here than in the paper: the loss grows with the length of the rows, which the paper does not state; " + f.why
				}
				list = append(list, f)
			}
		}
	}
	for i, name := range []string{linear, network} {
		for k, e := range []float64{10, 0.01} {
			says := [][]float64{{0.02, 0.05}, {0.03, 0.09}}[i][k]
			gap := r.budgetGap(name, vcOld, e)
			if math.IsNaN(gap) {
				continue
			}
			list = append(list,
				about(figure{"Figure 5", fmt.Sprintf("%s, ε = %v, GC − VC, testing accuracy", name, e),
					fmt.Sprintf("about %.0f %%", 100*says), says, says, gap,
					fmt.Sprintf("the clip norm of Figure 5 is not stated, here %v", fifth), r.budgetError(name, e), nil}))
		}
	}
	return list
}

// printed is every figure that the paper prints about the results of its experiments.
func (r *Report) printed() paper.Table {
	t := paper.Table{Title: "What the paper prints",
		Head: []string{"where", "what", "paper", "Sotto", "Sotto ÷ paper", "reason of a difference"}}
	figures, agree := r.printedFigures(), 0
	for _, f := range figures {
		sotto, why := fmt.Sprintf("%.1f %%", 100*f.sotto), f.why
		if r.Size.Epochs > 0 && why != "" {
			why = fmt.Sprintf("%d epochs on %d rows; ", r.Size.Epochs, r.Size.Rows) + why
		}
		if f.high < 2 && f.low == f.high {
			sotto = fmt.Sprintf("%.4f", f.sotto)
		}
		if f.agrees() {
			agree++
			why = ""
		}
		t.Add(f.where, f.what, f.paper, sotto, fmt.Sprintf("%.2f", 2*f.sotto/(f.low+f.high)), why)
	}
	t.Note = fmt.Sprintf("%d results, of which %d agree to the last digit printed, or to half a unit of the last digit where it says about. Errors are of accuracies on the same rows; one seed of a training has none of its own. Figures 1 to 5 are drawn only: no more of their values are printed. The rows of Tables 1 and 2 are not in the text that this project has.", len(figures), agree)
	return t
}

// settings are those that the paper prints.
func (r *Report) settings() paper.Table {
	t := paper.Table{Title: "Settings that the paper prints", Seeds: paper.NoSeed, Settings: true,
		Head: []string{"where", "setting", "paper", "Sotto"}}
	for _, s := range [][3]string{
		{"batch size", "128", "128"}, {"noise level", "1.0", "1.0"}, {"δ", "10⁻⁵", "10⁻⁵"},
		{"learning rates on MNIST", "0.002, 0.005, 0.01",
			strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Size.Rates), " ", ", "), "[]")},
		{"learning rate on CIFAR-10", "0.1", "0.1"}, {"C on MNIST, Figure 1", "1, 5, 20, 40", "1, 5, 10, 20, 40"},
		{"C on MNIST, §6.2", "10, 20, 40", "10, 20, 40"},
		{"C on CIFAR-10", "0.1, 0.2, 0.4, 1.0", "0.1, 0.2, 0.4, 1.0"}, {"hidden units", "128", "128"},
		{"features of CIFAR-10", "512", "512"}, {"rows and features of the regression", "10,000, 256", "10,000, 256"},
	} {
		t.Add("§6, C.1", s[0], s[1], s[2])
	}
	return t
}

// ladder is what each item costs the MLP on MNIST, one change after the other.
func (r *Report) ladder() paper.Table {
	t := paper.Table{ID: "ladder",
		Title: "What value clipping loses, item by item",
		Note:  "MLP on MNIST, testing accuracy of GC − VC in points, in brackets that of VC. The lines after the first change one thing of it, two of them two and three. Losses of the linear model with the paper's constants and with min(1, 2f): " + r.linearLosses(),
		Head:  []string{"value clipping with", "C = 10", "C = 20", "C = 40"}}
	for _, step := range []struct{ name, setting, kind string }{
		{"the paper's Algorithm 3, norms certified", "", vcOld}, {"min(1, 2f) of Appendix D", "", vcLeast},
		{pixels, pixels, vcOld}, {signed, signed, vcOld}, {"norms by one step of power iteration (not sound)", "", vcPower},
		{"min(1, 2f) and power iteration", "", vcBoth}, {"all three", pixels, vcBoth},
		{"Sotto's constants", "", vc},
	} {
		cells := []any{step.name}
		for _, clip := range compared {
			v, g := Last(r.of(network, step.setting, step.kind, clip).Test), Last(r.of(network, step.setting, gc, clip).Test)
			cells = append(cells, fmt.Sprintf("%.1f (%.1f %%)", 100*(g-v), 100*v))
		}
		t.Add(cells...)
	}
	return t
}

// linearLosses are what value clipping loses with the linear model.
func (r *Report) linearLosses() string {
	var list []string
	for _, clip := range compared {
		list = append(list, fmt.Sprintf("C = %v %.1f and %.1f points", clip, 100*r.loss(linear, vcOld, clip, "testing"),
			100*r.loss(linear, vcLeast, clip, "testing")))
	}
	return strings.Join(list, "; ") + "."
}

// of is the run of a model on MNIST in a setting of the ladder.
func (r *Report) of(name, setting, kind string, clip float64) *Curve {
	k := slices.IndexFunc(r.Curves, func(c *Curve) bool {
		return c.Table == "MNIST" && c.Model == name && c.Setting == setting && c.Kind == kind && c.Clip == clip &&
			c.Epsilon == 0
	})
	return r.Curves[k]
}

// lossIn is how much less of MNIST's training or testing rows value clipping of a kind gets right in a setting of the
// ladder.
func (r *Report) lossIn(setting, name, kind string, clip float64, part string) float64 {
	g, v := r.of(name, setting, gc, clip), r.of(name, setting, kind, clip)
	if part == "training" {
		return Last(g.Train) - Last(v.Train)
	}
	return Last(g.Test) - Last(v.Test)
}

// often is the clipping frequency of GC in the end in a setting of the ladder.
func (r *Report) often(setting string, clip float64) float64 {
	return Last(r.of(network, setting, gc, clip).Clipped)
}

// oftenByRate says how often the run was clipped in the end, at each learning rate.
func (r *Report) oftenByRate(k *Curve) string {
	var list []string
	for _, c := range r.rates(k) {
		list = append(list, fmt.Sprintf("%.1f %% at the learning rate %v", 100*Last(c.Clipped), c.Rate))
	}
	return strings.Join(list, ", ") + fmt.Sprintf("; the best is %v", k.Rate)
}

// rates are the runs of which one has the best rate.
func (r *Report) rates(of *Curve) (list []*Curve) {
	for _, c := range r.Tried {
		if c.Table == of.Table && c.Model == of.Model && c.Kind == of.Kind && c.Setting == of.Setting && c.Clip == of.Clip &&
			c.Epsilon == 0 {
			list = append(list, c)
		}
	}
	return list
}

// slips are those of the paper's text that concern what is computed here.
func slips() paper.Table {
	t := paper.Table{ID: "slips",
		Title: "Slips of the paper", Seeds: paper.NoSeed,
		Head: []string{"where", "it says", "it should say", "because"}}
	t.Add("Algorithm 3, line 4", "f(w), of the whole objective", "fᵢ(w)",
		"the loss of all rows bounds no single gradient; §5 has the index")
	t.Add("Appendix C, Figure 5", "the gap between WGC and VC grows as ε becomes larger",
		"between GC and VC, as ε becomes smaller", "its own figures: 2 and 3 % at ε = 10, 5 and 9 % at 0.01")
	t.Add("Propositions 4.4, Theorem 4.5", "δ, δ′ ∈ (0.5, 1)", "(0, 0.5)", "the proof uses Pr[E] ≥ 1 − δ′ ≥ 0.5")
	t.Add("Proposition 4.4", "T > ε/c₁", "T > ε/(c₁q²)", "Theorem 3.4 asks for ε < c₁q²T")
	t.Add("Proposition 4.4", "E = {‖fᵢ(w)‖ ≤ C}", "{‖∇fᵢ(w)‖ ≤ C}", "values are not clipped")
	t.Add("Corollary 5.1", "T log(1/δ)", "√(T log(1/δ))", "Theorem 3.4")
	t.Add("Appendix B.3", "divides by |B_t|", "by B", "Algorithm 1 does; the size of a Poisson sample is private")
	t.Add("§6.2", "spectral norms, by what method is not said", "upper bounds",
		"power iteration stays below the norm, and then no clipped gradient is within C (S-0c)")
	return t
}

// epochs is Table 2.
func (r *Report) epochs() paper.Table {
	t := paper.Table{ID: "table2",
		Title: "Table 2: time of an epoch",
		Note:  fmt.Sprintf("Processor time of 469 steps of 128 rows of MNIST on one core, without noise, which is the same for all private methods: medians of %d repetitions in turns, %d steps each, of micro-batches a fifth; ratios to SGD in the same repetition are means ± standard errors. GC with a gradient for each row is how Opacus, which P0 compares with, clips; value clipping computes the norms of layers at each step, certified but for the line of power iteration. Load average over a minute, and runnable processes: %s before, %s after. The text of the paper that this project has leaves out the numbers of Table 2.", repeats, max(1, r.Size.Timed/repeats), r.Load[0], r.Load[1]),
		Head:  []string{"model", "method", "seconds", "÷ SGD"}}
	for _, v := range r.Times {
		t.Add(v.Model, v.Kind, fmt.Sprintf("%.3f", v.Seconds), r.ratio(v.Model, v.Kind))
	}
	return t
}

// slug is a name for ids and files.
func slug(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name))
}

// along is a plot of a figure of runs by epochs.
func along(id, title, label string, tight bool, runs []*Curve, of func(*Curve) []float64,
	name func(*Curve) string) chart.Plot {
	p := chart.Plot{ID: slug(id), Title: title, Desc: label + " by epochs, a line for each run.", XLabel: "epochs",
		YLabel: label, Tight: tight}
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
	two := paper.Figure{File: "figure2", Title: "Figure 2: value clipping and gradient clipping, training accuracy",
		Note: "The best rate of each run"}
	three := paper.Figure{File: "figure3", Title: "Figure 3: the same, testing accuracy",
		Note: "The best rate of each run"}
	four := paper.Figure{File: "figure4", Title: "Figure 4: synthetic regression",
		Note: "10,000 rows of 256 normal features, each with its own norm"}
	for _, table := range r.Tables {
		if table == "synthetic" {
			continue
		}
		for _, name := range []string{linear, network} {
			title, id := table+", "+name, table+" "+name
			runs := r.find(table, name, gc)
			one.Plots = append(one.Plots, along("f1a "+id, title, "training accuracy", true, runs, train, clip),
				along("f1c "+id, title, "clipping frequency", false, runs, share, clip))
			for _, k := range r.find(table, name, vc) {
				same := r.ofClip(table, name, k.Clip)
				kind := func(c *Curve) string { return c.Kind }
				at := fmt.Sprintf("%s, C = %v", title, k.Clip)
				two.Plots = append(two.Plots,
					along(fmt.Sprintf("f2 %s %v", id, k.Clip*10), at, "training accuracy", true, same, train, kind))
				three.Plots = append(three.Plots,
					along(fmt.Sprintf("f3 %s %v", id, k.Clip*10), at, "testing accuracy", true, same, test, kind))
			}
		}
	}
	four.Plots = []chart.Plot{along("f4c", gc, "clipping frequency", false, r.find("synthetic", linear, gc), share, clip)}
	for _, kind := range []string{gc, vc, vcOld} {
		four.Plots = append(four.Plots,
			along("f4l "+kind, kind, "mean loss", false, r.find("synthetic", linear, kind), loss, clip))
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
	f := paper.Figure{File: "figure5", Title: "Figure 5: testing accuracy by ε and δ",
		Note: fmt.Sprintf("MNIST, C = %v; ε at δ = 1e-5, δ at ε = %v", fifth, one)}
	for _, name := range []string{linear, network} {
		by := chart.Plot{ID: "f5e-" + slug(name), Title: name, Desc: "Testing accuracy by ε.", XLabel: "ε",
			YLabel: "testing accuracy", LogX: true, Tight: true}
		at := chart.Plot{ID: "f5d-" + slug(name), Title: name, Desc: "Testing accuracy by δ.", XLabel: "δ",
			YLabel: "testing accuracy", LogX: true, Tight: true}
		for _, kind := range []string{gc, vcOld} {
			runs, n := r.budgets(name, kind), len(r.Size.Epsilons)
			by.Lines = append(by.Lines, paper.Line(kind, runs[:n], func(c *Curve) (float64, float64, bool) {
				return c.Epsilon, Last(c.Test), true
			}))
			at.Lines = append(at.Lines, paper.Line(kind, runs[n:], func(c *Curve) (float64, float64, bool) {
				return c.Delta, Last(c.Test), true
			}))
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
	csv := paper.NewCSV("table,model,setting,method,clip,rate,noise,epsilon,delta,epoch,training_accuracy,testing_accuracy,loss,clipping_frequency")
	for _, c := range r.Curves {
		for k := range c.Train {
			csv.Add(c.Table, strconv.Quote(c.Model), strconv.Quote(c.Setting), strconv.Quote(c.Kind), c.Clip, c.Rate, c.Noise,
				c.Epsilon, c.Delta, k+1, c.Train[k], c.Test[k], c.Loss[k], c.Clipped[k])
		}
	}
	return csv
}
