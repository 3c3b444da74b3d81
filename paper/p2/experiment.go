package p2

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/study/compare"
)

// The names of the figures.
const (
	blsgd, blsgdAC, blgd        = "DP-BLSGD", "DP-BLSGD-AC", "DP-BLGD"
	agd, sgd, privgene          = "DP-AGD", "DP-SGD", "PrivGene"
	outpertRSGD, outpertGD      = "OutPert-RSGD", "OutPert-GD"
	objpert, majority, optimum  = "ObjPert", "Majority", "Non-private"
	logistic, svm, smoothed     = "logistic", "svm", "huber-svm"
	accuracyAxis, objectiveAxis = "accuracy, %", "objective"
)

// proposed are P2's own methods, baselines the others without Majority.
var (
	proposed  = []string{blsgd, blsgdAC, blgd}
	baselines = []string{agd, sgd, outpertRSGD, outpertGD, privgene, objpert}
)

// published are P2's hyperparameters (§5.4) of DP-BLSGD, without its noise and its η₀.
func published(batch string) []string {
	return []string{"batch", batch, "clip", "3", "fall", "1", "armijo", "0.5", "shrink", "0.8", "tries",
		strconv.Itoa(tries), "search", "1", "growth", "adaptive", "noisy_norm", "true"}
}

// perStep is fields with the noise of P2's budget for an iteration, ε/100, until all of ε is spent or after the steps
// of the size; for a smaller q after as many times more as an iteration costs less, (0.1/q)².
func (s Size) perStep(d dataset, fields []string, epsilon float64) []string {
	steps := s.Steps
	if size := batchOf(fields); size > 0 {
		ratio := max(1, int(math.Round(rate*s.Split*float64(d.rows)/float64(size))))
		steps *= ratio * ratio
	}
	return with(fields, "noise_multiplier", number(2*iters/epsilon), "steps", strconv.Itoa(steps))
}

// batchOf is the size of the batches of fields, 0 for all rows.
func batchOf(fields []string) int {
	size, err := strconv.Atoi(fields[slices.Index(fields, "batch")+1])
	if err != nil {
		panic("p2: fields without a batch")
	}
	return size
}

// written is perStep with the Armijo test of P2's Algorithm 1, which compares the decrease of a sum of losses with the
// square of a mean gradient (S-2f): its α is α/|B| in the method's test, which compares means. η₀ is what choose chose.
func (s Size) written(d dataset, fields []string, epsilon float64) []string {
	size, start := batchOf(fields), s.startAt(epsilon)[0]
	if size == 0 {
		size, start = int(s.Split*float64(d.rows)), s.startAt(epsilon)[1]
	}
	alpha, err := strconv.ParseFloat(fields[slices.Index(fields, "armijo")+1], 64)
	if err != nil {
		panic("p2: fields without α")
	}
	return s.perStep(d, with(fields, "armijo", number(alpha/float64(size)), "rate", start), epsilon)
}

// startAt are the η₀ chosen at an ε, or at the largest one below it.
func (s Size) startAt(epsilon float64) (start [2]string) {
	at := 0.0
	for e, v := range s.start {
		if e <= epsilon && e > at {
			at, start = e, v
		}
	}
	return start
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
	means       bool   // with Sotto's test beside
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
		{"α of Armijo's condition", "armijo", []string{"0.1", "0.5", "0.9"}, "0.5", true},
		{"β of the backtracking", "shrink", []string{"0.5", "0.8", "0.9"}, "0.8", false},
		{"batch", "batch", ratios(0.05, rate, 0.3), s.batch(datasets[0], rate), false},
		{"budgets", "growth", []string{"no", "must", "adaptive"}, "adaptive", true},
		{"ζ of the clipping threshold", "decay", []string{"0", "0.05", "0.2"}, "0", false},
	}
}

func (p panel) label(value string) string {
	switch {
	case value == p.usual:
		return blsgd
	case p.field == "decay" && value == "0.05":
		return blsgdAC
	}
	return p.field + " " + value
}

// What follows the label of a variant: under replace-one; with Sotto's Armijo test, which compares means, and what the
// whole budget allows for 100 iterations; with that test and P2's budget for an iteration.
const (
	swapped  = ", replace-one"
	repaired = ", mean test"
	perBatch = ", mean test, ε/100"
)

// startRates are values of η₀, which P2 does not print, of DP-BLSGD and of DP-BLGD; steps are those of DP-SGD's step
// size, which it prints for networks only, 0.2.
var (
	startRates = [2][]string{{"0.003", "0.01", "0.03", "0.1", "0.3"}, {"0.1", "0.3", "1", "3"}}
	steps      = []string{"0.2", "1", "5"}
)

// starts are the trainings by η₀ at an ε.
func (s Size) starts(epsilon float64) (list []variant) {
	for i, m := range []string{blsgd, blgd} {
		for _, r := range startRates[i] {
			fields := published(map[string]string{blsgd: s.batch(datasets[0], rate), blgd: "0"}[m])
			list = append(list, variant{startLabel(m, r), "blsgd", with(s.written(datasets[0], fields, epsilon), "rate", r)})
		}
	}
	return list
}

func startLabel(method, rate string) string { return method + ", η₀ = " + rate }

// hyper are the other variants of Figure 1 at an ε.
func (s Size) hyper(epsilon float64) (list []variant) {
	d := datasets[0]
	add := func(label string, fields []string) {
		if !slices.ContainsFunc(list, func(v variant) bool { return v.label == label }) {
			list = append(list, variant{label, "blsgd", fields})
		}
	}
	for _, p := range s.panels() {
		for _, v := range p.values {
			fields := with(published(s.batch(d, rate)), p.field, v)
			if label := p.label(v); !slices.Contains(proposed, label) {
				add(label, s.written(d, fields, epsilon))
			}
			if p.means {
				add(p.label(v)+perBatch, s.perStep(d, fields, epsilon))
			}
		}
	}
	return list
}

// ours are P2's methods for a dataset, as published.
func (s Size) ours(d dataset, suffix string, fields func(fields []string) []string) (list []variant) {
	base := published(s.batch(d, rate))
	for i, f := range [][]string{base, with(base, "decay", "0.05"), with(base, "batch", "0")} {
		list = append(list, variant{proposed[i] + suffix, "blsgd", fields(f)})
	}
	return list
}

// others are the lines of Figures 3 and 4 beside P2's own for a dataset: those of add-or-remove, and those that have a
// theorem under replace-one. P2 prints q, C_grad and C_obj for all, and leaves the rest of the baselines to their
// papers (algorithms.md §3.3, §3.4, §3.6). What has no source is Sotto's default.
func (s Size) others(d dataset) (gradient, minimizers []variant) {
	gradient = s.ours(d, repaired, func(f []string) []string { return f })
	gradient = append(gradient, variant{agd, "agd",
		[]string{"splits", "60", "tries", "20", "rate", "2", "clip", "3", "fall", "1", "choice", "2", "growth", "0.1"}},
		variant{privgene, "privgene", []string{"move", "0.5", "decay", "0.95", "clip", "1"}},
		variant{majority, "majority", nil})
	for _, r := range steps {
		gradient = append(gradient,
			variant{sgdLabel(r), "sgd", []string{"batch", s.batch(d, rate), "clip", "3", "rate", r}})
	}
	return gradient, []variant{{outpertRSGD, "outpert-sgd", []string{"average", "true"}},
		{outpertGD, "outpert", []string{"steps", "50"}}, {objpert, "amp", nil}}
}

func sgdLabel(rate string) string { return sgd + ", η = " + rate }

// results are all figures of the experiment.
type results struct {
	size Size
	// by table, method and ε
	cells map[[3]string]*compare.Cell
	step  map[float64]string // of DP-SGD by ε, one of steps
	// Figure 2: passes over the rows, by sampling ratio
	ratios                []float64
	gradients, objectives []float64
	noises                []Noise
	networks              *networks // nil: not run
	// of one training on Adult with P2's budget for an iteration, by variant and ε
	counts map[[2]string]Asked
}

// cell is the result of a method; nil if it was not run.
func (r *results) cell(table, method, epsilon string) *compare.Cell {
	return r.cells[[3]string{table, method, epsilon}]
}

// adult is a cell of Figure 1.
func (r *results) adult(label string, epsilon float64) *compare.Cell {
	return r.cell("a9a "+logistic, label, number(epsilon))
}

// parts are all comparisons, of which the first ones are those that choose η₀.
func (x *experiment) parts() (first, rest []*part) {
	s := x.size
	for _, e := range s.Epsilon {
		q := part{name: "starts-" + number(e), tables: []job.TableSpec{x.table(datasets[0], logistic)},
			variants: s.starts(e), epsilon: words([]float64{e}), last: true}
		first = append(first, &q)
		if h := q; slices.Contains(s.Hyper, e) {
			h.name, h.variants = "figure1-"+number(e), s.hyper(e)
			rest = append(rest, &h)
		}
	}
	for _, d := range datasets {
		rough := []job.TableSpec{x.table(d, logistic), x.table(d, svm)}
		smooth := []job.TableSpec{x.table(d, logistic), x.table(d, smoothed)}
		for _, e := range s.Epsilon {
			written := func(f []string) []string { return s.written(d, f, e) }
			rest = append(rest,
				&part{name: d.name + "-proposed-" + number(e), tables: rough, variants: s.ours(d, "", written),
					epsilon: words([]float64{e}), last: true},
				&part{name: d.name + "-replace-one-" + number(e), adjacency: privacy.ReplaceOne, tables: smooth[:1],
					variants: s.ours(d, swapped, written), epsilon: words([]float64{e}), last: true})
		}
		gradient, minimizers := s.others(d)
		rest = append(rest, &part{name: d.name, tables: rough, variants: gradient, epsilon: words(s.Epsilon), last: true},
			&part{name: d.name + "-minimizers", adjacency: privacy.ReplaceOne, tables: smooth, variants: minimizers,
				epsilon: words(s.Epsilon)},
			&part{name: d.name + "-without-noise", tables: smooth, variants: []variant{{optimum, "optimum", nil}},
				epsilon: []string{compare.NoNoise}})
	}
	return first, rest
}

// experiments runs everything.
func (x *experiment) experiments(ctx context.Context) (*results, error) {
	r := &results{cells: map[[3]string]*compare.Cell{}, step: map[float64]string{}}
	start := map[float64][2]string{}
	for _, e := range x.size.Epsilon {
		start[e] = [2]string{startRates[0][0], startRates[1][0]} // until they are chosen
	}
	x.size.start = start
	first, rest := x.parts()
	for _, q := range slices.Concat(first, rest) {
		p, err := x.plan(*q)
		if err != nil {
			return nil, err
		}
		x.all += p.Runs
	}
	x.all += len(x.size.noises()) + x.size.Neural.trainings()
	all := func(parts []*part) error {
		for _, q := range parts {
			p, err := x.plan(*q)
			if err == nil {
				err = x.run(ctx, q.name, p)
			}
			if err != nil {
				return err
			}
			for _, c := range p.Cells {
				r.cells[[3]string{c.Table, c.Method, c.Epsilon}] = c
			}
		}
		return nil
	}
	if err := all(first); err != nil {
		return nil, err
	}
	for _, e := range x.size.Epsilon {
		start[e] = r.starts(e)
	}
	r.size = x.size
	_, rest = x.parts()
	if err := all(rest); err != nil {
		return nil, err
	}
	r.choose()
	var err error
	if r.noises, err = x.noises(ctx); err != nil {
		return nil, fmt.Errorf("noise of the search: %w", err)
	}
	if len(x.size.Neural.Networks) > 0 {
		if r.networks, err = x.neural(ctx, x.size.Neural); err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
	}
	return r, x.evaluations(ctx, r)
}

// starts are the η₀ of DP-BLSGD and DP-BLGD with the highest mean accuracy at an ε on Adult, logistic.
func (r *results) starts(epsilon float64) (best [2]string) {
	for i, m := range []string{blsgd, blgd} {
		best[i] = highest(startRates[i], func(rate string) float64 {
			return r.adult(startLabel(m, rate), epsilon).Score().Mean
		})
	}
	return best
}

// choose takes DP-SGD's step size by the same rule.
func (r *results) choose() {
	for _, e := range r.size.Epsilon {
		r.step[e] = highest(steps, func(rate string) float64 { return r.adult(sgdLabel(rate), e).Score().Mean })
		for _, d := range datasets {
			for _, model := range both {
				table := d.name + " " + model
				r.cells[[3]string{table, sgd, number(e)}] = r.cell(table, sgdLabel(r.step[e]), number(e))
			}
		}
	}
}

// chosen says which step size was chosen at which ε.
func (r *results) chosen(step func(epsilon float64) string) string {
	var list []string
	for _, e := range r.size.Epsilon {
		list = append(list, fmt.Sprintf("%s at ε = %g", step(e), e))
	}
	return strings.Join(list, ", ")
}

// highest is the choice of the highest value.
func highest(choices []string, value func(string) float64) string {
	return slices.MaxFunc(choices, func(a, b string) int { return cmp.Compare(value(a), value(b)) })
}

// evaluations is what one training on Adult asks with P2's budget for an iteration: at ε = 0.4 for each sampling ratio
// (Figure 2), and at the ε of Figure 1 how many searches fail and how often budgets grow.
func (x *experiment) evaluations(ctx context.Context, r *results) error {
	r.ratios = []float64{0.02, 0.05, rate, 0.3, 1}
	r.counts = map[[2]string]Asked{}
	one, d := *x, datasets[0]
	one.size.Seeds = 1
	at := map[float64][]variant{}
	for _, e := range x.size.Hyper {
		at[e] = one.size.ours(d, "", func(f []string) []string { return one.size.written(d, f, e) })[:2]
		for _, v := range one.size.hyper(e) {
			if strings.HasPrefix(v.label, "growth") && !strings.HasSuffix(v.label, perBatch) {
				at[e] = append(at[e], v)
			}
		}
	}
	for _, q := range r.ratios {
		batch := one.size.batch(d, q)
		if q == 1 {
			batch = "0"
		}
		at[evaluated] = append(at[evaluated], variant{number(q), "blsgd", one.size.written(d, published(batch), evaluated)})
	}
	for _, e := range append(slices.Clone(x.size.Hyper), evaluated) {
		p, err := one.plan(part{tables: []job.TableSpec{x.table(d, logistic)}, variants: at[e],
			epsilon: words([]float64{e}), last: true})
		if err != nil {
			return err
		}
		asked, err := kept(ctx, x, func(ctx context.Context) (map[string]Asked, error) { return x.asked(ctx, p) })
		if err != nil {
			return err
		}
		for method, a := range asked {
			r.counts[[2]string{method, number(e)}] = a
		}
	}
	for _, q := range r.ratios {
		a := r.counts[[2]string{number(q), number(evaluated)}]
		r.gradients, r.objectives = append(r.gradients, a.Gradients), append(r.objectives, a.Objectives)
	}
	return nil
}

// asked is what one training of each method asks.
func (x *experiment) asked(ctx context.Context, p *compare.Plan) (map[string]Asked, error) {
	if err := p.Prepare(x.Jobs); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	by := map[string]*access{}
	p.Watch = func(c *compare.Cell, _ compare.Result) oracle.Journal {
		mu.Lock()
		defer mu.Unlock()
		a := &access{tries: tries}
		by[c.Method] = a
		return a
	}
	if err := p.Train(ctx, x.Jobs, func(*compare.Cell, compare.Result) error { return nil }); err != nil {
		return nil, err
	}
	all := map[string]Asked{}
	for method, a := range by {
		all[method] = a.Asked
	}
	return all, nil
}

// evaluated is the ε of Figure 2.
const evaluated = 0.4

// tries is max_it, the most candidates of a search, which P2 does not state.
const tries = 20

// mean is the mean accuracy, in percent, or objective.
func mean(c *compare.Cell, axis string) float64 {
	if axis == accuracyAxis {
		return 100 * c.Score().Mean
	}
	return c.Objective().Mean
}

// spread is the standard deviation of mean.
func spread(c *compare.Cell, axis string) float64 {
	if axis == accuracyAxis {
		return 100 * c.Score().SD
	}
	return c.Objective().SD
}

// percent is the accuracy of a cell in percent.
func percent(c *compare.Cell) compare.Figure {
	f := c.Score()
	f.Mean, f.SD = 100*f.Mean, 100*f.SD
	return f
}

// difference is by how many points a is above b on average, over the seeds and folds of both, with its standard error:
// those of one seed share their rows and what is drawn from the seed, so they are compared with each other.
func difference(a, b *compare.Cell) (points, se float64) {
	type part struct{ seed, fold int }
	of := map[part]float64{}
	for _, r := range b.Results {
		if r.Score != nil {
			of[part{r.Seed, r.Fold}] = *r.Score
		}
	}
	var list []float64
	for _, r := range a.Results {
		if v, ok := of[part{r.Seed, r.Fold}]; ok && r.Score != nil {
			list = append(list, 100*(*r.Score-v))
		}
	}
	return paper.MeanError(list)
}

// errors says by how many standard errors of the difference a is above b; 0 where all are equal.
func errors(a, b *compare.Cell) float64 {
	points, se := difference(a, b)
	if points == 0 {
		return 0
	}
	return points / se
}

// deviation is a standard deviation, empty for that of one value.
func deviation(sd float64) string {
	if math.IsNaN(sd) {
		return ""
	}
	return paper.Digits(sd, 4)
}

// figure1 is the impact of hyperparameters. Each panel has a range of its own, since it shows differences of half a
// point.
func (r *results) figure1() paper.Figure {
	f := paper.Figure{File: "figure1", Title: "Figure 1: hyperparameters",
		Note: fmt.Sprintf("accuracy of DP-BLSGD on Adult, logistic, ε/100 for each iteration, until ε is spent or after %d iterations, for q below 0.1 (0.1/q)² times as many; P2's Armijo test with the η₀ that does best of those in the panels of η₀ at each ε (P2 prints none): %s; and beside it for α and the budgets Sotto's, which compares means; means of %d seeds, each of which holds out other rows, with bars of one standard deviation; each panel has its own range. The Gaussian search, with the noise of Algorithm 1, does not cost what Theorem 3 says (S-2d): its panel is a run without a guarantee, and Sotto has no such search", r.size.Steps,
			r.chosen(func(e float64) string { return r.size.start[e][0] }), r.size.Seeds)}
	f.CSV = paper.NewCSV("parameter,value,test,epsilon,seeds,accuracy_mean,accuracy_sd,objective_mean,steps_mean")
	for _, e := range r.size.Epsilon {
		hyper := slices.Contains(r.size.Hyper, e)
		plot := func(title, field, test string, values, labels []string) (chart.Plot, chart.Line) {
			p := chart.Plot{ID: fmt.Sprintf("f1-%d", len(f.Plots)), Title: fmt.Sprintf("%s, ε = %g", title, e),
				Desc: "Accuracy against the hyperparameter", XLabel: field,
				YLabel: fmt.Sprintf("%s (%s, ε = %g)", accuracyAxis, strings.TrimPrefix(field, "η₀ of DP-"), e), Tight: true}
			l := chart.Line{Name: test}
			for k, v := range values {
				at, err := strconv.ParseFloat(v, 64)
				if err != nil {
					at, p.Categories = float64(k), values
				}
				c := r.adult(labels[k], e)
				score := percent(c)
				f.CSV.Add(strconv.Quote(field), v, test, e, score.N, score.Mean, deviation(score.SD), mean(c, objectiveAxis),
					paper.MeanOf(c.Results, func(t compare.Result) float64 { return float64(t.Steps) }).Value)
				l.X, l.Y, l.SD = append(l.X, at), append(l.Y, score.Mean), append(l.SD, score.SD)
			}
			return p, l
		}
		for _, q := range r.size.panels() {
			if !hyper {
				break
			}
			var labels, means []string
			for _, v := range q.values {
				labels, means = append(labels, q.label(v)), append(means, q.label(v)+perBatch)
			}
			p, l := plot(q.name, q.field, "P2's test", q.values, labels)
			if p.Lines = []chart.Line{l}; q.means {
				_, l = plot(q.name, q.field, "mean test", q.values, means)
				p.Lines = append(p.Lines, l)
			}
			f.Plots = append(f.Plots, p)
		}
		for i, m := range []string{blsgd, blgd} {
			var labels []string
			for _, v := range startRates[i] {
				labels = append(labels, startLabel(m, v))
			}
			p, l := plot("η₀ of "+m, "η₀ of "+m, "P2's test", startRates[i], labels)
			p.Lines, p.LogX = []chart.Line{l}, true
			f.Plots = append(f.Plots, p)
		}
		if !hyper {
			continue
		}
		p := chart.Plot{ID: fmt.Sprintf("f1-noise-%v", e), Title: fmt.Sprintf("noise of the search, ε = %g", e),
			Desc: "Accuracy with Laplace and with Gaussian noise", XLabel: "noise", YLabel: fmt.Sprintf("%s (noise, ε = %g)",
				accuracyAxis, e), Tight: true, Categories: []string{"Laplace", "Gaussian: unsound"}}
		l := chart.Line{Name: "P2's test", X: []float64{0, 1}}
		for k, name := range []string{"laplace", "gaussian"} {
			m := r.byNoise(e, k == 1)
			l.Y, l.SD = append(l.Y, m.Value), append(l.SD, m.SD)
			f.CSV.Add("noise", name, "P2's test", e, r.size.Seeds, m.Value, deviation(m.SD), "", "")
		}
		p.Lines = []chart.Line{l}
		f.Plots = append(f.Plots, p)
	}
	return f
}

// figure2 is the number of evaluations.
func (r *results) figure2() paper.Figure {
	f := paper.Figure{File: "figure2", Title: "Figure 2: evaluations of gradient and objective",
		Note: "DP-BLSGD on Adult at ε = 0.4, passes over all rows, by sampling ratio"}
	f.CSV = paper.NewCSV("ratio,gradient_passes,objective_passes")
	for i, q := range r.ratios {
		f.CSV.Add(q, r.gradients[i], r.objectives[i])
	}
	for _, q := range []struct {
		name   string
		passes []float64
	}{{"gradient", r.gradients}, {"objective", r.objectives}} {
		f.Plots = append(f.Plots,
			chart.Plot{ID: "f2-" + q.name, Title: "Evaluations of the " + q.name,
				Desc: "Passes over the rows against the sampling ratio", XLabel: "q", YLabel: "passes", LogX: true, LogY: true,
				Lines: []chart.Line{{Name: blsgd, X: r.ratios, Y: q.passes}}})
	}
	return f
}

// tableOf is the table that a method has its figures on: those that need a smooth loss have the Huberized one.
func tableOf(data, model, method string) string {
	if model == svm && slices.Contains([]string{outpertRSGD, outpertGD, objpert, optimum}, method) {
		model = smoothed
	}
	return data + " " + model
}

// lines are the methods of Figures 3 and 4.
func lines() []string {
	var names []string
	gradient, minimizers := Small.others(datasets[0])
	for _, v := range slices.Concat(gradient, minimizers) {
		names = append(names, v.label)
	}
	return append(slices.Clone(proposed), names...)
}

// figure34 is Figure 3 (logistic) or 4 (SVM).
func (r *results) figure34(number34 int, model string) paper.Figure {
	f := paper.Figure{File: fmt.Sprintf("figure%d", number34), Title: fmt.Sprintf("Figure %d: %s by ε", number34, model),
		Note: "means with bars of one standard deviation; δ = 1e-8; sound accounts; the paper only draws its values"}
	f.CSV = paper.NewCSV("table,method,epsilon,accuracy_mean,accuracy_sd,objective_mean,objective_sd")
	for _, axis := range []string{accuracyAxis, objectiveAxis} {
		for _, d := range datasets {
			plot := chart.Plot{ID: fmt.Sprintf("%s-%s-%d", f.File, d.name, len(f.Plots)), Title: d.name,
				Desc: "A line for each method", XLabel: "ε", YLabel: axis + " on " + d.name, LogX: true, Tight: true}
			for _, m := range lines() {
				l := paper.Line(m, r.size.Epsilon, func(e float64) (x, y float64, ok bool) {
					c := r.cell(tableOf(d.name, model, m), m, number(e))
					if c == nil || c.Score().N == 0 {
						return 0, 0, false
					}
					if axis == accuracyAxis {
						f.CSV.Add(d.name, strconv.Quote(m), e, mean(c, axis), deviation(100*c.Score().SD), c.Objective().Mean,
							deviation(c.Objective().SD))
					}
					return e, mean(c, axis), true
				})
				for _, e := range l.X {
					l.SD = append(l.SD, spread(r.cell(tableOf(d.name, model, m), m, number(e)), axis))
				}
				plot.Lines = append(plot.Lines, l)
			}
			level := mean(r.cell(tableOf(d.name, model, optimum), optimum, compare.NoNoise), axis)
			plot.Level, plot.LevelName = &level, optimum
			f.Plots = append(f.Plots, plot)
		}
	}
	return f
}
