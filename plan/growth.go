package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A Growth shows ε as one number of the plan varies while the others stay fixed.
type Growth struct {
	Steps []Point `json:"steps"`
	Noise []Point `json:"noise_multiplier"` // a multiple of the plan's noise where each step has its own
	Delta []Point `json:"delta"`
}

// A Point is ε at one value of a number.
type Point struct {
	At      float64  `json:"at"`
	Epsilon *float64 `json:"epsilon"` // null: the accountant proves no finite ε
	// of owners who add up masked sums: against all other owners, if it is proven
	Alone *float64 `json:"epsilon_alone,omitempty"`
}

// point is ε of an event at that δ, and of owners who add up masked sums both ε.
func (p *Plan) point(at float64, e privacy.Event, delta float64) Point {
	q := Point{At: at, Epsilon: finite(p.epsilonAt(e, delta))}
	if p.Sum != nil {
		q.Alone = finite(account.Alone(e, p.accountant, p.Adjacency, delta))
	}
	return q
}

// Points of the tables and of the chart: factors of the plan's steps and noise, and values of δ
// beside the plan's own. The chart has enough points for smooth curves; its axes of noise and δ are
// logarithmic.
var (
	tableFactors = []float64{0.125, 0.25, 0.5, 1, 2, 4, 8}
	tableDeltas  = decades(-10, -4, 1)
	chartSteps   = factors(64, func(i int) float64 { return float64(i+1) / 16 })
	chartNoise   = factors(41, func(i int) float64 { return math.Exp2(float64(i-16) / 8) })
	chartDeltas  = decades(-12, -2, 4)
)

func factors(n int, at func(int) float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = at(i)
	}
	return all
}

// decades is the powers of ten from 10^from to 10^to, each decade in that many steps.
func decades(from, to, each int) []float64 {
	var all []float64
	for i := from * each; i <= to*each; i++ {
		all = append(all, math.Pow(10, float64(i)/float64(each)))
	}
	return all
}

// Grow fills the tables of ε against steps, noise and δ.
func (p *Plan) Grow() { p.Growth = p.grow(tableFactors, tableFactors, tableDeltas) }

func (p *Plan) grow(steps, noises, deltas []float64) *Growth {
	var g Growth
	for _, f := range steps {
		if e, ok := withSteps(p.event, f); ok {
			at := math.Max(1, math.Round(float64(p.Steps)*f))
			if !slices.ContainsFunc(g.Steps, func(q Point) bool { return q.At == at }) {
				g.Steps = append(g.Steps, p.point(at, e, p.Delta))
			}
		}
	}
	noise, _ := p.Noise()
	for _, f := range noises {
		if e, ok := privacy.WithNoise(p.event, f); ok {
			g.Noise = append(g.Noise, p.point(noise*f, e, p.Delta))
		}
	}
	if p.Delta > 0 {
		deltas = slices.Compact(slices.Sorted(slices.Values(append([]float64{p.Delta}, deltas...))))
		deltas = slices.DeleteFunc(deltas, func(d float64) bool { return d != p.Delta && math.Abs(d/p.Delta-1) < 1e-9 })
	}
	for _, d := range deltas {
		g.Delta = append(g.Delta, p.point(d, p.event, d))
	}
	return &g
}

// Noise is the plan's noise on the axis of tables and charts, and what the axis shows: multiples of
// it where each step has its own.
func (p *Plan) Noise() (at float64, axis string) {
	if p.NoiseMultiplier > 0 {
		return p.NoiseMultiplier, "noise multiplier"
	}
	return 1, "times its noise"
}

// Chart draws ε against steps, noise and δ, as SVG.
func (p *Plan) Chart() string {
	g := p.grow(chartSteps, chartNoise, chartDeltas)
	var plots []chart.Plot
	add := func(id, title, label string, here float64, logX bool, points []Point) {
		if len(points) < 2 {
			return
		}
		curve := func(name string, of func(Point) *float64) chart.Line {
			line := chart.Line{Name: name}
			for _, q := range points {
				y := math.NaN()
				if e := of(q); e != nil && *e <= 6*p.Epsilon { // larger values would flatten the rest
					y = *e
				}
				line.X, line.Y = append(line.X, q.At), append(line.Y, y)
			}
			return line
		}
		lines := []chart.Line{curve("accountant "+p.Accountant, func(q Point) *float64 { return q.Epsilon })}
		desc := fmt.Sprintf("%s; ε of the plan is %s.", title, chart.AtMost(p.Epsilon, 6))
		if p.Sum != nil {
			lines[0].Name = "against " + text.Against(p.Sum.Colluders)
			lines = append(lines, curve("against all other owners", func(q Point) *float64 { return q.Alone }))
			desc = fmt.Sprintf("%s; of the plan %s against %s, while masks hold, and %s against %s.", title, proven(&p.Epsilon),
				text.Against(p.Sum.Colluders), proven(p.Sum.Alone), text.AgainstAll)
		}
		plot := chart.Plot{ID: id, Title: title, XLabel: label, YLabel: "ε", LogX: logX, Lines: lines, Desc: desc}
		plot.Mark, plot.MarkName = &[2]float64{here, p.Epsilon}, "this plan: ε = "+chart.AtMost(p.Epsilon, 4)
		if p.Budget != nil {
			plot.Level, plot.LevelName = p.Budget, "budget: ε = "+chart.Full(*p.Budget)
		}
		plots = append(plots, plot)
	}
	noise, axis := p.Noise()
	own := "its own noise in each"
	if p.NoiseMultiplier > 0 {
		own = fmt.Sprintf("noise multiplier %.6g", p.NoiseMultiplier)
	}
	steps, delta := chart.Integer(p.Steps), chart.Full(p.Delta)
	add("steps", fmt.Sprintf("ε against steps, %s, δ = %s", own, delta), "steps", float64(p.Steps), false, g.Steps)
	add("noise", fmt.Sprintf("ε against noise, %s steps, δ = %s", steps, delta), axis+" (logarithmic)", noise, true,
		g.Noise)
	add("delta", fmt.Sprintf("ε against δ, %s steps, %s", steps, own), "δ (logarithmic)", p.Delta, true, g.Delta)
	releases := []rune(Describe(p.event))
	if len(releases) > 60 { // one line of the figure
		releases = append(releases[:59], '…')
	}
	return chart.Figure(fmt.Sprintf("What a plan costs under %v", p.Adjacency), string(releases), plots...)
}
