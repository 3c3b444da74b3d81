package plan

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
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
		{"steps", "steps", "steps", float64(p.Steps), p.Growth.Steps, func(v float64) string {
			return chart.Integer(int(v))
		}},
		{"noise", "noise_multiplier", axis, noise, p.Growth.Noise, func(v float64) string { return fmt.Sprintf("%.6g", v) }},
		{"δ", "delta", "δ", p.Delta, p.Growth.Delta, chart.Full},
	} {
		if len(t.points) > 1 {
			list = append(list, t)
		}
	}
	return list
}

// atPoint is an ε at a point, rounded up, or that there is none.
func atPoint(epsilon *float64) string {
	if epsilon == nil {
		return "not proven"
	}
	return chart.AtMost(*epsilon, 6)
}

func (p *Plan) printGrowth(w io.Writer) {
	for _, t := range p.tables() {
		head := fmt.Sprintf("%12s", "ε")
		if p.Sum != nil {
			head += "  against all others"
		}
		fmt.Fprintf(w, "\nε against %s\n%18s  %s\n", t.varied, t.axis, head)
		for _, q := range t.points {
			numbers := fmt.Sprintf("%12s", atPoint(q.Epsilon))
			if p.Sum != nil {
				numbers += fmt.Sprintf("  %18s", atPoint(q.Alone))
			}
			if q.At == t.here {
				numbers += "  this plan"
			}
			at := t.write(q.At)
			fmt.Fprintf(w, "%*s%s  %s\n", 18-utf8.RuneCountInString(at), "", at, numbers)
		}
	}
}

// Markdown writes the tables of [Plan.Grow] with rounded numbers, the plan's own row in bold.
func (p *Plan) Markdown(w io.Writer) error {
	fmt.Fprintf(w, "ε under %v by the accountant %s, of %s.\n", p.Adjacency, p.Accountant, Describe(p.event))
	if p.Sum != nil {
		fmt.Fprintf(w, "It is against %s, while masks hold; the last column is against %s.\n", text.Against(p.Sum.Colluders),
			text.AgainstAll)
	}
	row := func(around string, cells ...string) {
		for _, cell := range cells {
			fmt.Fprintf(w, "| %[1]s%[2]s%[1]s ", around, cell)
		}
		fmt.Fprintln(w, "|")
	}
	for _, t := range p.tables() {
		fmt.Fprintln(w)
		if p.Sum != nil {
			row("", t.axis, "ε", "ε against all other owners")
			fmt.Fprintln(w, "|---:|---:|---:|")
		} else {
			row("", t.axis, "ε")
			fmt.Fprintln(w, "|---:|---:|")
		}
		for _, q := range t.points {
			bold, cells := "", []string{t.write(q.At), atPoint(q.Epsilon)}
			if p.Sum != nil {
				cells = append(cells, atPoint(q.Alone))
			}
			if q.At == t.here {
				bold = "**"
			}
			row(bold, cells...)
		}
	}
	return nil
}

// CSV writes the tables of [Plan.Grow] as one, in full precision: the number that varies, its
// value, ε there (empty if none is proven), and whether the line is the plan itself. Of owners who
// add up masked sums it has both ε.
func (p *Plan) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	write := func(fields []string, alone string) { // Flush keeps the error
		if p.Sum != nil {
			fields = append(fields, alone)
		}
		c.Write(fields)
	}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	write([]string{"varied", "value", "epsilon", "this_plan"}, "epsilon_alone")
	for _, t := range p.tables() {
		for _, q := range t.points {
			write([]string{t.field, number(&q.At), number(q.Epsilon), strconv.FormatBool(q.At == t.here)}, number(q.Alone))
		}
	}
	c.Flush()
	return c.Error()
}
