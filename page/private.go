package page

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// A privateRow is a private figure with its interval.
type privateRow struct {
	Name, Value, Interval string
	Beaten                bool // by a constant
}

// tooFew replaces a figure of too few records.
const tooFew = "too few records for the noise"

// shareRow is a row of a figure from 0 to 1. If the interval is too wide, the row shows only the interval.
func shareRow(name string, f runlog.Figure) privateRow {
	r := rowOf(name, f, decimals)
	if f.High-f.Low > widest {
		r.Value = tooFew
	}
	return r
}

// rowOf is a row of a figure.
func rowOf(name string, f runlog.Figure, form func(float64) string) privateRow {
	if f.Value == nil {
		return privateRow{Name: name, Value: tooFew}
	}
	return privateRow{Name: name, Value: form(*f.Value), Interval: form(f.Low) + " to " + form(f.High)}
}

func decimals(v float64) string { return fmt.Sprintf("%.4f", v) }

// about is a noisy number of records.
func about(f runlog.Figure) string {
	if f.Value == nil || f.TooFew {
		return tooFew
	}
	return "about " + chart.Integer(int(math.Round(*f.Value))) + " records"
}

// privateRows are the figures of all records together.
func privateRows(p *runlog.Private) (rows []privateRow) {
	add := func(name string, f *runlog.Figure, form func(float64) string) {
		if f != nil {
			rows = append(rows, rowOf(name, *f, form))
		}
	}
	mark := func(f *runlog.Figure, beaten func(float64) bool) { // in the row that was added last
		if f != nil && f.Value != nil && beaten(*f.Value) && rows[len(rows)-1].Value != tooFew {
			rows[len(rows)-1].Value += worse
			rows[len(rows)-1].Beaten = true
		}
	}
	accuracy, logLoss := 0.0, math.Inf(1) // of the best constant
	if c := record.PrivateConstantOf(p); c != nil {
		accuracy = *c.Accuracy
		if c.LogLoss != nil {
			logLoss = *c.LogLoss
		}
	}
	if f := p.Accuracy; f != nil {
		rows = append(rows, shareRow("accuracy", *f))
		mark(f, func(v float64) bool { return v < accuracy })
	}
	if f := p.AUC; f != nil {
		rows = append(rows, shareRow("AUC", *f))
		mark(f, func(v float64) bool { return v < 0.5 })
	}
	add("log loss", p.LogLoss, decimals)
	mark(p.LogLoss, func(v float64) bool { return v > logLoss })
	add("MAE", p.MAE, number)
	add("RMSE", p.RMSE, number)
	add("R²", p.R2, decimals)
	mark(p.R2, func(v float64) bool { return v < 0 })
	return rows
}

func classRows(classes []runlog.PrivateClass) (rows []privateRow) {
	for _, c := range classes {
		rows = append(rows, shareRow("recall of "+c.Class, c.Recall),
			shareRow("precision of "+c.Class, c.Precision))
	}
	return rows
}

// groupRows are one row for each group.
func groupRows(p *runlog.Private) (rows []privateGroup) {
	for _, g := range p.Groups {
		name, r := g.Level, privateRow{Value: about(g.Records)}
		if name == "" {
			name = "(no level)"
		}
		switch {
		case g.Records.TooFew:
		case g.Accuracy != nil:
			r = shareRow("accuracy", *g.Accuracy)
		case g.RMSE != nil:
			r = rowOf("RMSE", *g.RMSE, number)
		}
		rows = append(rows, privateGroup{name, about(g.Records), r})
	}
	return rows
}

// A privateGroup is a row of the figures by level.
type privateGroup struct {
	Level, Records string
	privateRow
}

// privateNotes say how the figures are to be read.
func privateNotes(p *runlog.Private) (notes []string) {
	on := "the rows of the holdout"
	if p.On == runlog.OnTable {
		on = "the rows of the table"
	}
	notes = append(notes,
		fmt.Sprintf("Private: from noisy counts of %s, %s. Each interval has a confidence of %s and covers the noise and the sampling error.", on, about(p.Records), percent(p.Level, 0)))
	if p.Clip != nil {
		notes = append(notes,
			fmt.Sprintf("In the log loss no probability counts as nearer to 0 or 1 than %s.", number(*p.Clip)))
	}
	if words := privateConstantWords(p); words != "" {
		notes = append(notes, "By the same noisy counts, the best constant would reach "+words+".")
	}
	if p.Error != nil {
		notes = append(notes, fmt.Sprintf("No error counts as larger than %s.", number(*p.Error)))
	}
	return notes
}

// privateConstantWords says what the best constant reaches by the same noisy counts; "" if these do
// not tell the model's quality.
func privateConstantWords(p *runlog.Private) string {
	c := record.PrivateConstantOf(p)
	if c == nil {
		return ""
	}
	known := map[string]bool{}
	for _, r := range privateRows(p) {
		known[r.Name] = r.Value != tooFew
	}
	return factWords(slices.DeleteFunc(scoresOf(c.Scores()), func(f fact) bool { return !known[f.Name] }))
}

func writeRows(w io.Writer, indent string, rows []privateRow) {
	for _, r := range rows {
		if r.Interval == "" {
			fmt.Fprintf(w, "%s%-22s %s\n", indent, r.Name, r.Value)
			continue
		}
		if r.Value == tooFew {
			r.Value += ","
		}
		fmt.Fprintf(w, "%s%-22s %-10s %s\n", indent, r.Name, r.Value, r.Interval)
	}
}

// WritePrivate writes private figures, with their classes and groups.
func WritePrivate(w io.Writer, p *runlog.Private) {
	writeRows(w, "", append(privateRows(p), classRows(p.Classes)...))
	if p.By != "" {
		fmt.Fprintf(w, "by %s\n", p.By)
		for _, g := range groupRows(p) {
			if g.Interval == "" {
				fmt.Fprintf(w, "  %-20s %s\n", g.Level, g.Value)
				continue
			}
			fmt.Fprintf(w, "  %-20s %s %-10s %s, %s\n", g.Level, g.Name, g.Value, g.Interval, g.Records)
		}
	}
	for _, n := range privateNotes(p) {
		fmt.Fprintln(w, n)
	}
}

// summarizePrivate writes the figures of a run's holdout into its summary.
func summarizePrivate(w io.Writer, p *runlog.Private) {
	rows := privateRows(p)
	if len(p.Classes) == 2 {
		rows = append(rows, classRows(p.Classes)...)
	}
	label := "Private    "
	for _, r := range rows {
		writeRows(w, label, []privateRow{r})
		label = "           "
	}
	for _, n := range privateNotes(p) {
		fmt.Fprintf(w, "           %s\n", n)
	}
}

// A privateView is what the page shows of private figures.
type privateView struct {
	Notes       []string
	Rows        []privateRow
	By          string
	Groups      []privateGroup
	Calibration []privateRow
}

func privateOf(p *runlog.Private) *privateView {
	if p == nil {
		return nil
	}
	notes := privateNotes(p)
	notes[0] = "From" + strings.TrimPrefix(notes[0], "Private: from") // a mark stands before it
	v := &privateView{Notes: notes, Rows: append(privateRows(p), classRows(p.Classes)...), By: p.By,
		Groups: groupRows(p)}
	for _, b := range p.Calibration {
		if b.Share.Value != nil {
			v.Calibration = append(v.Calibration, rowOf(decimals(b.From)+" to "+decimals(b.To), b.Share, decimals))
		}
	}
	return v
}
