package compare

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run/score"
)

// Notice is the warning on every comparison.
const Notice = "None of this is private: every figure is computed from the rows without noise. A choice of a method, a field or ε by these " +
	"figures is an access to the rows without charge, and no model's guarantee covers it. Compare on rows that need no protection " +
	"or on a synthetic table (sotto synth), and train the private model with what you choose there, or charge the search (sotto tune)."

// A shown is a figure of the tables: of times scale, written with a number of digits unless it has fixed ones.
type shown struct {
	name  string
	of    func(*Cell) Figure
	scale float64
	write func(v float64, digits int) string
}

func hundredths(v float64, _ int) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// shown lists the figures of a table, the score first.
func (t *table) shown() []shown {
	return []shown{scored(t.schema.Classes() > 0), {"objective", (*Cell).Objective, 1, chart.Number},
		{"seconds", (*Cell).Seconds, 1, chart.Number}}
}

// scored returns the score of a table: an accuracy if it has classes, else an error.
func scored(classes bool) shown {
	if classes {
		return shown{"accuracy, %", (*Cell).Score, 100, hundredths}
	}
	return shown{"root mean squared error", (*Cell).Score, 1, chart.Number}
}

// grid returns a figure of all cells of a table as a Markdown table, aligned for terminals.
func (t *table) grid(s shown) string {
	rows := [][]string{{"ε"}}
	for i, c := range t.cells { // method by method, each with the same ε in the same order
		if i == 0 || t.cells[i-1].Method != c.Method {
			rows[0] = append(rows[0], c.Method)
		}
		if len(rows[0]) == 2 {
			rows = append(rows, []string{c.Epsilon})
		}
		at := 1 + slices.IndexFunc(rows[1:], func(r []string) bool { return r[0] == c.Epsilon })
		rows[at] = append(rows[at], c.text(s))
	}
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for j, text := range r {
			width[j] = max(width[j], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	line := func(cell func(j int) string) {
		for j := range width {
			fmt.Fprintf(&b, "| %s ", cell(j))
		}
		b.WriteString("|\n")
	}
	for i, r := range rows {
		line(func(j int) string { return r[j] + strings.Repeat(" ", width[j]-utf8.RuneCountInString(r[j])) })
		if i == 0 {
			line(func(j int) string { return strings.Repeat("-", width[j]) })
		}
	}
	return b.String()
}

// text is a figure in a cell of a table: mean ± standard deviation (median).
func (c *Cell) text(s shown) string {
	if c.Refused != "" {
		return "refused"
	}
	text := s.text(s.of(c))
	if d := c.Diverged(); d > 0 {
		text += fmt.Sprintf(", %d diverged", d)
	}
	return text
}

// text is a figure as the tables show it.
func (s shown) text(f Figure) string {
	switch f.N {
	case 0:
		return "–"
	case 1:
		return s.write(s.scale*f.Mean, 4)
	}
	return fmt.Sprintf("%s ± %s (%s)", s.write(s.scale*f.Mean, 4), s.write(s.scale*f.SD, 2), s.write(s.scale*f.Median, 4))
}

// Tables returns the tables of scores: accuracies or errors.
func (p *Plan) Tables() string {
	var b strings.Builder
	for _, t := range p.tables {
		s := t.shown()[0]
		fmt.Fprintf(&b, "%s: %s (%s; %s)\n%s", t.name, s.name, t.terms(), p.told(), t.grid(s))
	}
	return b.String()
}

// told describes the figures in a cell.
func (p *Plan) told() string {
	v := p.Varied
	how := fmt.Sprintf("%d seeds", v.Seeds)
	if v.Seeds == 1 {
		how = "one seed"
	}
	switch {
	case v.Folds != 0:
		how = fmt.Sprintf("%d folds, %s", v.Folds, how)
	case v.Split != 0:
		how = fmt.Sprintf("%s, each with a split of its own, %s of the %s to train on", how,
			strconv.FormatFloat(v.Split, 'g', -1, 64), p.counted())
	}
	if p.perCell() > 1 {
		how = "mean ± standard deviation (median) of " + how
	}
	return how
}

// counted names what the declared numbers of all tables count; in a table without units each row counts as a unit.
func (p *Plan) counted() string {
	most := 0
	for _, t := range p.tables {
		most = max(most, t.schema.UnitRows)
	}
	return oracle.Public{UnitRows: most}.Counted()
}

// page is the comparison in Markdown.
func (p *Plan) page() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# Comparison\n\n> %s\n\nFigures are %s. ε is the cap of a run whose training rows are the part it is trained on. ",
		Notice, p.told())
	fmt.Fprintf(&b, "Seconds are of training, while other cells train too.\n\n![what was found](%s)\n", Chart)
	for _, t := range p.tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s declared %s, %s.\n", t.name, chart.Integer(t.rows), t.schema.Counted(), t.terms())
		for _, s := range t.shown() {
			fmt.Fprintf(&b, "\n### %s\n\n%s", s.name, t.grid(s))
		}
		for _, c := range t.cells {
			if c.Refused != "" {
				fmt.Fprintf(&b, "\nNo figures for %s at ε = %s: %s.\n", c.Method, c.Epsilon, c.Refused)
			}
		}
	}
	return b.String()
}

// cellsCSV has a line for each cell.
func (p *Plan) cellsCSV() string {
	lines := [][]string{strings.Split("table,method,epsilon,delta,adjacency,runs,diverged,measure,score_mean,score_sd,score_median,"+
		"objective_mean,objective_sd,objective_median,seconds_mean,seconds_sd,seconds_median,noise_multiplier,refused", ",")}
	for _, c := range p.Cells {
		delta, adjacency, multiplier := "", "", ""
		if s := c.Spec.Privacy; !s.Off {
			delta, adjacency = field(*s.Delta), s.Adjacency.String()
		}
		if len(c.Results) > 0 && c.Results[0].Noise > 0 {
			multiplier = field(c.Results[0].Noise)
		}
		line := []string{c.Table, c.Method, c.Epsilon, delta, adjacency, strconv.Itoa(len(c.Results)),
			strconv.Itoa(c.Diverged()), c.Measure()}
		for _, f := range []Figure{c.Score(), c.Objective(), c.Seconds()} {
			line = append(line, field(f.Mean), field(f.SD), field(f.Median))
		}
		lines = append(lines, append(line, multiplier, c.Refused))
	}
	return csvOf(lines)
}

// runsCSV has a line for each training.
func (p *Plan) runsCSV() string {
	lines := [][]string{strings.Split("table,method,epsilon,seed,fold,train_rows,test_rows,measure,score,objective,seconds,steps,outcome", ",")}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return field(*v)
	}
	for _, c := range p.Cells {
		for _, r := range c.Results {
			lines = append(lines,
				[]string{c.Table, c.Method, c.Epsilon, strconv.Itoa(r.Seed), strconv.Itoa(r.Fold), strconv.Itoa(r.TrainRows),
					strconv.Itoa(r.TestRows),
					c.Measure(), number(r.Score), number(r.Objective), field(r.Seconds), strconv.Itoa(r.Steps), r.Outcome})
		}
	}
	return csvOf(lines)
}

// csvOf writes lines as CSV. Writing to memory cannot fail.
func csvOf(lines [][]string) string {
	var b strings.Builder
	csv.NewWriter(&b).WriteAll(lines)
	return b.String()
}

// field returns a finite number as a CSV field; others are empty.
func field(v float64) string {
	if !score.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 8, 64)
}

// figure draws score and objective of every table against ε.
func (p *Plan) figure() string {
	var plots []chart.Plot
	for i, t := range p.tables {
		for k, s := range t.shown()[:2] {
			plot := chart.Plot{ID: fmt.Sprintf("t%d-%d", i, k), Title: t.name + ": " + s.name, Desc: "A line for each method",
				XLabel: "ε", YLabel: s.name, LogX: true, Tight: true}
			for _, c := range t.cells {
				n := len(plot.Lines)
				if n == 0 || plot.Lines[n-1].Name != c.Method {
					plot.Lines, n = append(plot.Lines, chart.Line{Name: c.Method}), n+1
				}
				if e, err := strconv.ParseFloat(c.Epsilon, 64); err == nil {
					l := &plot.Lines[n-1]
					l.X, l.Y = append(l.X, e), append(l.Y, s.scale*s.of(c).Mean)
					l.SD = append(l.SD, s.scale*s.of(c).SD)
				}
			}
			for _, c := range t.cells { // the first without noise, as a level
				if f := s.of(c); c.Epsilon == NoNoise && f.N > 0 && plot.Level == nil {
					level := s.scale * f.Mean
					plot.Level, plot.LevelName = &level, c.Method+" without noise"
				}
			}
			plot.Lines = slices.DeleteFunc(plot.Lines, func(l chart.Line) bool { return len(l.X) == 0 })
			plots = append(plots, plot)
		}
	}
	return chart.Figure("Methods against ε", "means with bars of one standard deviation; not private", plots...)
}

// Write writes the results to the directory: cells and trainings as CSV, the tables in
// Markdown, and a figure.
func (p *Plan) Write(dir string) error {
	for _, c := range p.Cells {
		c.order()
	}
	for _, f := range []struct{ name, text string }{{CellsCSV, p.cellsCSV()}, {RunsCSV, p.runsCSV()}, {Page, p.page()},
		{Chart, p.figure()}} {
		if err := newfile.Replace(filepath.Join(dir, f.name), 0o600, []byte(f.text)); err != nil {
			return err
		}
	}
	return nil
}
