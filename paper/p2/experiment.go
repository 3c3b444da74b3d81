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
	asPublished, own            = "as published", " (Sotto's defaults)"
	auto                        = "Sotto's auto" // no method of P2: what Sotto does where no method is chosen
	logistic, svm, smoothed     = "logistic", "svm", "huber-svm"
	accuracyAxis, objectiveAxis = "accuracy, %", "objective"
)

// proposed are P2's own methods.
var proposed = []string{blsgd, blsgdAC, blgd}

// published are P2's hyperparameters (§5.4) of DP-BLSGD. The noise is what the whole budget allows for 100 iterations
// under Sotto's account; perStep has P2's own.
func published(batch string) []string {
	return []string{"batch", batch, "clip", "3", "fall", "1", "armijo", "0.5", "shrink", "0.8", "tries",
		strconv.Itoa(tries), "search", "1", "growth", "adaptive", "noisy_norm", "true"}
}

// perStep is fields with the noise of P2's budget for an iteration, ε/100, until all of ε is spent or after the steps
// of the size; for a smaller q after as many times more as an iteration costs less, (0.1/q)².
func (s Size) perStep(d dataset, fields []string, epsilon float64) []string {
	steps := s.Steps
	if size := batchOf(fields); size > 0 {
		ratio := max(1, int(math.Round(rate*s.share()*float64(d.rows)/float64(size))))
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

// asWritten is fields with the Armijo test of P2's Algorithm 1, which compares the decrease of a sum of losses with the
// square of a mean gradient (S-2f): its α is α/|B| in the method's test, which compares means. P2 does not print η₀;
// this is the one of startRates with which its test does best.
func asWritten(d dataset, share float64, fields []string) []string {
	size := cmp.Or(batchOf(fields), int(share*float64(d.rows)))
	alpha, err := strconv.ParseFloat(fields[slices.Index(fields, "armijo")+1], 64)
	if err != nil {
		panic("p2: fields without α")
	}
	return with(fields, "armijo", number(alpha/float64(size)), "rate", startRates[0])
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
		return asPublished
	}
	return p.field + " " + value
}

// swapped follows the label of a method of P2 under replace-one.
const swapped = ", replace-one"

// repaired follows the label of a variant with Sotto's Armijo test, which compares means, instead of P2's.
const repaired = ", mean test"

// startRates are values of η₀; the last is Sotto's default, 80/R², on Adult.
var startRates = []string{"0.3", "1", "5.33"}

// startLabel is the label of a variant with another η₀ than the first.
func startLabel(label, rate string) string {
	if rate == startRates[0] {
		return label
	}
	return label + ", η₀ = " + rate
}

// hyper are the variants of Figure 1 at an ε, all or those of how budgets and thresholds adapt.
func (s Size) hyper(d dataset, epsilon float64, all bool) (list []variant) {
	share, seen := s.share(), map[string]bool{}
	for _, p := range s.panels() {
		for _, v := range p.values {
			if !all && v != p.usual && p.field != "growth" && p.field != "decay" {
				continue
			}
			fields := with(published(s.batch(d, rate)), p.field, v)
			if p.field == "batch" && !all {
				fields = published(s.batch(d, rate)) // the values are sizes on the first dataset
			}
			add := func(label string, fields []string) {
				if !seen[label] {
					list, seen[label] = append(list, variant{label, "blsgd", s.perStep(d, fields, epsilon)}), true
				}
			}
			written := asWritten(d, share, fields)
			add(p.label(v), written)
			add(p.label(v)+repaired, fields)
			for _, r := range startRates[1:] {
				if all && p.field == "armijo" {
					add(startLabel(p.label(v), r), with(written, "rate", r))
				}
			}
		}
	}
	return list
}

// debiased has Sotto's Armijo test without the noise's share of ‖p‖².
func (s Size) debiased(d dataset, epsilon float64) variant {
	return variant{"debiased", "blsgd",
		s.perStep(d, with(published(s.batch(d, rate)), "noisy_norm", "false"), epsilon)}
}

// methods are those of Figures 3 and 4 for a dataset, as published or with Sotto's defaults: those of add-or-remove,
// and those that have a theorem under replace-one. P2 prints q, C_grad and C_obj for all, and leaves the rest of the
// baselines to their papers (algorithms.md §3.3, §3.4, §3.6); DP-SGD's step size is the one it prints for networks.
// What has no source is Sotto's default, and a method of which that is all has one line.
func (s Size) methods(d dataset, fromPaper bool) (gradient, minimizers []variant) {
	batch := s.batch(d, rate)
	if fromPaper {
		base := published(batch)
		for _, v := range []variant{{blsgd, "blsgd", base}, {blsgdAC, "blsgd", with(base, "decay", "0.05")},
			{blgd, "blsgd", with(base, "batch", "0")}} {
			gradient = append(gradient, variant{v.label, v.name, asWritten(d, s.share(), v.fields)},
				variant{v.label + repaired, v.name, v.fields})
		}
		return append(gradient, []variant{
				{agd, "agd",
					[]string{"splits", "60", "tries", "20", "rate", "2", "clip", "3", "fall", "1", "choice", "2", "growth", "0.1"}},
				{sgd, "sgd", []string{"batch", batch, "clip", "3", "rate", "0.2"}},
				{privgene, "privgene", []string{"move", "0.5", "decay", "0.95", "clip", "1"}},
				{majority, "majority", nil},
			}...), []variant{{outpertRSGD, "outpert-sgd", []string{"average", "true"}},
				{outpertGD, "outpert", []string{"steps", "50"}}, {objpert, "amp", nil}}
	}
	return []variant{
		{blsgd + own, "blsgd", []string{"batch", batch, "growth", "adaptive"}},
		{blsgdAC + own, "blsgd", []string{"batch", batch, "growth", "adaptive", "decay", "0.05"}},
		{blgd + own, "blsgd", []string{"growth", "adaptive"}},
		{agd + own, "agd", nil},
		{sgd + own, "sgd", []string{"batch", batch}},
		{privgene + own, "privgene", nil},
		{auto, "auto", nil},
	}, []variant{{outpertRSGD + own, "outpert-sgd", nil}, {outpertGD + own, "outpert", nil}}
}

// replaced are P2's methods under replace-one, where OutPert-RSGD has its theorem.
func (s Size) replaced(d dataset) (list []variant) {
	base := published(s.batch(d, rate))
	for _, v := range []variant{{blsgd, "blsgd", base}, {blsgdAC, "blsgd", with(base, "decay", "0.05")},
		{blgd, "blsgd", with(base, "batch", "0")}} {
		list = append(list, variant{v.label + swapped, v.name, asWritten(d, s.share(), v.fields)})
	}
	return list
}

// results are all figures of the experiment.
type results struct {
	size Size
	// by table, method and ε
	cells map[[3]string]*compare.Cell
	// Figure 2: passes over the rows, by sampling ratio
	ratios                []float64
	gradients, objectives []float64
	noises                []Noise
	networks              *networks // nil: not run
	// of one training with P2's budget for an iteration, by dataset, variant and ε
	counts map[[3]string]*access
}

// cell is the result of a method; nil if it was not run.
func (r *results) cell(table, method, epsilon string) *compare.Cell {
	return r.cells[[3]string{table, method, epsilon}]
}

// parts are all comparisons.
func (x *experiment) parts() []*part {
	s := x.size
	var all []*part
	add := func(q part) { all = append(all, &q) }
	for i, d := range datasets[:s.Tables] {
		ours := i < 2
		for _, e := range s.Hyper {
			if !ours {
				continue
			}
			q := part{name: "hyperparameters-" + d.name + "-" + number(e), tables: []job.TableSpec{x.table(d, logistic)},
				variants: s.hyper(d, e, i == 0), epsilon: words([]float64{e}), seeds: s.Seeds, last: true, figure1: d.name}
			add(q)
			q.name, q.variants = "debiased-"+d.name+"-"+number(e), []variant{s.debiased(d, e)}
			add(q)
		}
		rough := []job.TableSpec{x.table(d, logistic), x.table(d, svm)}
		smooth := []job.TableSpec{x.table(d, logistic), x.table(d, smoothed)}
		for _, published := range []bool{true, false} {
			name, seeds := d.name+"-defaults", s.Beside
			if published {
				name = d.name + "-published"
				if ours {
					seeds = s.Seeds
				}
			}
			gradient, minimizers := s.methods(d, published)
			add(part{name: name, tables: rough, variants: gradient, epsilon: words(s.Epsilon), seeds: seeds, last: published})
			add(part{name: name + "-replace-one", adjacency: privacy.ReplaceOne, tables: smooth, variants: minimizers,
				epsilon: words(s.Epsilon), seeds: seeds})
			if published && ours {
				add(part{name: d.name + "-proposed-replace-one", adjacency: privacy.ReplaceOne, tables: smooth,
					variants: s.replaced(d), epsilon: words(s.Epsilon), seeds: seeds, last: true})
			}
		}
		add(part{name: d.name + "-without-noise", tables: smooth, variants: []variant{{optimum, "optimum", nil}},
			epsilon: []string{compare.NoNoise}, seeds: s.Beside})
	}
	return all
}

// experiments runs everything.
func (x *experiment) experiments(ctx context.Context) (*results, error) {
	s := x.size
	all := x.parts()
	for _, q := range all {
		var err error
		if q.plan, err = x.plan(*q); err != nil {
			return nil, err
		}
		x.all += q.plan.Runs
	}
	x.all += len(s.noises()) + s.Neural.trainings()
	r := &results{size: s, cells: map[[3]string]*compare.Cell{}}
	for _, q := range all {
		if err := x.run(ctx, q.name, q.plan); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name, err)
		}
		for _, c := range q.plan.Cells {
			table := c.Table
			if q.figure1 != "" {
				table = "figure 1 " + q.figure1
			}
			r.cells[[3]string{table, c.Method, c.Epsilon}] = c
		}
	}
	var err error
	if r.noises, err = x.noises(ctx); err != nil {
		return nil, fmt.Errorf("noise of the search: %w", err)
	}
	if len(s.Neural.Networks) > 0 {
		if r.networks, err = x.neural(ctx, s.Neural); err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
	}
	return r, x.evaluations(ctx, r)
}

// evaluations is what one training asks with P2's budget for an iteration: at ε = 0.4 for each sampling ratio (Figure
// 2), and at the ε of Figure 1 how many searches fail and how often budgets grow.
func (x *experiment) evaluations(ctx context.Context, r *results) error {
	r.ratios = []float64{0.02, 0.05, rate, 0.3, 1}
	r.counts = map[[3]string]*access{}
	one := *x
	one.size.Folds, one.size.Split = 0, 0.9
	for i, d := range datasets[:2] {
		at := map[float64][]variant{}
		for _, e := range x.size.Hyper {
			at[e] = append(one.size.hyper(d, e, false), one.size.debiased(d, e))
		}
		for _, q := range r.ratios {
			if batch := one.size.batch(d, q); i == 0 {
				if q == 1 {
					batch = "0"
				}
				at[evaluated] = append(at[evaluated], variant{number(q), "blsgd",
					one.size.perStep(d, asWritten(d, one.size.share(), published(batch)), evaluated)})
			}
		}
		for e, variants := range at {
			p, err := one.plan(part{tables: []job.TableSpec{x.table(d, logistic)}, variants: variants,
				epsilon: words([]float64{e}), seeds: 1, last: true})
			if err != nil {
				return err
			}
			if err := p.Prepare(x.Jobs); err != nil {
				return err
			}
			var mu sync.Mutex
			p.Watch = func(c *compare.Cell, _ compare.Result) oracle.Journal {
				mu.Lock()
				defer mu.Unlock()
				a := &access{tries: tries}
				r.counts[[3]string{d.name, c.Method, c.Epsilon}] = a
				return a
			}
			if err := p.Train(ctx, x.Jobs, func(*compare.Cell, compare.Result) error { return nil }); err != nil {
				return err
			}
		}
	}
	for _, q := range r.ratios {
		a := r.counts[[3]string{datasets[0].name, number(q), number(evaluated)}]
		r.gradients, r.objectives = append(r.gradients, a.gradients), append(r.objectives, a.objectives)
	}
	return nil
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
	return meanError(list)
}

// meanError is a mean with its standard error; NaN of none, and the error of one.
func meanError(list []float64) (value, se float64) {
	m, n := paper.MeanOf(list, func(x float64) float64 { return x }), float64(len(list))
	switch len(list) {
	case 0:
		return math.NaN(), math.NaN()
	case 1:
		return m.Value, math.NaN()
	}
	return m.Value, m.SD / math.Sqrt(n)
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

// ownAxis is the label of an axis that no other panel shares.
func ownAxis(field string, epsilon float64) string {
	return fmt.Sprintf("%s (%s, ε = %g)", accuracyAxis, field, epsilon)
}

// figure1 is the impact of hyperparameters. Each panel has a range of its own, since it shows differences of half a
// point.
func (r *results) figure1() paper.Figure {
	f := paper.Figure{File: "figure1", Title: "Figure 1: hyperparameters",
		Note: fmt.Sprintf("accuracy of DP-BLSGD on Adult, logistic, ε/100 for each iteration, until ε is spent or after %d iterations, for q below 0.1 (0.1/q)² times as many; a line for P2's Armijo test with η₀ = %s and one for Sotto's, which compares means; means of %d seeds with bars of one standard deviation; each panel has its own range. The Gaussian search, with the noise of Algorithm 1, does not cost what Theorem 3 says (S-2d): its panel is a run without a guarantee, and Sotto has no such search", r.size.Steps, startRates[0], r.size.Seeds)}
	f.CSV = paper.NewCSV("parameter,value,test,initial_rate,epsilon,seeds,accuracy_mean,accuracy_sd,objective_mean,steps_mean")
	add := func(field, value, test, rate, label string, e float64) compare.Figure {
		c := r.cell("figure 1 a9a", label, number(e))
		score := percent(c)
		steps := paper.MeanOf(c.Results, func(t compare.Result) float64 { return float64(t.Steps) })
		f.CSV.Add(field, value, test, rate, e, score.N, score.Mean, deviation(score.SD), mean(c, objectiveAxis), steps.Value)
		return score
	}
	for _, e := range r.size.Hyper {
		for i, p := range r.size.panels() {
			plot := chart.Plot{ID: fmt.Sprintf("f1-%d-%v", i, e), Title: fmt.Sprintf("%s, ε = %g", p.name, e),
				Desc: "Accuracy against the hyperparameter", XLabel: p.field, YLabel: ownAxis(p.field, e), Tight: true}
			if p.field == "growth" {
				plot.XLabel, plot.Categories = "ε of an iteration grows", p.values
			}
			written, means := chart.Line{Name: "P2's test"}, chart.Line{Name: "mean test"}
			for k, v := range p.values {
				at, err := strconv.ParseFloat(v, 64)
				if err != nil {
					at = float64(k)
				}
				for _, rate := range startRates {
					if p.field == "armijo" || rate == startRates[0] {
						score := add(p.field, v, "as written", rate, startLabel(p.label(v), rate), e)
						if rate == startRates[0] {
							written.X, written.Y, written.SD = append(written.X, at), append(written.Y, score.Mean),
								append(written.SD, score.SD)
						}
					}
				}
				score := add(p.field, v, "means", "80/R²", p.label(v)+repaired, e)
				means.X, means.Y, means.SD = append(means.X, at), append(means.Y, score.Mean), append(means.SD, score.SD)
			}
			plot.Lines = []chart.Line{written, means}
			f.Plots = append(f.Plots, plot)
		}
		plot := chart.Plot{ID: fmt.Sprintf("f1-noise-%v", e), Title: fmt.Sprintf("noise of the search, ε = %g", e),
			Desc: "Accuracy with Laplace and with Gaussian noise", XLabel: "noise", YLabel: ownAxis("noise", e), Tight: true,
			Categories: []string{"Laplace", "Gaussian: unsound"}}
		l := chart.Line{Name: "P2's test", X: []float64{0, 1}}
		for k, name := range []string{"laplace", "gaussian"} {
			m := r.byNoise(e, k == 1)
			l.Y, l.SD = append(l.Y, m.Value), append(l.SD, m.SD)
			f.CSV.Add("noise", name, "as written", startRates[0], e, r.size.Seeds, m.Value, deviation(m.SD), "", "")
		}
		plot.Lines = []chart.Line{l}
		f.Plots = append(f.Plots, plot)
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

// tableOf is the table that a method has its figures on: those that need a smooth loss, and those that are compared
// with them under replace-one, have the Huberized one.
func tableOf(data, model, method string) string {
	if model == svm && (strings.HasSuffix(method, swapped) ||
		slices.Contains([]string{outpertRSGD, outpertGD, objpert, optimum}, strings.TrimSuffix(method, own))) {
		model = smoothed
	}
	return data + " " + model
}

// lines are the methods of Figures 3 and 4, as published and with Sotto's defaults.
func lines(fromPaper bool) []string {
	var names []string
	gradient, minimizers := Small.methods(datasets[0], fromPaper)
	for _, v := range slices.Concat(gradient, minimizers) {
		names = append(names, v.label)
	}
	return names
}

// figure34 is Figure 3 (logistic) or 4 (SVM).
func (r *results) figure34(number34 int, model string) paper.Figure {
	f := paper.Figure{File: fmt.Sprintf("figure%d", number34), Title: fmt.Sprintf("Figure %d: %s by ε", number34, model),
		Note: "means with bars of one standard deviation; δ = 1e-8; sound accounts; the paper only draws its values"}
	f.CSV = paper.NewCSV("table,method,epsilon,accuracy_mean,accuracy_sd,objective_mean,objective_sd")
	for _, axis := range []string{accuracyAxis, objectiveAxis} {
		for _, d := range datasets[:r.size.Tables] {
			for _, fromPaper := range []bool{true, false} {
				title := d.name + ", " + asPublished
				if !fromPaper {
					title = d.name + own
				}
				plot := chart.Plot{ID: fmt.Sprintf("%s-%s-%d", f.File, d.name, len(f.Plots)), Title: title,
					Desc: "A line for each method", XLabel: "ε", YLabel: axis + " on " + d.name, LogX: true, Tight: true}
				for _, m := range lines(fromPaper) {
					l := paper.Line(strings.TrimSuffix(m, own), r.size.Epsilon, func(e float64) (x, y float64, ok bool) {
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
	}
	return f
}
