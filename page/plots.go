package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/record"
)

// shownAttacks are the false positive rates of the table beside the trade-off curve.
var shownAttacks = []float64{0.001, 0.01, 0.1}

func (v *view) plots(g *record.Guarantee) {
	for _, a := range g.Attacks {
		if slices.Contains(shownAttacks, a.FalsePositives) {
			v.Attacks = append(v.Attacks, a)
		}
	}
	v.TradeOff = PlotTradeOff(g)
	v.Curve = plotCurve(g)
	v.Spent = v.plotSpending(g)
}

// PlotTradeOff draws what any attack can reach, beside what ε and δ alone and μ alone say.
func PlotTradeOff(g *record.Guarantee) template.HTML {
	t := g.TradeOff
	if t == nil {
		return ""
	}
	lines := []chart.Line{
		{Name: "the most that any attack on this plan reaches", Y: t.Plan},
		{Name: fmt.Sprintf("the same by ε = %s and δ = %s alone", exact(g.Epsilon), exact(g.Delta)), Y: t.Pair},
		{Name: "guessing", Y: t.FalsePositives},
	}
	if t.Gaussian != nil {
		lines = append(lines, chart.Line{Name: fmt.Sprintf("the same by μ = %s alone", upward(g.GDP.Mu)), Y: t.Gaussian})
	}
	for i := range lines {
		lines[i].X = t.FalsePositives
	}
	p := chart.Plot{ID: "tradeoff", Title: "The most true positives of any attack, by its false positives",
		XLabel: "false positive rate", YLabel: "true positive rate", LogX: true, LogY: true, Shares: true, Lines: lines}
	p.Desc = "At most"
	said := 0
	for _, a := range g.Attacks {
		if slices.Contains(shownAttacks, a.FalsePositives) {
			p.Desc += fmt.Sprintf("%s %s true positives at %s false positives", []string{"", ",", " and"}[said],
				chart.PercentUp(a.TruePositives), chart.PercentUp(a.FalsePositives))
			said++
		}
	}
	p.Desc += "."
	return p.SVG()
}

// plotCurve draws ε over δ for the plan, and that of a second accountant if one differs.
func plotCurve(g *record.Guarantee) template.HTML {
	c := g.Curve
	if c == nil {
		return ""
	}
	n := len(c.Delta) - 1
	p := chart.Plot{
		ID: "curve", Title: "ε of the plan for each δ", XLabel: "δ (logarithmic)", YLabel: "ε", LogX: true,
		Lines: []chart.Line{{Name: "accountant " + g.Accountant, X: c.Delta, Y: c.Epsilon}},
	}
	p.Desc = fmt.Sprintf("By accountant %v, ε is %s at δ = %s and %s at δ = %s.", g.Accountant, number(c.Epsilon[0]),
		number(c.Delta[0]), number(c.Epsilon[n]), number(c.Delta[n]))
	if c.Second != "" {
		p.Lines = append(p.Lines,
			chart.Line{Name: "accountant " + c.Second + ", for comparison", X: c.Delta, Y: c.BySecond})
		p.Desc += fmt.Sprintf(" By accountant %s it is %s and %s.", c.Second, number(c.BySecond[0]), number(c.BySecond[n]))
	}
	if at := float64(*g.PlanEpsilon); g.Delta > 0 && !math.IsInf(at, 0) {
		p.Mark, p.MarkName = &[2]float64{g.Delta, at},
			fmt.Sprintf("δ = %s of this run: ε = %s", exact(g.Delta), upward(at))
		p.Desc += fmt.Sprintf(" At the δ of this run, %s, it is %s.", exact(g.Delta), upward(at))
	}
	return p.SVG()
}

// plotSpending draws ε of the charges after each batch.
func (v *view) plotSpending(g *record.Guarantee) template.HTML {
	if g.Spending == nil {
		return ""
	}
	l := chart.Line{X: []float64{0}, Y: []float64{0}, Name: fmt.Sprintf("ε at δ = %s", exact(g.Delta))}
	for _, s := range g.Spending {
		// ε does not fall: up to this point it is no more than there
		l.X, l.Y = append(l.X, l.X[len(l.X)-1]), append(l.Y, s.Epsilon)
		l.X, l.Y = append(l.X, float64(s.Batches)), append(l.Y, s.Epsilon)
	}
	p := chart.Plot{
		ID: "spent", Title: "ε spent by batch", XLabel: "batches charged", YLabel: "ε", Counts: true, Lines: []chart.Line{l},
		Desc: fmt.Sprintf("After %s batches, ε is %s; the cap is %s. Each step of the line is as high as ε after its last batch.",
			integer(v.Course.Charged), upward(float64(*g.Realized)), exact(g.Epsilon)),
	}
	p.Level, p.LevelName = &g.Epsilon, "cap: ε = "+exact(g.Epsilon)
	return p.SVG()
}

// plotSteps draws a figure of each step; nothing where there is none.
func plotSteps(id, title, label string, s *record.Series) template.HTML {
	if s == nil {
		return ""
	}
	p := chart.Plot{ID: id, Title: title, XLabel: "step", YLabel: label, Counts: true,
		Lines: []chart.Line{{X: s.Step, Y: s.Value}}}
	p.Desc = fmt.Sprintf("%s over %s steps: %s at the first, %s at the last, between %s and %s.", label,
		integer(s.Count), number(s.First), number(s.Last), number(s.Least), number(s.Most))
	return p.SVG()
}
