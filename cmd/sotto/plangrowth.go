package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/privacy"
)

// A growth is ε against one number of the plan at a time, the others as they are.
type growth struct {
	Steps []point `json:"steps"`
	Noise []point `json:"noise_multiplier"` // a multiple of the plan's noise where each step has its own
	Delta []point `json:"delta"`
}

// A point is ε at one value of a number.
type point struct {
	At      float64  `json:"at"`
	Epsilon *float64 `json:"epsilon"` // null: the accountant proves no finite ε
}

// The plan's steps and noise are multiplied by these, for the tables and for the chart;
// and the δ that are asked about, beside the plan's own.
var (
	tableFactors = []float64{0.125, 0.25, 0.5, 1, 2, 4, 8}
	chartFactors = []float64{0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4}
	tableDeltas  = decadesOf(-10, -4, 1)
	chartDeltas  = decadesOf(-12, -2, 2)
)

// decadesOf is the powers of ten from 10^from to 10^to, each decade in that many steps.
func decadesOf(from, to, each int) []float64 {
	var all []float64
	for i := from * each; i <= to*each; i++ {
		all = append(all, math.Pow(10, float64(i)/float64(each)))
	}
	return all
}

// grow asks the accountant for ε at each of the points.
func (p *planned) grow(factors, deltas []float64) *growth {
	var g growth
	for _, f := range factors {
		if e, ok := withSteps(p.event, f); ok {
			at := math.Max(1, math.Round(float64(p.Steps)*f))
			if !slices.ContainsFunc(g.Steps, func(q point) bool { return q.At == at }) {
				g.Steps = append(g.Steps, point{at, finite(p.epsilon(e))})
			}
		}
		if e, ok := privacy.WithNoise(p.event, f); ok {
			g.Noise = append(g.Noise, point{p.noiseAt() * f, finite(p.epsilon(e))})
		}
	}
	if p.Delta > 0 {
		deltas = slices.Compact(slices.Sorted(slices.Values(append([]float64{p.Delta}, deltas...))))
		deltas = slices.DeleteFunc(deltas, func(d float64) bool { return d != p.Delta && math.Abs(d/p.Delta-1) < 1e-9 })
	}
	for _, d := range deltas {
		g.Delta = append(g.Delta, point{d, finite(epsilonBy(p.accountant, p.event, p.Adjacency, d))})
	}
	return &g
}

// noiseAt is the plan's noise as tables and charts have it: 1 where each step has its own.
func (p *planned) noiseAt() float64 {
	if p.NoiseMultiplier > 0 {
		return p.NoiseMultiplier
	}
	return 1
}

// noiseName is the name of that number.
func (p *planned) noiseName() string {
	if p.NoiseMultiplier > 0 {
		return "noise multiplier"
	}
	return "times its noise"
}

// print writes the three tables.
func (g *growth) print(w io.Writer, p *planned) {
	table := func(title, name string, here float64, points []point, write func(float64) string) {
		if len(points) < 2 {
			return
		}
		fmt.Fprintf(w, "\n%s\n%18s  %12s\n", title, name, "ε")
		for _, q := range points {
			epsilon, mark := "not proven", ""
			if q.Epsilon != nil {
				epsilon = atMost(*q.Epsilon, 6)
			}
			if q.At == here {
				mark = "  this plan"
			}
			text := write(q.At)
			fmt.Fprintf(w, "%*s%s  %12s%s\n", 18-utf8.RuneCountInString(text), "", text, epsilon, mark)
		}
	}
	table("ε against steps", "steps", float64(p.Steps), g.Steps, func(v float64) string { return count(int(v)) })
	table("ε against noise", p.noiseName(), p.noiseAt(), g.Noise, func(v float64) string { return fmt.Sprintf("%.6g", v) })
	table("ε against δ", "δ", p.Delta, g.Delta, exact)
}

// draw writes the chart, if one was asked for.
func (flags *planFlags) draw(p *planned) error {
	if flags.svg == "" {
		return nil
	}
	return output(nil, "svg", flags.svg, func(w io.Writer) error {
		_, err := io.WriteString(w, p.chart())
		return err
	})
}

// chart draws ε against steps, noise and δ.
func (p *planned) chart() string {
	g := p.grow(chartFactors, chartDeltas)
	var plots []chart.Plot
	add := func(id, title, label string, here float64, logX bool, points []point) {
		line := chart.Line{Name: "accountant " + p.Accountant}
		for _, q := range points {
			y := math.NaN()
			if q.Epsilon != nil && *q.Epsilon <= 6*p.Epsilon { // what is above would flatten the rest
				y = *q.Epsilon
			}
			line.X, line.Y = append(line.X, q.At), append(line.Y, y)
		}
		if len(points) < 2 {
			return
		}
		plot := chart.Plot{ID: id, Title: title, XLabel: label, YLabel: "ε", LogX: logX, Lines: []chart.Line{line},
			Desc: fmt.Sprintf("%s; ε of the plan is %s.", title, atMost(p.Epsilon, 6))}
		plot.Mark, plot.MarkName = &[2]float64{here, p.Epsilon}, "this plan: ε = "+atMost(p.Epsilon, 4)
		if p.Budget != nil {
			plot.Level, plot.LevelName = p.Budget, "budget: ε = "+exact(*p.Budget)
		}
		plots = append(plots, plot)
	}
	noise := "its own noise in each"
	if p.NoiseMultiplier > 0 {
		noise = fmt.Sprintf("noise multiplier %.6g", p.NoiseMultiplier)
	}
	add("steps", fmt.Sprintf("ε against steps, %s, δ = %s", noise, exact(p.Delta)), "steps", float64(p.Steps), false, g.Steps)
	add("noise", fmt.Sprintf("ε against noise, %s steps, δ = %s", count(p.Steps), exact(p.Delta)), p.noiseName(), p.noiseAt(), false, g.Noise)
	add("delta", fmt.Sprintf("ε against δ, %s steps, %s", count(p.Steps), noise), "δ (logarithmic)", p.Delta, true, g.Delta)
	return chart.Figure(fmt.Sprintf("What a plan costs under %v", p.Adjacency), shortEvent(p.event), plots...)
}

// shortEvent is an event in a line's room.
func shortEvent(e privacy.Event) string {
	text := []rune(describe(e))
	if len(text) > 60 {
		return string(text[:59]) + "…"
	}
	return string(text)
}
