package p2

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/compare"
)

// The names of the figures.
const (
	blsgd, blsgdAC, blgd        = "DP-BLSGD", "DP-BLSGD-AC", "DP-BLGD"
	agd, sgd, privgene          = "DP-AGD", "DP-SGD", "PrivGene"
	outpertRSGD, outpertGD      = "OutPert-RSGD", "OutPert-GD"
	objpert, majority, optimum  = "ObjPert", "Majority", "Non-private"
	auto                        = "Sotto's auto" // no method of P2: what Sotto does where no method is chosen
	logistic, svm, smoothed     = "logistic", "svm", "huber-svm"
	accuracyAxis, objectiveAxis = "accuracy, %", "objective"
)

// proposed are P2's own methods.
var proposed = []string{blsgd, blsgdAC, blgd}

// published are P2's hyperparameters (§5.4) that Sotto has too. Noise and the cost of a search are
// Sotto's: with P2's different account, the plan would have another length.
func published(batch string) []string {
	return []string{"batch", batch, "clip", "3", "fall", "1", "armijo", "0.5", "shrink", "0.8", "tries", strconv.Itoa(tries), "search", "1", "growth", "adaptive"}
}

// with is fields with some of them changed.
func with(fields []string, changes ...string) []string {
	out := slices.Clone(fields)
	for i := 0; i < len(changes); i += 2 {
		at := slices.Index(out, changes[i])
		if at < 0 {
			out = append(out, changes[i], changes[i+1])
			continue
		}
		out[at+1] = changes[i+1]
	}
	return out
}

// A panel is a part of Figure 1: one hyperparameter, and its values.
type panel struct {
	name, field string
	values      []string
	usual       string // the value of the others' panels
}

func (s Size) panels() []panel {
	ratios := func(q ...float64) []string {
		var out []string
		for _, v := range q {
			out = append(out, s.batch(datasets[0], v))
		}
		return out
	}
	return []panel{
		{"α of Armijo's condition", "armijo", []string{"0.1", "0.3", "0.5", "0.7", "0.9"}, "0.5"},
		{"β of the backtracking", "shrink", []string{"0.5", "0.6", "0.7", "0.8", "0.9"}, "0.8"},
		{"batch", "batch", ratios(0.02, 0.05, rate, 0.3), s.batch(datasets[0], rate)},
		{"budgets", "growth", []string{"no", "must", "adaptive"}, "adaptive"},
		{"ζ of the clipping threshold", "decay", []string{"0", "0.05", "0.1", "0.2"}, "0"},
	}
}

func (p panel) label(value string) string {
	if value == p.usual {
		return "as published"
	}
	return p.field + " " + value
}

// hyper are the variants of Figure 1.
func (s Size) hyper() []variant {
	base := published(s.batch(datasets[0], rate))
	all := []variant{{"as published", "blsgd", base}}
	for _, p := range s.panels() {
		for _, v := range p.values {
			if v != p.usual {
				all = append(all, variant{p.label(v), "blsgd", with(base, p.field, v)})
			}
		}
	}
	return all
}

// results are all figures of the experiment.
type results struct {
	size Size
	// by table, method and ε
	cells map[[3]string]*compare.Cell
	// Figure 2: passes over the rows, by sampling ratio
	ratios                []float64
	gradients, objectives []float64
	networks              *networks         // nil: not run
	searches              map[string][2]int // by ε: how many at q = 0.1, and how many of them found nothing
}

// cell is the result of a method; nil if it was not run.
func (r *results) cell(table, method, epsilon string) *compare.Cell {
	return r.cells[[3]string{table, method, epsilon}]
}

func (r *results) take(p *compare.Plan) {
	for _, c := range p.Cells {
		r.cells[[3]string{c.Table, c.Method, c.Epsilon}] = c
	}
}

// experiments runs everything.
func (x *experiment) experiments(ctx context.Context) (*results, error) {
	s := x.size
	adult := datasets[0]
	first := x.table(adult, logistic)
	var rough, smooth []run.TableSpec
	for _, d := range datasets {
		rough = append(rough, x.table(d, logistic), x.table(d, svm))
		smooth = append(smooth, x.table(d, logistic), x.table(d, smoothed))
	}
	batch := s.batch(adult, rate)
	gradient := []variant{
		{blsgd, "blsgd", []string{"batch", batch, "growth", "adaptive"}},
		{blsgdAC, "blsgd", []string{"batch", batch, "growth", "adaptive", "decay", "0.05"}},
		{blgd, "blsgd", []string{"growth", "adaptive"}},
		{agd, "agd", nil},
		{sgd, "sgd", []string{"batch", batch}},
		{privgene, "privgene", nil},
		{majority, "majority", nil},
		{auto, "auto", nil},
	}
	minimizers := []variant{{outpertRSGD, "outpert-sgd", nil}, {outpertGD, "outpert", nil}, {objpert, "amp", nil}}
	parts := []struct {
		name      string
		adjacency privacy.Adjacency
		tables    []run.TableSpec
		variants  []variant
		epsilon   []string
		plan      *compare.Plan
	}{
		{name: "hyperparameters", adjacency: privacy.AddRemove, tables: []run.TableSpec{first}, variants: s.hyper(), epsilon: words(s.Hyper)},
		{name: "add-or-remove", adjacency: privacy.AddRemove, tables: rough, variants: gradient, epsilon: words(s.Epsilon)},
		{name: "replace-one", adjacency: privacy.ReplaceOne, tables: smooth, variants: minimizers, epsilon: words(s.Epsilon)},
		{name: "without-noise", adjacency: privacy.AddRemove, tables: smooth, variants: []variant{{optimum, "optimum", nil}}, epsilon: []string{compare.NoNoise}},
	}
	for i := range parts {
		q := &parts[i]
		var err error
		if q.plan, err = x.plan(q.adjacency, q.tables, q.variants, q.epsilon); err != nil {
			return nil, err
		}
		x.all += q.plan.Runs
	}
	x.all += s.Neural.trainings()
	r := &results{size: s, cells: map[[3]string]*compare.Cell{}}
	for _, q := range parts {
		if err := x.run(ctx, q.name, q.plan); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		if q.name == "hyperparameters" {
			for _, c := range q.plan.Cells {
				r.cells[[3]string{"figure 1", c.Method, c.Epsilon}] = c
			}
			continue
		}
		r.take(q.plan)
	}
	if len(s.Neural.Networks) > 0 {
		var err error
		if r.networks, err = x.neural(ctx, s.Neural); err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
	}
	return r, x.evaluations(ctx, r)
}

// evaluations is Figure 2: what a run asks at ε = 0.4, by sampling ratio, in one training each;
// and at the ε of Figure 1 how many searches fail.
func (x *experiment) evaluations(ctx context.Context, r *results) error {
	r.ratios = []float64{0.02, 0.05, rate, 0.3, 1}
	var variants []variant
	for _, q := range r.ratios {
		batch := x.size.batch(datasets[0], q)
		if q == 1 {
			batch = "0"
		}
		variants = append(variants, variant{number(q), "blsgd", published(batch)})
	}
	one := *x
	one.size.Seeds, one.size.Folds, one.size.Split = 1, 0, 0.9
	p, err := one.plan(privacy.AddRemove, []run.TableSpec{x.table(datasets[0], logistic)}, variants, slices.Compact(slices.Sorted(slices.Values(append(words(x.size.Hyper), evaluated)))))
	if err != nil {
		return err
	}
	if err := p.Prepare(x.Jobs); err != nil {
		return err
	}
	counts := map[[2]string]*access{}
	var mu sync.Mutex
	p.Watch = func(c *compare.Cell, _ compare.Result) oracle.Journal {
		mu.Lock()
		defer mu.Unlock()
		a := &access{tries: tries}
		counts[[2]string{c.Method, c.Epsilon}] = a
		return a
	}
	if err := p.Train(ctx, x.Jobs, func(*compare.Cell, compare.Result) error { return nil }); err != nil {
		return err
	}
	for _, q := range r.ratios {
		a := counts[[2]string{number(q), evaluated}]
		r.gradients, r.objectives = append(r.gradients, a.gradients), append(r.objectives, a.objectives)
	}
	r.searches = map[string][2]int{}
	for _, e := range words(x.size.Hyper) {
		a := counts[[2]string{number(rate), e}]
		r.searches[e] = [2]int{a.searches, a.failed}
	}
	return nil
}

// evaluated is the ε of Figure 2.
const evaluated = "0.4"

// tries is max_it, the most candidates of a search, which P2 does not state.
const tries = 20

// mean is the mean accuracy, in percent, or objective.
func mean(c *compare.Cell, axis string) float64 {
	if axis == accuracyAxis {
		return 100 * c.Score().Mean
	}
	return c.Objective().Mean
}

// figure1 is the impact of hyperparameters.
func (r *results) figure1() paper.Figure {
	f := paper.Figure{File: "figure1", Title: "Figure 1: hyperparameters", Note: "accuracy of DP-BLSGD on Adult, logistic; a line for each ε"}
	f.CSV = paper.NewCSV("parameter,value,epsilon,accuracy_mean,accuracy_sd,objective_mean")
	for i, p := range r.size.panels() {
		plot := chart.Plot{ID: fmt.Sprintf("f1-%d", i), Title: p.name, Desc: "Accuracy against the hyperparameter", XLabel: p.field, YLabel: accuracyAxis, Tight: true}
		if p.field == "growth" {
			plot.XLabel = "0 no, 1 must, 2 adaptive"
		}
		for _, e := range r.size.Hyper {
			l := chart.Line{Name: "ε = " + number(e)}
			for k, v := range p.values {
				c := r.cell("figure 1", p.label(v), number(e))
				at, err := strconv.ParseFloat(v, 64)
				if err != nil {
					at = float64(k)
				}
				l.X, l.Y = append(l.X, at), append(l.Y, mean(c, accuracyAxis))
				f.CSV.Add(p.field, v, e, mean(c, accuracyAxis), paper.Digits(100*c.Score().SD, 4), mean(c, objectiveAxis))
			}
			plot.Lines = append(plot.Lines, l)
		}
		f.Plots = append(f.Plots, plot)
	}
	return f
}

// figure2 is the number of evaluations.
func (r *results) figure2() paper.Figure {
	f := paper.Figure{File: "figure2", Title: "Figure 2: evaluations of gradient and objective", Note: "DP-BLSGD on Adult at ε = 0.4, passes over all rows, by sampling ratio"}
	f.CSV = paper.NewCSV("ratio,gradient_passes,objective_passes")
	for i, q := range r.ratios {
		f.CSV.Add(q, r.gradients[i], r.objectives[i])
	}
	f.Plots = []chart.Plot{{ID: "f2", Title: "Passes over the rows", Desc: "Passes of gradients and of losses against the sampling ratio", XLabel: "q", YLabel: "passes", LogX: true, LogY: true,
		Lines: []chart.Line{{Name: "gradient", X: r.ratios, Y: r.gradients}, {Name: "objective", X: r.ratios, Y: r.objectives}}}}
	return f
}

// tableOf is the table that a method has its figures on: those that need a smooth loss have the Huberised one.
func tableOf(data, model, method string) string {
	if model == svm && slices.Contains([]string{outpertRSGD, outpertGD, objpert, optimum}, method) {
		model = smoothed
	}
	return data + " " + model
}

// lines are the methods of Figures 3 and 4.
var lines = []string{blsgd, blsgdAC, blgd, agd, sgd, outpertRSGD, outpertGD, objpert, privgene, majority, auto}

// figure34 is Figure 3 (logistic) or 4 (SVM).
func (r *results) figure34(number34 int, model string) paper.Figure {
	f := paper.Figure{File: fmt.Sprintf("figure%d", number34), Title: fmt.Sprintf("Figure %d: %s by ε", number34, model), Note: "means; δ = 1e-8; sound accounts"}
	f.CSV = paper.NewCSV("table,method,epsilon,accuracy_mean,accuracy_sd,objective_mean,objective_sd")
	for _, axis := range []string{accuracyAxis, objectiveAxis} {
		for _, d := range datasets {
			plot := chart.Plot{ID: fmt.Sprintf("%s-%s-%d", f.File, d.name, len(f.Plots)), Title: d.name + ": " + axis, Desc: "A line for each method", XLabel: "ε", YLabel: axis, LogX: true, Tight: true}
			for _, m := range lines {
				plot.Lines = append(plot.Lines, paper.Line(m, r.size.Epsilon, func(e float64) (x, y float64, ok bool) {
					c := r.cell(tableOf(d.name, model, m), m, number(e))
					if c == nil || c.Score().N == 0 {
						return 0, 0, false
					}
					if axis == accuracyAxis {
						f.CSV.Add(d.name, m, e, mean(c, axis), paper.Digits(100*c.Score().SD, 4), c.Objective().Mean, paper.Digits(c.Objective().SD, 4))
					}
					return e, mean(c, axis), true
				}))
			}
			level := mean(r.cell(tableOf(d.name, model, optimum), optimum, compare.NoNoise), axis)
			plot.Level, plot.LevelName = &level, optimum
			f.Plots = append(f.Plots, plot)
		}
	}
	return f
}
