// Package paper holds what the reproductions of papers have in common: claims that hold or
// fail, figures with their data, and the page that shows them.
package paper

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
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

// Add adds one; found is written as by Sprintf.
func (c *Claims) Add(name, says string, holds bool, found string, args ...any) {
	*c = append(*c, Claim{name, says, holds, fmt.Sprintf(found, args...)})
}

// Passed counts those that hold.
func (c Claims) Passed() int {
	n := 0
	for _, c := range c {
		if c.Holds {
			n++
		}
	}
	return n
}

// A Figure is a figure of a paper: its data and its plots.
type Figure struct {
	File, Title, Note string // File is a name without ending
	CSV               string // "": its data stands elsewhere
	Plots             []chart.Plot
}

// Page makes the template of a page from the text of its body, with head and style around it. The body
// may use the templates "claims", of Claims, and "figures", of what Write calls Figures.
func Page(title, body string) *template.Template {
	return template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>` + title + `</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:1040px;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #d0d7de}
.yes{color:#116329;font-weight:600}.no{color:#b3261e;font-weight:600}
.plots{display:flex;flex-wrap:wrap;gap:1rem}.plots figure{margin:0;flex:1 1 300px;max-width:480px}
figcaption{font-weight:600}
` + chart.Style + `
</style>
` + body + `</html>
{{define "claims"}}<h2>Claims: {{.Passed}} of {{len .}} hold</h2>
<table>
<tr><th>claim</th><th></th><th>the paper</th><th>found</th></tr>
{{range .}}<tr id="{{.Name}}"><td>{{.Name}}</td><td>{{if .Holds}}<span class="yes">holds</span>{{else}}<span class="no">fails</span>{{end}}</td><td>{{.Says}}</td><td>{{.Found}}</td></tr>
{{end}}</table>
{{end}}{{define "figures"}}{{range .}}<h2>{{.Title}}</h2>
<p>{{.Note}}. <a href="./{{.File}}.svg">{{.File}}.svg</a>{{if .CSV}}, <a href="./{{.File}}.csv">{{.File}}.csv</a>{{end}}</p>
<div class="plots">{{range .Plots}}<figure><figcaption>{{.Title}}</figcaption>{{.SVG}}</figure>{{end}}</div>
{{end}}{{end}}`))
}

// Write writes data and drawing of each figure and then index.html, from fields and, as Figures,
// the figures. It returns the names of the files.
func Write(dir string, figures []Figure, sheet *template.Template, fields map[string]any) (files []string, err error) {
	file := func(name, text string) {
		if err == nil {
			files = append(files, name)
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
	}
	for _, f := range figures {
		if f.CSV != "" {
			file(f.File+".csv", f.CSV)
		}
		file(f.File+".svg", chart.Figure(f.Title, f.Note, f.Plots...))
	}
	fields["Figures"] = figures
	var page strings.Builder
	if err == nil {
		err = sheet.Execute(&page, fields)
	}
	file("index.html", page.String())
	return files, err
}
