package p0

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
)

// The experiment on Propositions 4.2 to 4.4 and Theorem 4.5: linear regression whose constants do not change with n and
// d. Half of a row's mean square is in 8 coordinates, which the true model has, the other half in the d − 8 others; so
// E‖x‖² = 1, and f(w₀) − f* is about ½. Noise is normal.
const (
	signal      = 8
	truthNorm   = 4.0
	labelNoise  = 0.25
	c3, c4      = 1.0, 0.4 // C = c₃ + c₄·ln nT
	stepsFactor = 0.01     // T = stepsFactor·n²ε²/d
	stepFactor  = 4.0      // c₅ of (2), here times 1/(σ̂√T), σ̂² = ρ²/B + C²dσ²/B²
	looks       = 50       // iterates that are looked at
)

// A Grid is the sizes of the experiment; the middle ones stay fixed while another changes.
type Grid struct {
	N       []int
	D       []int
	Epsilon []float64
	Seeds   int
}

const (
	fixedN, fixedD = 4000, 64
	fixedE         = 1.0
)

// A Cell is the runs of one n, d and ε.
type Cell struct {
	N, D, Steps     int
	Epsilon         float64
	Clip, Rate      float64
	Excess, Highest paper.Mean // E f(w_priv) − f* and max_t f(w_t) − f*, both over f(w_0) − f*
	Longest         float64    // the longest gradient of a row at any iterate
	Clipped         float64    // share of gradients that are longer than C
	Never           int        // runs in which none is
	Runs            int
}

// Bound is √d/(nε).
func (c Cell) Bound() float64 { return math.Sqrt(float64(c.D)) / (float64(c.N) * c.Epsilon) }

// cells are those of a grid: along n, then d, then ε, each once.
func (g Grid) cells() (list []Cell) {
	add := func(n, d int, e float64) {
		for _, c := range list {
			if c.N == n && c.D == d && c.Epsilon == e {
				return
			}
		}
		list = append(list,
			Cell{N: n, D: d, Epsilon: e, Steps: int(stepsFactor * float64(n*n) * e * e / float64(d)), Runs: g.Seeds})
	}
	for _, n := range g.N {
		add(n, fixedD, fixedE)
	}
	for _, d := range g.D {
		add(fixedN, d, fixedE)
	}
	for _, e := range g.Epsilon {
		add(fixedN, fixedD, e)
	}
	return list
}

// theorem runs the cell.
func (c Cell) run(ctx context.Context) (Cell, error) {
	c.Clip = c3 + c4*math.Log(float64(c.N)*float64(c.Steps))
	sigma, err := account.Calibrate(account.Best{},
		privacy.Budget{Epsilon: c.Epsilon, Delta: delta, Adjacency: privacy.AddRemove}, func(s float64) privacy.Event {
			return privacy.Repeated{Count: c.Steps,
				Of: privacy.PoissonSampled{Rate: batch / float64(c.N), Of: privacy.Gaussian{Sigma: s}}}
		})
	if err != nil {
		return c, err
	}
	hat := math.Sqrt(1./batch + c.Clip*c.Clip*float64(c.D)*sigma*sigma/(batch*batch)) // ρ = 1
	c.Rate = min(0.5, stepFactor/(hat*math.Sqrt(float64(c.Steps))))
	var runs []outcome
	for k := range c.Runs {
		r, err := c.once(ctx, sigma, fmt.Sprint("theorem ", c.N, c.D, c.Epsilon, k))
		if err != nil {
			return c, err
		}
		runs = append(runs, r)
		c.Longest, c.Clipped = max(c.Longest, r.longest), c.Clipped+r.clipped/float64(c.Runs)
		if r.longest <= c.Clip {
			c.Never++
		}
	}
	c.Excess = paper.MeanOf(runs, func(r outcome) float64 { return r.excess })
	c.Highest = paper.MeanOf(runs, func(r outcome) float64 { return r.highest })
	return c, nil
}

type outcome struct{ excess, highest, longest, clipped float64 }

// once is one run, looked at in evenly spaced iterates: their mean loss stands for that of one drawn from all.
func (c Cell) once(ctx context.Context, sigma float64, name string) (o outcome, err error) {
	src := noise.NewSeeded(seed, name, 0)
	b := paper.NewBuilder(c.D, 4, 0x1p-16)
	b.Table.Classes = 0
	x, truth := make([]float64, c.D), make([]float64, signal)
	for j := range truth {
		truth[j] = paper.Normal(src)
	}
	norm := paper.Norm(truth)
	for range c.N {
		y := labelNoise * paper.Normal(src)
		for j := range x {
			size := math.Sqrt(0.5 / signal)
			if j >= signal {
				size = math.Sqrt(0.5 / float64(c.D-signal))
			}
			x[j] = size * paper.Normal(src)
			if j < signal {
				y += x[j] * truth[j] / norm * truthNorm
			}
		}
		b.Add(nil, x, 1, false)
		last := b.Table.Blocks[len(b.Table.Blocks)-1]
		last.Y[last.N-1] = float32(y)
	}
	p, err := paper.NewProblem(b.Table, "linear", privacy.AddRemove)
	if err != nil {
		return o, err
	}
	least := paper.Loss(p.Model, minimum(p), b.Table, nil)
	gap := paper.Loss(p.Model, make([]float64, c.D), b.Table, nil) - least
	oracle, err := p.Oracle(nil, src.Uint64(), 1)
	if err != nil {
		return o, err
	}
	defer oracle.Close()
	sgd := method.SGD{Steps: c.Steps, Rate: c.Rate,
		Gradient: method.Gradient{Clip: c.Clip, Batch: batch, Sampling: method.Poisson, Noise: sigma}}
	norms, times, every := make([]float64, data.BlockRows), 0.0, max(1, c.Steps/looks)
	for step, err := range sgd.Run(ctx, oracle, method.Objective{}) {
		if err != nil {
			return o, err
		}
		if step.Status != method.Running || step.T%every != 0 {
			continue
		}
		over := 0
		loss := paper.Loss(p.Model, step.W, b.Table, func(v data.View, pass model.Pass) {
			pass.GradNorm(norms[:v.To], 2)
			for _, g := range norms[:v.To] {
				if o.longest = max(o.longest, g); g > c.Clip {
					over++
				}
			}
		})
		o.excess, o.clipped = o.excess+(loss-least)/gap, o.clipped+float64(over)/float64(c.N)
		o.highest, times = max(o.highest, (loss-least)/gap), times+1
	}
	o.excess, o.clipped = o.excess/times, o.clipped/times
	return o, nil
}

// minimum is the least squares solution, by conjugate gradients.
func minimum(p *paper.Problem) []float64 {
	var ws model.Workspace
	ones := make([]float64, data.BlockRows)
	for i := range ones {
		ones[i] = 1 / float64(p.Table.Rows())
	}
	grad := func(w []float64) []float64 {
		g := make([]float64, len(w))
		for _, b := range p.Table.Blocks {
			p.Model.Eval(w, data.View{Block: b, To: b.N}, &ws).AddGrad(g, ones[:b.N], 0)
		}
		return g
	}
	w := make([]float64, p.Model.Dim())
	start := grad(w)
	r := make([]float64, len(w))
	for j, g := range start {
		r[j] = -g
	}
	dir, square := append([]float64(nil), r...), paper.Norm(r)*paper.Norm(r)
	for k := 0; k < 2*len(w) && square > 1e-24; k++ {
		h, along := grad(dir), 0.0
		for j := range h {
			h[j] -= start[j]
			along += h[j] * dir[j]
		}
		step, next := square/along, 0.0
		for j := range w {
			w[j] += step * dir[j]
			r[j] -= step * h[j]
			next += r[j] * r[j]
		}
		for j := range dir {
			dir[j] = r[j] + next/square*dir[j]
		}
		square = next
	}
	return w
}

// slope is that of log E f − f* over log C√d/(nε), by least squares, of the cells that keep says, with its standard
// error, which follows from those of the cells' means. C is the logarithm that O hides.
func slope(cells []Cell, keep func(Cell) bool) (s, se float64) {
	var x, y, noise []float64
	mean := 0.0
	for _, c := range cells {
		if keep(c) {
			x, y = append(x, math.Log(c.Clip*c.Bound())), append(y, math.Log(c.Excess.Value))
			noise = append(noise, c.Excess.SD/c.Excess.Value/math.Sqrt(float64(c.Runs)))
			mean += Last(x)
		}
	}
	mean /= float64(len(x))
	xx, of := 0.0, 0.0
	for i := range x {
		a := x[i] - mean
		s, of, xx = s+a*y[i], of+a*a*noise[i]*noise[i], xx+a*a
	}
	return s / xx, math.Sqrt(of) / xx
}

// The lines along which one of n, d and ε changes.
var lines = []struct {
	name string
	of   func(Cell) bool
}{
	{"n", func(c Cell) bool { return c.D == fixedD && c.Epsilon == fixedE }},
	{"d", func(c Cell) bool { return c.N == fixedN && c.Epsilon == fixedE }},
	{"ε", func(c Cell) bool { return c.N == fixedN && c.D == fixedD }},
}

// exponent says how f − f* goes with the bound over some cells.
func exponent(cells []Cell, keep func(Cell) bool) string {
	s, se := slope(cells, keep)
	return fmt.Sprintf("as (C√d/(nε))^%.2f ± %.2f", s, se)
}

// exponents says it for each line.
func (r *Report) exponents() string {
	var list []string
	for _, l := range lines {
		list = append(list, "where "+l.name+" changes, "+exponent(r.Cells, l.of))
	}
	return "Exponents with standard errors: " + strings.Join(list, "; ")
}

func (r *Report) theorem() paper.Table {
	t := paper.Table{Title: "Theorem 4.5 and Propositions 4.2 to 4.4",
		Note: fmt.Sprintf("Linear regression with E‖x‖² = 1 whose constants do not change with n and d, C = %v + %v·ln nT, T = %v·n²ε²/d, η of (2) with ρ = 1 and c₅ = %v, δ = 1e-5, noise for (ε, δ); means ± standard deviations of %d runs. "+
			"f − f* over f(w₀) − f*; w_priv by the mean of %d iterates. The paper has no experiment on them, and its constants c₁ to c₅ have no values: they and the cells were chosen after pilot runs. %s. The theorem's bound is an O, which no exponent over a grid shows or refutes.", c3, c4, stepsFactor, stepFactor, r.Size.Theorem.Seeds, looks, r.exponents()),
		Head: []string{"n", "d", "ε", "T", "√d/(nε)", "f(w_priv) − f*", "÷ √d/(nε)", "max_t f(w_t) − f*", "longest gradient",
			"C", "clipped", "runs without clipping"}}
	for _, c := range r.Cells {
		t.Add(c.N, c.D, c.Epsilon, c.Steps, fmt.Sprintf("%.4g", c.Bound()),
			fmt.Sprintf("%.3g ± %.1g", c.Excess.Value, c.Excess.SD), fmt.Sprintf("%.3g", c.Excess.Value/c.Bound()),
			fmt.Sprintf("%.3g", c.Highest.Value), fmt.Sprintf("%.3g", c.Longest), fmt.Sprintf("%.3g", c.Clip),
			fmt.Sprintf("%.2g", c.Clipped), fmt.Sprintf("%d of %d", c.Never, c.Runs))
	}
	return t
}

func (r *Report) theoremFigure() paper.Figure {
	csv := paper.NewCSV("n,d,epsilon,steps,clip,rate,excess,excess_sd,highest,longest_gradient,clipped,runs_without_clipping,runs")
	for _, c := range r.Cells {
		csv.Add(c.N, c.D, c.Epsilon, c.Steps, c.Clip, c.Rate, c.Excess.Value, c.Excess.SD, c.Highest.Value, c.Longest,
			c.Clipped, c.Never, c.Runs)
	}
	excess := chart.Plot{ID: "t45", Title: "f(w_priv) − f*",
		Desc: "Excess loss by √d/(nε), a line for each of n, d and ε that changes.", XLabel: "√d/(nε)",
		YLabel: "share of f(w₀) − f*", LogX: true, LogY: true, Tight: true}
	length := chart.Plot{ID: "t43", Title: "longest gradient",
		Desc: "Longest gradient of a row by ln nT, and the clip norm.", XLabel: "ln nT", YLabel: "norm"}
	at := func(c Cell) float64 { return math.Log(float64(c.N) * float64(c.Steps)) }
	for _, l := range lines {
		excess.Lines = append(excess.Lines, paper.Line(l.name+" changes", r.Cells, func(c Cell) (float64, float64, bool) {
			return c.Bound(), c.Excess.Value, l.of(c)
		}))
		length.Lines = append(length.Lines, paper.Line(l.name+" changes", r.Cells, func(c Cell) (float64, float64, bool) {
			return at(c), c.Longest, l.of(c)
		}))
	}
	length.Lines = append(length.Lines, paper.Line("C", r.Cells, func(c Cell) (float64, float64, bool) {
		return at(c), c.Clip, lines[0].of(c)
	}))
	return paper.Figure{File: "theorem", Title: "Theorem 4.5: the rate, and clipping", Note: "Not in the paper", CSV: csv,
		Plots: []chart.Plot{excess, length}}
}
