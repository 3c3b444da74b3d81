package paper

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
)

// A Claim is a sentence of a paper as an inequality between what was found.
type Claim struct {
	Name  string
	Says  string // the paper, in our words
	Holds bool
	Found string // the figures
}

// Claims are the claims of a paper.
type Claims []Claim

// Add adds one; found is formatted by Sprintf.
func (c *Claims) Add(name, says string, holds bool, found string, args ...any) {
	*c = append(*c, Claim{name, says, holds, fmt.Sprintf(found, args...)})
}

// Passed counts those that hold.
func (c Claims) Passed() int {
	return len(slices.DeleteFunc(slices.Clone(c), func(c Claim) bool { return !c.Holds }))
}

// A Figure is a figure of a paper: its data and its plots.
type Figure struct {
	File, Title, Note string // File is a name without extension
	CSV               *CSV   // nil: its data is in another file
	Plots             []chart.Plot
}

// A File is written beside the page.
type File struct{ Name, Text string }

// A CSV collects lines of comma-separated values.
type CSV struct{ strings.Builder }

// NewCSV starts with a line of column names.
func NewCSV(head string) *CSV {
	c := &CSV{}
	c.WriteString(head + "\n")
	return c
}

// Add adds a line: numbers have six digits, and strings are written as they are.
func (c *CSV) Add(values ...any) {
	for k, v := range values {
		if k > 0 {
			c.WriteByte(',')
		}
		if f, ok := v.(float64); ok {
			v = Digits(f, 6)
		}
		fmt.Fprint(c, v)
	}
	c.WriteByte('\n')
}

// Digits is v with at most n digits.
func Digits(v float64, n int) string { return fmt.Sprintf("%.*g", n, v) }

// Line is a line of a plot through the points that exist.
func Line[T any](name string, of []T, point func(T) (x, y float64, ok bool)) chart.Line {
	l := chart.Line{Name: name}
	for _, t := range of {
		if x, y, ok := point(t); ok {
			l.X, l.Y = append(l.X, x), append(l.Y, y)
		}
	}
	return l
}

// Through is a line through the points of a function.
func Through(name string, x []float64, y func(x float64) float64) chart.Line {
	return Line(name, x, func(x float64) (float64, float64, bool) { return x, y(x), true })
}

const head = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:1040px;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #d0d7de}
.yes{color:#116329;font-weight:600}.no{color:#b3261e;font-weight:600}
.plots{display:flex;flex-wrap:wrap;gap:1rem}.plots figure{margin:0;flex:1 1 300px;max-width:480px}
figcaption{font-weight:600}
` + chart.Style + `
</style>
`

// Parts of a page: {{template "claims" .Claims}} and {{template "figures" .Figures}}.
const parts = `</html>
{{define "claims"}}<h2>Claims: {{.Passed}} of {{len .}} hold</h2>
<table>
<tr><th>claim</th><th></th><th>the paper</th><th>found</th></tr>
{{range .}}<tr id="{{.Name}}"><td>{{.Name}}</td><td>{{if .Holds}}<span class="yes">holds</span>{{else}}<span class="no">fails</span>{{end}}</td><td>{{.Says}}</td><td>{{.Found}}</td></tr>
{{end}}</table>
{{end}}{{define "figures"}}{{range .}}<h2>{{.Title}}</h2>
<p>{{.Note}}. <a href="./{{.File}}.svg">{{.File}}.svg</a>{{if .CSV}}, <a href="./{{.File}}.csv">{{.File}}.csv</a>{{end}}</p>
<div class="plots">{{range .Plots}}<figure><figcaption>{{.Title}}</figcaption>{{.SVG}}</figure>{{end}}</div>
{{end}}{{end}}`

// write writes tables, data and drawing of each figure, and then index.html.
func (r *Results) write(dir, title, body string) error {
	files := r.Tables
	for _, f := range r.Figures {
		if f.CSV != nil {
			files = append(files, File{f.File + ".csv", f.CSV.String()})
		}
		files = append(files, File{f.File + ".svg", chart.Figure(f.Title, f.Note, f.Plots...)})
	}
	page, err := template.New("").Funcs(template.FuncMap{"title": func() string { return title }}).Parse(head + body + parts)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := page.Execute(&text, r); err != nil {
		return err
	}
	for _, f := range append(files, File{"index.html", text.String()}) {
		r.Files = append(r.Files, f.Name)
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
