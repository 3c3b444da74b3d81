package plan

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/sottodp/sotto/internal/chart"
)

// A table is ε against one number of the plan.
type table struct {
	varied, field string // the number, and its name for programs
	axis          string
	here          float64 // the plan's own
	points        []Point
	write         func(float64) string
}

// tables are those of [Plan.Grow], without those of a single point.
func (p *Plan) tables() (list []table) {
	noise, axis := p.Noise()
	for _, t := range []table{
		{"steps", "steps", "steps", float64(p.Steps), p.Growth.Steps, func(v float64) string { return chart.Integer(int(v)) }},
		{"noise", "noise_multiplier", axis, noise, p.Growth.Noise, func(v float64) string { return fmt.Sprintf("%.6g", v) }},
		{"δ", "delta", "δ", p.Delta, p.Growth.Delta, chart.Exact},
	} {
		if len(t.points) > 1 {
			list = append(list, t)
		}
	}
	return list
}

// epsilon is ε at a point, rounded up, or that there is none.
func (q Point) epsilon() string {
	if q.Epsilon == nil {
		return "not proven"
	}
	return chart.AtMost(*q.Epsilon, 6)
}

func (p *Plan) printGrowth(w io.Writer) {
	for _, t := range p.tables() {
		fmt.Fprintf(w, "\nε against %s\n%18s  %12s\n", t.varied, t.axis, "ε")
		for _, q := range t.points {
			mark := ""
			if q.At == t.here {
				mark = "  this plan"
			}
			text := t.write(q.At)
			fmt.Fprintf(w, "%*s%s  %12s%s\n", 18-utf8.RuneCountInString(text), "", text, q.epsilon(), mark)
		}
	}
}

// Markdown writes the tables of [Plan.Grow] with rounded numbers, the plan's own row in bold.
func (p *Plan) Markdown(w io.Writer) error {
	fmt.Fprintf(w, "ε under %v by the accountant %s, of %s.\n", p.Adjacency, p.Accountant, Describe(p.event))
	for _, t := range p.tables() {
		fmt.Fprintf(w, "\n| %s | ε |\n|---:|---:|\n", t.axis)
		for _, q := range t.points {
			bold := ""
			if q.At == t.here {
				bold = "**"
			}
			fmt.Fprintf(w, "| %[1]s%[2]s%[1]s | %[1]s%[3]s%[1]s |\n", bold, t.write(q.At), q.epsilon())
		}
	}
	return nil
}

// CSV writes the tables of [Plan.Grow] as one, in full precision: what varies, its value, ε there (empty where nothing is
// proven), and whether that is the plan.
func (p *Plan) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write([]string{"varied", "value", "epsilon", "this_plan"}) // Flush keeps the error
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, t := range p.tables() {
		for _, q := range t.points {
			epsilon := ""
			if q.Epsilon != nil {
				epsilon = number(*q.Epsilon)
			}
			c.Write([]string{t.field, number(q.At), epsilon, strconv.FormatBool(q.At == t.here)})
		}
	}
	c.Flush()
	return c.Error()
}
