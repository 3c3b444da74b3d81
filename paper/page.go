package paper

import (
	"cmp"
	_ "embed"
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

// NoSeed says of a table or a figure that no random number is in it.
const NoSeed = "none, computed without random numbers"

// A Table is a table of results. Where the paper prints a figure, a column has it beside Sotto's.
type Table struct {
	ID, Title, Note string
	Seeds           string // if others than the experiment's
	Settings        bool   // the numbers of the paper are settings, not results
	Head            []string
	Rows            [][]string
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
func (v *view) markdown() string {
	var b strings.Builder
	r := v.Results
	fmt.Fprintf(&b, "# %s\n", v.title())
	tables := slices.Clone(r.Tables)
	for _, t := range []struct {
		title  string
		claims Claims
	}{{"Claims of the paper", r.Claims.Paper()}, {"Bars of Sotto", r.Claims.Ours()}} {
		list := Table{Title: t.title + ": the full run's verdicts, and what this size finds",
			Head: []string{"claim", "full run", "this size", "from", "it says", "found at this size"}}
		if v.full() {
			list = Table{Title: fmt.Sprintf("%s: %d of %d hold", t.title, t.claims.Passed(), t.claims.Tested()),
				Head: []string{"claim", "", "from", "it says", "found"}}
		}
		for _, c := range t.claims {
			found := c.Found
			if c.Why != "" {
				found = strings.TrimPrefix(found+". "+c.Why, ". ")
			}
			cells := []any{c.Name, v.recorded(c.Name), c.Verdict(), c.From, c.Says, found}
			if v.full() {
				cells = slices.Delete(cells, 1, 2)
			}
			list.Add(cells...)
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
		if r.Record != nil {
			fmt.Fprintf(&b, "Seeds: %s. Run: %s.\n\n", v.seeds(t.Seeds), r.Record.Name())
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

// Text prints the verdicts, one on a line; those of a small size say so.
func (c Claims) Text(w io.Writer, full bool) {
	for _, claim := range c {
		verdict := claim.Verdict()
		switch {
		case !full && !claim.NotTested:
			verdict += " at this size"
		case verdict == "fails":
			verdict = "FAILS"
		}
		fmt.Fprintf(w, "%-36s  %s  %s\n", claim.Name, verdict, cmp.Or(claim.Found, claim.Why))
	}
}

// A Figure is a figure of a paper: its data and its plots.
type Figure struct {
	File, Title, Note string // File is a name without extension
	Seeds             string // if others than the experiment's
	CSV               *CSV   // nil: the points of its plots
	Plots             []chart.Plot
}

// Short is the title up to a colon.
func (f Figure) Short() string {
	short, _, _ := strings.Cut(f.Title, ":")
	return short
}

// data is the text of the figure's CSV file.
func (f Figure) data() string {
	if f.CSV != nil {
		return f.CSV.String()
	}
	csv := NewCSV("plot,line,x,y,sd")
	for _, p := range f.Plots {
		for _, l := range p.Lines {
			for k := range l.X {
				x, sd := any(l.X[k]), any("")
				if p.Categories != nil {
					x = quote(p.Categories[int(l.X[k])])
				}
				if l.SD != nil {
					sd = l.SD[k]
				}
				csv.Add(quote(p.Title), quote(l.Name), x, l.Y[k], sd)
			}
		}
		if p.Level != nil {
			csv.Add(quote(p.Title), quote(p.LevelName), "", *p.Level, "")
		}
	}
	return csv.String()
}

// quote is a text as a field of a CSV file.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

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

//go:embed page.html
var pages string

// A view is what the template of a page gets.
type view struct {
	*Results
	E       Experiment
	Full    *Record // of the full run that is kept with the program; nil: none
	Command string  // makes the page
}

func (v *view) title() string { return strings.ToUpper(v.E.Name) + ", reproduced" }

// full reports whether the results decide claims.
func (v *view) full() bool { return v.Record == nil || v.Record.Full }

func (v *view) seeds(own string) string { return cmp.Or(own, v.E.Seeds) }

// recorded is the full run's verdict on a claim.
func (v *view) recorded(name string) string {
	if v.Full != nil {
		for _, c := range v.Full.Claims {
			if c.Name == name {
				return c.Verdict()
			}
		}
	}
	return "not in its record"
}

// Others are the claims of the paper that the full run has, and a small one does not.
func (v *view) Others() Claims {
	if v.Full == nil || v.full() {
		return nil
	}
	return v.Full.Claims.Paper().of(func(c Claim) bool {
		return !slices.ContainsFunc(v.Claims, func(own Claim) bool { return own.Name == c.Name })
	})
}

// parse parses the templates of a page.
func parse(title, text string, more template.FuncMap) (*template.Template, error) {
	funcs := template.FuncMap{"title": func() string { return title },
		"style": func() template.CSS { return template.CSS(chart.Style + chart.Dark) }, "upper": strings.ToUpper,
		"repository": func() string { return Repository },
		"full":       func() bool { return true }, "run": func() string { return "" },
		"seeds":    func(s string) string { return s },
		"recorded": func(s string) string { return s }}
	for name, f := range more {
		funcs[name] = f
	}
	return template.New("").Funcs(funcs).Parse(pages + text)
}

// write writes tables, data and drawing of each figure, and then index.html.
func (v *view) write(dir string) error {
	bib := v.E.Of.BibTeX()
	if v.Record != nil {
		bib += "\n" + v.Record.ReproductionBibTeX(v.E.Of)
	}
	files := append(slices.Clone(v.Data), File{"tables.md", v.markdown()}, File{"cite.bib", bib})
	for _, f := range v.Figures {
		files = append(files, File{f.File + ".csv", f.data()},
			File{f.File + ".svg", chart.Figure(f.Title, f.Note, f.Plots...)})
	}
	page, err := parse(v.title(), `{{template "top" .}}`+v.E.Page+`{{template "results" .}}`,
		template.FuncMap{"full": v.full, "seeds": v.seeds, "recorded": v.recorded, "run": v.Record.Name})
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := page.Execute(&text, v); err != nil {
		return err
	}
	record, err := json.MarshalIndent(v.Record, "", " ")
	if err != nil {
		return err
	}
	for _, f := range append(files, File{"index.html", text.String()}, File{recordFile, string(record) + "\n"}) {
		v.Files = append(v.Files, f.Name)
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// A Made is a paper on the page of all papers.
type Made struct {
	E      Experiment
	Record *Record // of the run beside the page; nil: not made yet
}

// Verdicts are of the record whose verdicts count: of the run itself where it is full.
func (m Made) Verdicts() *Record {
	if m.Record != nil && m.Record.Full {
		return m.Record
	}
	return m.E.Recorded()
}

// Index writes the page of all papers, index.html, and papers.bib.
func Index(dir, command string, full bool, made []Made) error {
	page, err := parse("Papers, reproduced", `{{template "index" .}}`, nil)
	if err != nil {
		return err
	}
	var text, bib strings.Builder
	if err := page.Execute(&text, map[string]any{"Command": command, "Full": full, "Made": made}); err != nil {
		return err
	}
	for _, m := range made {
		bib.WriteString(m.E.Of.BibTeX() + "\n")
		if m.Record != nil {
			bib.WriteString(m.Record.ReproductionBibTeX(m.E.Of) + "\n")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "papers.bib"), []byte(bib.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "index.html"), []byte(text.String()), 0o666)
}
