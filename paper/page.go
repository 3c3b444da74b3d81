package paper

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
)

// A Claim is a sentence as an inequality between what was found.
type Claim struct {
	From      string `json:"from,omitempty"` // the section of the paper that says it; "" for a bar of this project
	Name      string `json:"name"`
	Says      string `json:"says"` // in our words
	Holds     bool   `json:"holds"`
	NotTested bool   `json:"not_tested,omitempty"` // the experiment says nothing of it; Why has the reason
	Found     string `json:"found,omitempty"`      // the figures
	Why       string `json:"why,omitempty"`        // why it fails, if it does
}

// Claims are those of a paper and this project's.
type Claims []Claim

// Add adds a claim from a section of the paper, or a bar of this project where from is empty. found is formatted by
// Sprintf.
func (c *Claims) Add(from, name, says string, holds bool, found string, args ...any) *Claim {
	*c = append(*c, Claim{From: from, Name: name, Says: says, Holds: holds, Found: fmt.Sprintf(found, args...)})
	return &(*c)[len(*c)-1]
}

// NotTested adds a claim of the paper that the experiment does not test, with the reason. It counts neither as held nor
// as failed.
func (c *Claims) NotTested(from, name, says, why string) {
	*c = append(*c, Claim{From: from, Name: name, Says: says, NotTested: true, Why: why})
}

// Because states why the claim fails; it is ignored if the claim holds.
func (c *Claim) Because(why string) {
	if !c.Holds {
		c.Why = why
	}
}

// Paper is the claims of the paper.
func (c Claims) Paper() Claims { return c.of(func(c Claim) bool { return c.From != "" }) }

// Ours is the bars of this project.
func (c Claims) Ours() Claims { return c.of(func(c Claim) bool { return c.From == "" }) }

func (c Claims) of(keep func(Claim) bool) Claims {
	return slices.DeleteFunc(slices.Clone(c), func(c Claim) bool { return !keep(c) })
}

// Tested counts those that the experiment tests.
func (c Claims) Tested() int { return len(c.of(func(c Claim) bool { return !c.NotTested })) }

// Passed counts those that hold.
func (c Claims) Passed() int { return len(c.of(func(c Claim) bool { return c.Holds })) }

// Failed counts those that are tested and do not hold.
func (c Claims) Failed() int { return c.Tested() - c.Passed() }

// Untested counts those that the experiment does not test.
func (c Claims) Untested() int { return len(c) - c.Tested() }

// A Table is a table of results. Where the paper prints a figure, a column has it beside Sotto's.
type Table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
}

// Add adds a row: numbers have four digits, and strings are written as they are.
func (t *Table) Add(cells ...any) {
	var row []string
	for _, c := range cells {
		if f, ok := c.(float64); ok {
			c = Digits(f, 4)
		}
		row = append(row, strings.ReplaceAll(fmt.Sprint(c), " ± ", "\u00a0±\u00a0"))
	}
	t.Rows = append(t.Rows, row)
}

// markdown is the tables and claims as text.
func (r *Results) markdown(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", title)
	tables := slices.Clone(r.Tables)
	for _, t := range []struct {
		title  string
		claims Claims
	}{{"Claims of the paper", r.Claims.Paper()}, {"Bars of Sotto", r.Claims.Ours()}} {
		list := Table{Title: fmt.Sprintf("%s: %d of %d hold", t.title, t.claims.Passed(), t.claims.Tested()),
			Head: []string{"claim", "", "from", "it says", "found"}}
		for _, c := range t.claims {
			found := c.Found
			if c.Why != "" {
				found = strings.TrimPrefix(found+". "+c.Why, ". ")
			}
			list.Add(c.Name, c.Verdict(), c.From, c.Says, found)
		}
		if len(list.Rows) > 0 {
			tables = append(tables, list)
		}
	}
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	for _, t := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n", t.Title)
		if t.Note != "" {
			fmt.Fprintf(&b, "%s\n\n", t.Note)
		}
		line(t.Head)
		line(slices.Repeat([]string{"---"}, len(t.Head)))
		for _, row := range t.Rows {
			line(row)
		}
	}
	return b.String()
}

// Verdict is a word or two for the claim.
func (c Claim) Verdict() string {
	switch {
	case c.NotTested:
		return "not tested"
	case c.Holds:
		return "holds"
	}
	return "fails"
}

// Text prints the verdicts, one on a line.
func (c Claims) Text(w io.Writer) {
	for _, claim := range c {
		verdict := claim.Verdict()
		if verdict == "fails" {
			verdict = "FAILS"
		}
		fmt.Fprintf(w, "%-36s  %s  %s\n", claim.Name, verdict, cmp.Or(claim.Found, claim.Why))
	}
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

// Panels are the plots as the page shows them.
func (f Figure) Panels() *chart.Panels { return chart.NewPanels(f.Plots) }

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

var head = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{title}}</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:1240px;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
:root{--edge:#d0d7de;--yes:#116329;--no:#b3261e;--link:#0a58ca}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--edge:#3a424d;--yes:#4ac26b;--no:#ff8a80;--link:#79b0ff}body{color:#e6e9ee;background:#14171c}}
a{color:var(--link)}
p,li{overflow-wrap:anywhere}
p,ul,ol{max-width:80ch}
table{border-collapse:collapse;margin:1rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--edge)}
.yes{color:var(--yes);font-weight:600}.no{color:var(--no);font-weight:600}
.wide{overflow-x:auto}
.plots{display:grid;grid-template-columns:repeat(var(--columns),1fr);gap:1rem;align-items:end}.plots figure{margin:0;break-inside:avoid}.plots svg{width:100%;max-width:540px}
figcaption{font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;max-width:none;padding:0;list-style:none}.legend svg{vertical-align:middle}
@media (max-width:900px){.plots{grid-template-columns:repeat(2,1fr)}}
@media (max-width:600px){.plots{grid-template-columns:1fr}th,td{padding:.3rem .4rem;font-size:.9rem}.long{min-width:12rem}
.claims tr,.claims td{display:block;border:0;padding:.1rem 0}.claims tr{border-bottom:1px solid var(--edge);padding:.6rem 0}.claims tr:first-child{display:none}}
@media print{body{max-width:none;margin:0;font-size:10pt}.wide{overflow:visible}table{font-size:8pt}th,td{padding:.15rem .3rem}tr,h2{break-inside:avoid}h2{break-after:avoid}
.plots{grid-template-columns:repeat(2,1fr)}}
` + chart.Style + chart.Dark + `
</style>
`

// results follows what a page says of its experiment: tables, claims, figures and files.
const results = `{{with .Record}}<p class="record"><strong>Of the paper's claims {{.Claims.Paper.Passed}} hold, {{.Claims.Paper.Failed}} fail{{with .Claims.Paper.Untested}}, and {{.}} are not tested{{end}}.</strong>
Run: {{.Line}}.{{range .Files}} SHA-256 of {{.}}: <code>{{index $.Record.Data .}}</code>.{{end}}</p>
{{end}}{{range .Tables}}<h2>{{.Title}}</h2>
{{if .Note}}<p>{{.Note}}</p>
{{end}}<div class="wide"><table>
<tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td{{if gt (len .) 40}} class="long"{{end}}>{{.}}</td>{{end}}</tr>
{{end}}</table></div>
{{end}}{{define "claims"}}<div class="wide"><table class="claims">
<tr><th>claim</th><th></th><th>it says</th><th>found</th></tr>
{{range .}}<tr id="{{.Name}}"><td>{{.Name}}{{if .From}}<br>{{.From}}{{end}}</td><td><span class="{{if .Holds}}yes{{else if not .NotTested}}no{{end}}">{{.Verdict}}</span></td><td>{{.Says}}</td><td>{{.Found}}{{if and .Found .Why}}<br>{{end}}{{if .Why}}<em>{{.Why}}</em>{{end}}</td></tr>
{{end}}</table></div>
{{end}}{{with .Claims.Paper}}<h2>Claims of the paper: {{.Passed}} of {{.Tested}} hold</h2>
{{template "claims" .}}{{end}}{{with .Claims.Ours}}<h2>Bars of Sotto: {{.Passed}} of {{.Tested}} hold</h2>
{{template "claims" .}}{{end}}{{range .Figures}}<h2>{{.Title}}</h2>
<p>{{.Note}}. <a href="./{{.File}}.svg">{{.File}}.svg</a>{{if .CSV}}, <a href="./{{.File}}.csv">{{.File}}.csv</a>{{end}}</p>
{{with .Panels}}{{.Legend}}<div class="plots" style="--columns:{{.Columns}}">{{range .Plots}}<figure><figcaption>{{.Title}}</figcaption>{{.SVG}}</figure>{{end}}</div>
{{end}}{{end}}<p>{{with .Record}}Numbers of the paper beside ours: {{.Printed}}. {{end}}Tables and claims as text: <a href="./tables.md">tables.md</a>. The run's record: <a href="./record.json">record.json</a>.{{with .Data}} Data:{{range .}} <a href="./{{.Name}}">{{.Name}}</a>{{end}}.{{end}}</p>
</html>
`

// write writes tables, data and drawing of each figure, and then index.html.
func (r *Results) write(dir, title, body string) error {
	files := append(slices.Clone(r.Data), File{"tables.md", r.markdown(title)})
	for _, f := range r.Figures {
		if f.CSV != nil {
			files = append(files, File{f.File + ".csv", f.CSV.String()})
		}
		files = append(files, File{f.File + ".svg", chart.Figure(f.Title, f.Note, f.Plots...)})
	}
	page, err := template.New("").Funcs(template.FuncMap{"title": func() string {
		return title
	}}).Parse(head + body + results)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := page.Execute(&text, r); err != nil {
		return err
	}
	record, err := json.MarshalIndent(r.Record, "", " ")
	if err != nil {
		return err
	}
	for _, f := range append(files, File{"index.html", text.String()}, File{recordFile, string(record) + "\n"}) {
		r.Files = append(r.Files, f.Name)
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o666); err != nil {
			return err
		}
	}
	return nil
}
