package p4

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

//go:embed page.html
var body string

// Experiment is the reproduction.
var Experiment = paper.Experiment{
	Of: of, Contents: contents, Record: record,
	Name:  "p4",
	Short: "P4: second-order methods for smooth non-convex objectives",
	Long: `P4 is Differentially Private Optimization for Smooth Non-Convex ERM. This runs its
experiments on a synthetic table in the shape of Covertype, and with --data on real tables,
and writes the paper's tables of losses, iterations, Hessians and times, each printed cell and
each comparison with DP-TR as a claim that holds or fails on the real tables, and what sound
sensitivities and a public number of steps gain or cost, as CSV, Markdown and SVG, with one
page of HTML.

--small takes seconds: 20,000 rows, with ε·n as in the paper. --full is the paper's size:
495,141 rows, five runs of each cell, thirty where runs take milliseconds; half an hour of
processor time.`,
	Example: `  sotto paper p4
  sotto paper p4 --full --data /data --out p4-full`,
	Small: "fewer rows and runs", Full: "the size of the paper",
	Data:  "covtype-sample/covtype-sample-15000.csv.gz and ijcnn1/ijcnn1.gz",
	Page:  body,
	Seeds: "1, and the number of the run within a cell",
	Run:   paper.Sized(Small, Full, run),
}

// A Report is the outcome.
type Report struct {
	Size     Size
	Runs     []Run
	Cells    []Cell
	Gains    []Gain
	Meetings []Meeting // without real tables none
}

// A Gain compares the noise of OPT as P4 prints it with that of the sound one, at the paper's size.
type Gain struct {
	Setting          Setting
	Epsilon          float64
	Printed, Sound   Price // from w_0 = 0
	SoundFrom        Price // from a random w_0, whose loss is bounded for every table
	Gradient, Matrix float64
}

// A Price is a number of steps with its noise: σ, and the size of the noise of a gradient, and of a Hessian in the
// spectral norm, about.
type Price struct {
	Steps                   int
	Noise, Gradient, Matrix float64
}

// gains computes them. P4 takes a tenth of ρ for f(w_0), σ of (8), the classic conversion, 2√d·B_H/n for a Hessian,
// whose entries all have one variance; its T from f(w_0)+|z| is at least the one from f(w_0) that stands here.
func gains() ([]Gain, error) {
	const n, d = paperRows, float64(coverDim)
	p, err := newProblem(shaped, synthetic(1), 1)
	if err != nil {
		return nil, err
	}
	p.Public.Rows = n
	var list []Gain
	for _, s := range Settings {
		penalty, err := reg.New(s.Reg, lambda)
		if err != nil {
			return nil, err
		}
		q, obj := p.under(bounds[0], penalty.(reg.Curved)), method.Objective{Reg: penalty}
		for _, e := range epsilons {
			g := Gain{Setting: s, Epsilon: e}
			budget := privacy.Budget{Epsilon: e, Delta: delta, Adjacency: privacy.ReplaceOne}
			for _, w := range []struct {
				gap   float64
				price *Price
			}{{math.Ln2, &g.Sound}, {p.highest(p.start(0)), &g.SoundFrom}} {
				m, err := q.configured("OPT", s, w.gap).Configure(q.Public, obj,
					method.Terms{Budget: budget, Accountant: account.Best{}})
				if err != nil {
					return nil, err
				}
				sigma := method.NoiseMultiplier(m)
				*w.price = Price{method.MaxSteps(m), sigma, math.Sqrt(d) * 2 * sigma / n,
					math.Sqrt(2*d) * math.Sqrt2 / 4 * sigma / n}
			}
			whole, err := account.Calibrate(account.ZCDP{Classic: true}, budget, func(s float64) privacy.Event {
				return privacy.Gaussian{Sigma: s}
			})
			if err != nil {
				return nil, err
			}
			// ρ = 1/(2·whole²), of which 0.9 are for T gradients and T Hessians.
			sigma := whole * math.Sqrt(2*float64(g.Sound.Steps)/0.9)
			g.Printed = Price{g.Sound.Steps, sigma, math.Sqrt(d) * 2 * sigma / n,
				2 * math.Sqrt(d) * 2 * math.Sqrt(d) / 4 * sigma / n}
			g.Gradient, g.Matrix = g.Printed.Gradient/g.Sound.Gradient, g.Printed.Matrix/g.Sound.Matrix
			list = append(list, g)
		}
	}
	return list, nil
}

// run runs the experiment, one run after the other, so that times can be compared. Without a folder of datasets it
// leaves the real tables out.
func run(ctx context.Context, l *paper.Lab, size Size) (*paper.Results, error) {
	tables, err := problems(ctx, size, l.Data)
	if err != nil {
		return nil, err
	}
	r, one := &Report{Size: size}, *l
	one.Jobs = 1
	if r.Runs, err = paper.Each(ctx, &one, jobs(size, tables), func(ctx context.Context, j job) (Run, error) {
		return j.run(ctx)
	}); err != nil {
		return nil, err
	}
	r.Cells = cellsOf(r.Runs)
	if r.Gains, err = gains(); err != nil {
		return nil, err
	}
	if r.Meetings, err = meetings(ctx, l, tables); err != nil {
		return nil, err
	}
	shown := append(r.tables(), r.ending(), r.gained())
	if len(r.Meetings) > 0 {
		shown = append(shown, r.met())
	}
	found := &paper.Results{R: r, Tables: shown, Claims: claims(size, r.Cells)}
	found.Data = []paper.File{{Name: "runs.csv", Text: runsCSV(r.Runs)}, {Name: "cells.csv", Text: cellsCSV(r.Cells)}}
	for i, s := range size.Settings {
		found.Figures = append(found.Figures,
			paper.Figure{File: fmt.Sprintf("figure%d", i+1), Title: shaped + ", " + s.String(),
				Note: fmt.Sprintf("means of %d runs with bars of one standard deviation; n = %d", size.Runs, size.Rows) + "; " +
					bounds[0], Plots: r.plots(i, s)})
	}
	return found, nil
}

func (s Setting) String() string {
	return fmt.Sprintf("%s: (ε_g, ε_H) = (%.3f, %.3f), regularizer %s", s.Name, s.Gradient, s.Curvature, s.Reg)
}

// plots are steps, Hessians, time and loss against ε, of four methods.
func (r *Report) plots(number int, s Setting) []chart.Plot {
	var plots []chart.Plot
	for k, q := range []struct {
		title, y string
		value    func(Cell) paper.Mean
		log      bool
	}{
		{"Iterations", "steps", func(c Cell) paper.Mean { return c.Steps }, true},
		{"Hessians", "Hessians", func(c Cell) paper.Mean {
			return paper.Mean{Value: math.Max(0.1, c.Hessians.Value), SD: c.Hessians.SD}
		}, true},
		{"Time", "seconds", func(c Cell) paper.Mean { return c.Seconds }, true},
		{"Final loss", "F", func(c Cell) paper.Mean { return c.Loss }, false},
	} {
		p := chart.Plot{ID: fmt.Sprintf("f%d%c", number+1, 'a'+k), Title: q.title,
			Desc: q.title + " against the budget, a line for each method", XLabel: "ε", YLabel: q.y, LogY: q.log, Tight: !q.log}
		for _, m := range []string{"TR", "OPT", "OPT-LS", "2OPT-LS"} {
			of := func(value func(paper.Mean) float64) chart.Line {
				return paper.Line(m, r.Cells, func(c Cell) (float64, float64, bool) {
					return c.Epsilon, value(q.value(c)), c.Table == shaped && c.Bound == bounds[0] && c.Setting == s && c.Method == m
				})
			}
			l := of(func(v paper.Mean) float64 { return v.Value })
			l.SD = of(func(v paper.Mean) float64 { return v.SD }).Y
			p.Lines = append(p.Lines, l)
		}
		plots = append(plots, p)
	}
	return plots
}

// A printed cell is one of the paper's tables: the mean loss, and the seconds.
type printed struct{ loss, seconds float64 }

// cross is the × that the paper prints for seconds where not all runs ended.
const cross = -1

// paperCells are the cells of the paper's tables that the text of the paper holds, by table and setting, then by method
// and ε. Of the other cells, the text has lost the numbers.
var paperCells = map[string]map[string][3]printed{
	"covtype-sample loose": {
		"OPT-B": {{0.712, 3.1}, {0.712, 3.2}, {0.712, 2.9}}, "OPT-LS": {{0.577, cross}, {0.687, 0.4}, {0.699, 0.4}},
		"2OPT": {{0.626, cross}, {0.712, 0.6}, {0.712, 0.6}}, "2OPT-B": {{0.712, 1.4}, {0.712, 1.4}, {0.712, 2.0}},
		"2OPT-LS": {{0.699, 0.5}, {0.699, 0.5}, {0.699, 0.5}},
	},
	"covtype-sample loose, ℓ2": {
		"2OPT": {{0.539, 0.3}, {0.539, 0.3}, {0.539, 0.4}}, "2OPT-B": {{0.539, 1.0}, {0.539, 1.0}, {0.539, 1.0}},
		"2OPT-LS": {{0.539, 0.4}, {0.539, 0.3}, {0.539, 0.4}},
	},
	"covtype-sample tight, ℓ2": {
		"2OPT-B": {{0.454, 2.0}, {0.454, 2.0}, {0.454, 1.8}}, "2OPT-LS": {{0.441, cross}, {0.447, 0.6}, {0.447, 0.7}},
	},
	"ijcnn1 loose, ℓ2": {
		"OPT-B": {{math.NaN(), 8.6}, {0.501, 11.0}, {0.501, 9.0}}, "OPT-LS": {{0.607, cross}, {0.473, cross}, {0.454, cross}},
		"2OPT-B": {{0.501, 1.0}, {0.501, 1.4}, {0.501, 1.1}}, "2OPT-LS": {{1.002, cross}, {0.501, 0}, {0.501, 0}},
	},
	"ijcnn1 tight, ℓ2": {
		"2OPT-B": {{0.502, 1.5}, {0.502, 1.3}, {0.502, 1.6}}, "2OPT-LS": {{3.504, cross}, {0.798, cross}, {0.459, 0.4}},
	},
}

// printed is the paper's table of the cell; nil where its text holds none, and with another M than the paper's.
func (c Cell) printed() map[string][3]printed {
	if c.Bound != bounds[0] {
		return nil
	}
	return paperCells[c.Of+" "+c.Setting.Name]
}

// compared is the table of comparisons with DP-TR, the synthetic table and Sotto's M included.
func (r *Report) compared() paper.Table {
	t := paper.Table{ID: "compared",
		Title: "Beside DP-TR, over the cells of a table",
		Note: "Cells are settings × ε; both: all runs of both end; what follows counts of these cells those in which the method has less. The paper's tolerances are √(M·ε_g) with M = 1; Sotto's methods take the M of the loss, about 0.1, " +
			"which makes the region of DP-TR about three times and steps along negative curvature about ten times as long.",
		Head: []string{"table", "n", "M", "method", "cells", "both", "only it ends", "only DP-TR", "steps", "time", "loss"}}
	for i, c := range r.Cells {
		if c.Of != c.Table || i > 0 && c.Table == r.Cells[i-1].Table && c.Bound == r.Cells[i-1].Bound {
			continue
		}
		for _, m := range []string{"OPT-LS", "2OPT-LS"} {
			v := found(r.Cells).beside(m, "TR", c.Bound, []string{c.Table}, every)
			t.Add(c.Table, c.Rows, c.Bound, m, v.cells, v.both, v.alone, v.behind, v.steps, v.time, v.loss)
		}
	}
	return t
}

// tables are those of the paper: a row for each method and budget.
func (r *Report) tables() (list []paper.Table) {
	list = append(list, r.compared())
	for i, c := range r.Cells {
		if i == 0 || c.Table != r.Cells[i-1].Table || c.Bound != r.Cells[i-1].Bound || c.Setting != r.Cells[i-1].Setting {
			list = append(list,
				paper.Table{Title: fmt.Sprintf("%s, n = %d, %s, %s", c.Table, c.Rows, c.Bound, c.Setting),
					Note: "Means ± standard deviations.",
					Head: []string{"method", "ε", "steps", "Hessians", "seconds", "converged", "loss"}})
			if c.printed() != nil {
				t := &list[len(list)-1]
				t.Head = append(slices.Insert(t.Head, 5, "seconds, paper"), "the paper", "÷")
				if c.Of != c.Table { // the record counts what the paper prints once
					t.Head[5], t.Head[len(t.Head)-2] = "the paper's seconds", "the paper's loss"
				}
			}
		}
		row := []any{c.Method, c.Epsilon, fmt.Sprintf("%.1f", c.Steps.Value), fmt.Sprintf("%.1f", c.Hessians.Value),
			fmt.Sprintf("%.2f ± %.2f", c.Seconds.Value, c.Seconds.SD),
			fmt.Sprintf("%d of %d", c.Converged, c.Runs), fmt.Sprintf("%.3f ± %.3f", c.Loss.Value, c.Loss.SD)}
		if cells := c.printed(); cells != nil {
			loss, ratio, seconds := "", "", ""
			if p, ok := cells[c.Method]; ok {
				p := p[slices.Index(epsilons, c.Epsilon)]
				if p.loss > 0 { // not NaN
					loss, ratio = fmt.Sprintf("%.3f", p.loss), fmt.Sprintf("%.2f", c.Loss.Value/p.loss)
				}
				if seconds = fmt.Sprintf("%.1f", p.seconds); p.seconds == cross {
					seconds = "×"
				}
			}
			row = append(slices.Insert(row, 5, any(seconds)), loss, ratio)
		}
		list[len(list)-1].Add(row...)
	}
	return list
}

// bands are ranges of the length of a gradient's noise in ε_g, by their ends.
var bands = []float64{0.5, 1, 1.3, 1.8, math.Inf(1)}

// ending is the table of how many runs end by the noise of their gradients.
func (r *Report) ending() paper.Table {
	methods := []string{"TR", "OPT", "OPT-LS", "2OPT", "2OPT-LS"} // those with batches have another noise
	t := paper.Table{ID: "ending",
		Title: "When runs end",
		Note: fmt.Sprintf("Runs that end (others are broken off %s), on the tables, with M = 1, by about how long the noise of a gradient is: √d·2σ/n. A run ends where gradient and noise together are shorter than ε_g. "+
			"The paper marks cells with × of which a run does not end.", r.Size.BreaksOff()),
		Head: append([]string{"noise, in ε_g"}, methods...)}
	for k, to := range bands {
		from, name := 0.0, fmt.Sprintf("up to %v", to)
		if k > 0 {
			from, name = bands[k-1], fmt.Sprintf("%v to %v", bands[k-1], to)
		}
		if math.IsInf(to, 1) {
			name = fmt.Sprintf("above %v", from)
		}
		row := []any{name}
		for _, m := range methods {
			ended, all := 0, 0
			for _, v := range r.Runs {
				if v.Of == v.Table && v.Bound == bounds[0] && v.Method == m && v.NoiseRatio > from && v.NoiseRatio <= to {
					if all++; v.Status == method.Converged {
						ended++
					}
				}
			}
			row = append(row, fmt.Sprintf("%d of %d", ended, all))
		}
		t.Add(row...)
	}
	return t
}

// gained is the table of gains.
func (r *Report) gained() paper.Table {
	t := paper.Table{ID: "gains", Seeds: paper.NoSeed,
		Title: "What sound sensitivities and a public number of steps gain or cost",
		Note: "OPT at 495,141×54. Printed: T from f(w₀) = ln 2 (P4 adds |z| to it, which is not private), a tenth of ρ for it, T gradients and T Hessians charged, " +
			"the classic conversion, Hessians with the Frobenius bound 2√d·B_H/n and one variance everywhere. Sound: the same T from the public ln 2, which costs nothing, " +
			"the exact conversion, Hessians charged as the analysis needs them, √2·B_H/n and half the variance beside the diagonal. ÷ is the factor by which the noise falls: " +
			"of a gradient in norm, of a Hessian in spectral norm. From a random start F(w₀) ≤ ln(1+e^‖w₀‖) for every table, which costs steps. So the runs above pay for a better bound.",
		Head: []string{"setting", "ε", "T", "σ printed", "σ sound", "gradient", "Hessian", "T from a random start", "σ"}}
	for _, g := range r.Gains {
		t.Add(g.Setting.Name, g.Epsilon, g.Sound.Steps, g.Printed.Noise, g.Sound.Noise, fmt.Sprintf("÷ %.2f", g.Gradient),
			fmt.Sprintf("÷ %.1f", g.Matrix), g.SoundFrom.Steps, g.SoundFrom.Noise)
	}
	return t
}
