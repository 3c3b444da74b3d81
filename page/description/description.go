// Package description shows private statistics of a table (package run/describe): as a page for people, as a table in
// CSV and as text on a terminal. It formats, and computes nothing.
package description

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

//go:embed page.html
var pageText string

var sheet = template.Must(template.New("page").Funcs(template.FuncMap{
	"count": count, "between": between, "exact": chart.Full, "integer": chart.Integer,
	"moment": func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
	"upper":  chart.Upper,
	"number": chart.Short,
	"up":     func(v float64) string { return chart.NumberUp(v, 2) },
}).Parse(pageText))

// tooFew stands where a figure is of too few records.
const tooFew = "too few records for the noise"

// count is a number of records.
func count(f runlog.Figure) string { return whole(*f.Value) }

func whole(v float64) string { return chart.Integer(int(math.Round(v))) }

// between is the interval of a number of records.
func between(f runlog.Figure) string { return whole(f.Low) + " to " + whole(f.High) }

// A figure is a row of text: a name, a value and an interval.
type figure struct{ Name, Value, Interval string }

// figures are the mean and the quantiles of a column, in its values.
func figures(c *runlog.ColumnFigures, form *schema.Form) (rows []figure) {
	add := func(name string, f runlog.Figure) {
		r := figure{name, tooFew, ""}
		if f.Value != nil {
			write := writer(form, f)
			r = figure{name, write(*f.Value), write(f.Low) + " to " + write(f.High)}
		}
		rows = append(rows, r)
	}
	if c.Mean != nil {
		add("mean", *c.Mean)
	}
	for _, q := range c.Points {
		add(quantile(q.Share), q.Value)
	}
	return rows
}

// quantile names a quantile.
func quantile(share float64) string {
	if share == 0.5 {
		return "median"
	}
	return chart.Number(100*share, 3) + " % are below"
}

// writer writes the values of a figure of a column: of a number, all with the decimals that its interval has in three
// digits.
func writer(form *schema.Form, f runlog.Figure) func(float64) string {
	width := f.High - f.Low
	if form != nil && form.Write != nil || !(width > 0) || math.Max(math.Abs(f.Low), math.Abs(f.High)) >= 1e6 {
		return func(v float64) string { return value(form, v) }
	}
	decimals := min(6, max(0, 2-int(math.Floor(math.Log10(width)))))
	return func(v float64) string { return strconv.FormatFloat(v, 'f', decimals, 64) }
}

// value writes a value of a column.
func value(form *schema.Form, v float64) string {
	if form != nil && form.Write != nil {
		return form.Write(v)
	}
	return chart.Short(v)
}

// forms are how the columns of a description read their cells, by name.
func forms(e *runlog.Description) (map[string]*schema.Form, error) {
	s, err := schema.FromJSON(e.Schema)
	if err != nil {
		return nil, err
	}
	all := map[string]*schema.Form{}
	for i := range s.Columns {
		all[s.Columns[i].Name] = s.Columns[i].Form()
	}
	return all, nil
}

// A column is a small multiple of the page.
type column struct {
	*runlog.ColumnFigures
	Plot   template.HTML // of a number
	Levels []bar
	Rows   []figure
}

// A bar is a level.
type bar struct {
	Name, Value, Interval string
	Width                 int // in percent of the longest
}

// A table is the counts of two columns as a map.
type table struct {
	A, B    string
	Columns []string
	Rows    []tableRow
}

type tableRow struct {
	Name  string
	Cells []tableCell
}

type tableCell struct {
	Value, Interval string
	Share           int
}

// none names the records without a value in a table of two columns.
const none = "no value"

func named(name string) string {
	if name == "" {
		return none
	}
	return name
}

// Page makes the page. Equal records give equal bytes.
func Page(e *runlog.Description) ([]byte, error) {
	how, err := forms(e)
	if err != nil {
		return nil, err
	}
	v := struct {
		*runlog.Description
		Style   template.CSS
		Replace bool
		Cells   int
		All     []column
		Tables  []table
	}{Description: e, Style: template.CSS(page.Style()), Replace: e.Budget.Adjacency == privacy.ReplaceOne,
		Cells: len(e.Answer)}
	for i := range e.Figures.Columns {
		v.All = append(v.All, columnOf(&e.Figures.Columns[i], how[e.Figures.Columns[i].Name], i))
	}
	for i := range e.Figures.Pairs {
		v.Tables = append(v.Tables, tableOf(&e.Figures.Pairs[i]))
	}
	var b bytes.Buffer
	err = sheet.Execute(&b, v)
	return chart.Together(b.Bytes()), err
}

func columnOf(c *runlog.ColumnFigures, form *schema.Form, number int) column {
	k := column{ColumnFigures: c, Rows: figures(c, form)}
	if c.Mean == nil {
		most := 0.0
		for _, l := range c.Cells {
			most = max(most, *l.Records.Value)
		}
		for _, l := range c.Cells {
			k.Levels = append(k.Levels, bar{l.Name, count(l.Records), between(l.Records), chart.Share(*l.Records.Value, most)})
		}
		return k
	}
	n := len(c.Cells)
	b := chart.Bars{ID: fmt.Sprintf("c%d", number), Title: c.Name, YLabel: "records"}
	b.Desc = fmt.Sprintf("Histogram of %s in %d bins from %s to %s, each with its interval.", c.Name, n,
		value(form, *c.Cells[0].From), value(form, *c.Cells[n-1].To))
	b.Ends = [3]string{value(form, *c.Cells[0].From), value(form, (*c.Cells[0].From+*c.Cells[n-1].To)/2),
		value(form, *c.Cells[n-1].To)}
	for _, l := range c.Cells {
		b.Value, b.Low, b.High = append(b.Value, *l.Records.Value), append(b.Low, l.Records.Low),
			append(b.High, l.Records.High)
	}
	k.Plot = b.SVG()
	return k
}

func tableOf(p *runlog.TwoColumnCounts) table {
	t := table{A: p.A, B: p.B}
	for _, name := range p.Columns {
		t.Columns = append(t.Columns, named(name))
	}
	most := 0.0
	for _, row := range p.Records {
		for _, f := range row {
			most = max(most, *f.Value)
		}
	}
	for i, row := range p.Records {
		r := tableRow{Name: named(p.Rows[i])}
		for _, f := range row {
			r.Cells = append(r.Cells, tableCell{count(f), between(f), chart.Share(*f.Value, most)})
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// CSV makes the table of all figures: a line for each, with its interval. Numbers are in the units of their columns.
func CSV(e *runlog.Description) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	line := func(fields ...string) { w.Write(fields) }
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	figure := func(column, statistic, name string, from, to *float64, f runlog.Figure) {
		line(column, statistic, name, number(from), number(to), number(f.Value), number(&f.Low), number(&f.High))
	}
	line("column", "statistic", "name", "from", "to", "value", "low", "high")
	figure("", "records", "", nil, nil, e.Figures.Records)
	for _, c := range e.Figures.Columns {
		kind := "level"
		if c.Mean != nil {
			kind = "bin"
		}
		for _, l := range c.Cells {
			figure(c.Name, kind, l.Name, l.From, l.To, l.Records)
		}
		figure(c.Name, "missing", "", nil, nil, c.Missing)
		figure(c.Name, "not allowed", "", nil, nil, c.Other)
		if c.Mean != nil {
			figure(c.Name, "mean", "", nil, nil, *c.Mean)
		}
		for _, q := range c.Points {
			figure(c.Name, "quantile", chart.Exact(q.Share), nil, nil, q.Value)
		}
	}
	for _, p := range e.Figures.Pairs {
		for i, row := range p.Records {
			for j, f := range row {
				figure(p.A+" × "+p.B, "pair", named(p.Rows[i])+" × "+named(p.Columns[j]), nil, nil, f)
			}
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// Text prints a summary for a terminal.
func Text(w io.Writer, e *runlog.Description, dir string) error {
	how, err := forms(e)
	if err != nil {
		return err
	}
	f := e.Figures
	fmt.Fprintf(w, "Records    %s (%s)\n", count(f.Records), between(f.Records))
	fmt.Fprintf(w, "Noise      standard deviation %s in a count; each interval holds by itself with probability %g %%\n\n",
		chart.Upper(f.Deviation), 100*f.Level)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COLUMN\tTYPE\tMISSING\tNOT ALLOWED\tVALUES")
	for i := range f.Columns {
		c := &f.Columns[i]
		fmt.Fprintf(t, "%s\t%s\t%s (%s)\t%s (%s)\t%s\n", c.Name, c.Type, count(c.Missing), between(c.Missing), count(c.Other),
			between(c.Other), values(c, how[c.Name]))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range f.Pairs {
		fmt.Fprintf(w, "\nPair       %s × %s: %d cells, on the page\n", p.A, p.B, len(p.Rows)*len(p.Columns))
	}
	_, err = fmt.Fprintf(w, "\nCharged to dataset %s: ε = %s, δ = %s\nPage       %s/%s\nFigures    %s/%s\n", e.Dataset,
		chart.Full(e.Budget.Epsilon), chart.Full(e.Budget.Delta), dir, runlog.ReportFile, dir, runlog.DescriptionTable)
	return err
}

// mostLevels are the levels that a summary names.
const mostLevels = 4

// values says in a line which values a column has.
func values(c *runlog.ColumnFigures, form *schema.Form) string {
	var parts []string
	if c.Mean != nil {
		for _, r := range figures(c, form) {
			if r.Name != "mean" && r.Name != "median" {
				continue
			}
			if r.Interval != "" {
				r.Interval = " (" + r.Interval + ")"
			}
			parts = append(parts, r.Name+" "+r.Value+r.Interval)
		}
		return strings.Join(parts, ", ")
	}
	for i, l := range c.Cells {
		if i == mostLevels && len(c.Cells) > mostLevels+1 {
			parts = append(parts, fmt.Sprintf("%d more", len(c.Cells)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", l.Name, count(l.Records), between(l.Records)))
	}
	return strings.Join(parts, ", ")
}
