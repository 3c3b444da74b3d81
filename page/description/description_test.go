package description

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// record is a description with names that need escaping, a column of too few records, a date and a pair.
func record(t *testing.T) *runlog.Description {
	t.Helper()
	s, err := schema.Parse("", []byte(`dataset: d
rows: 10
columns:
  - {name: "a <b>, c", type: numeric, min: 0, max: 2}
  - {name: seen, type: date, min: 2020-01-01, max: 2020-01-03}
  - {name: y, type: label, classes: [n, "<j>"]}
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f := func(v, low, high float64) runlog.Figure { return runlog.Figure{Value: &v, Low: low, High: high} }
	at := func(v float64) *float64 { return &v }
	number := func(name, typ string) runlog.ColumnFigures {
		mean := f(0.5, 0.25, 0.75)
		return runlog.ColumnFigures{Name: name, Type: typ, Mean: &mean, Missing: f(1, 0, 2), Other: f(0, 0, 1),
			Cells:  []runlog.Cell{{Name: "0 to 1", From: at(0), To: at(1), Records: f(6, 5, 7)}, {Name: "1 to 2", From: at(1), To: at(2), Records: f(3, 2, 4)}},
			Points: []runlog.Quantile{{Share: 0.5, Value: f(0.5, 0, 1)}}}
	}
	few := number("a <b>, c", "numeric")
	few.Mean = &runlog.Figure{Low: 0, High: 2, TooFew: true}
	return &runlog.Description{Format: runlog.DescriptionFormat, ID: "r1", Version: "0.1.0", Dataset: "d", Unit: "record", Rows: 10, Schema: json.RawMessage(text),
		Budget: privacy.Budget{Epsilon: 1, Delta: 1e-6, Adjacency: privacy.ReplaceOne}, Noise: 4.2, Answer: make([]float64, 20), Warnings: []string{"beware <of> this"},
		Figures: &runlog.Figures{Level: 0.95, Deviation: 12.5, Records: f(10, 8, 12), Columns: []runlog.ColumnFigures{few, number("seen", "date"),
			{Name: "y", Type: "label", Label: true, Missing: f(0, 0, 1), Other: f(0, 0, 1), Cells: []runlog.Cell{{Name: "n", Records: f(1234, 1200, 1300)}, {Name: "<j>", Records: f(0, 0, 9)}}}},
			Pairs: []runlog.TwoColumnCounts{{A: "a <b>, c", B: "y", Rows: []string{"0 to 2", ""}, Columns: []string{"n", ""}, Records: [][]runlog.Figure{{f(1, 0, 2), f(3, 2, 4)}, {f(5, 4, 6), f(7, 6, 8)}}}}}}
}

// TestPage: the page is well formed, escapes what people wrote, and says the relation.
func TestPage(t *testing.T) {
	b, err := Page(record(t))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	page := strings.ReplaceAll(string(b), "&nbsp;", " ")
	for _, want := range []string{"a &lt;b&gt;, c", "beware &lt;of&gt; this", "&lt;j&gt;", "1,234", "1,200 to 1,300", tooFew, "2020-01-01 to 2020-01-02", "for replacing one record by another", "√2 times the root", "δ = 0.000001", "noise multiplier is 4.2", "no value", "<svg"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"<script", "http://", "https://", "NaN", "ZgotmplZ", "%!", "private; the schema"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
}

// TestCSV: every figure has a line; one without a value has an empty cell.
func TestCSV(t *testing.T) {
	b, err := CSV(record(t))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1+1+2*(2+2+1+1)+4+4 {
		t.Errorf("%d lines", len(lines))
	}
	for _, want := range []string{",records,,,,10,8,12", `"a <b>, c",mean,,,,,0,2`, `"a <b>, c",bin,0 to 1,0,1,6,5,7`, "seen,quantile,0.5,,,0.5,0,1", "y,level,<j>,,,0,0,9", `"a <b>, c × y",pair,no value × n,,,5,4,6`} {
		if !strings.Contains("\n"+string(b), "\n"+want+"\n") {
			t.Errorf("no line %s in\n%s", want, b)
		}
	}
}

// TestText: a summary names every column, in values of the column.
func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, record(t), "dir"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Records    10 (8 to 12)", "mean " + tooFew, "median 2020-01-01", "n 1,234 (1,200 to 1,300), <j> 0 (0 to 9)", "a <b>, c × y: 4 cells", "ε = 1, δ = 0.000001", "dir/report.html"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}
