package disclosure

import (
	"bytes"
	_ "embed"
	"html/template"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy"
)

//go:embed page.html
var pageText string

var sheet = template.Must(template.New("page").Funcs(template.FuncMap{
	"number":  chart.Full,
	"integer": chart.Integer,
	"upper":   chart.Upper,
	"up":      func(v *float64) string { return chart.Upper(*v) },
	"against": text.Against,
	"capital": func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
	"percent": chart.PercentUp,
}).Parse(pageText))

// shortNames are the names of figures as all pages have them; files of disclosures spell them out.
var shortNames = strings.NewReplacer("area under the ROC curve", "AUC", "root mean squared error", "RMSE",
	"mean absolute error", "MAE")

// Replace says that neighboring tables differ in one record.
func (d *Document) Replace() bool { return d.Facts.Protection.Relation == privacy.ReplaceOne.String() }

// Render makes the page of a document whose file has that text.
func (d *Document) Render(file []byte) ([]byte, error) {
	type stated struct {
		Title, Text string
		Signs       bool // they sign the page
	}
	type column struct {
		Column
		Source string
	}
	type attack struct{ False, True string }
	type quality struct {
		Private bool
		Figures string
	}
	v := struct {
		*Document
		Style   template.CSS
		Plot    template.HTML
		Stated  []stated
		Columns []column
		Attack  *attack
		Quality []quality
		MadeAt  string
		SHA256  string
	}{Document: d, MadeAt: strings.NewReplacer("T", " ", "Z", " UTC").Replace(d.Made.At),
		Style: template.CSS(page.Style()), Plot: d.curve, SHA256: sum(file)}
	for _, s := range d.Statements.Stated.List() {
		if s.Optional && s.Text == "" {
			continue
		}
		v.Stated = append(v.Stated, stated{s.Title, s.Text, s.Name == "operator" || s.Name == "reviewer"})
	}
	source := map[string]string{}
	for _, s := range d.Statements.Sources {
		source[s.Column] = s.Source
	}
	for _, c := range d.Facts.Public.Columns {
		v.Columns = append(v.Columns, column{c, source[c.Name]})
	}
	for _, a := range d.Facts.Guarantee.Attacks {
		if a.FalsePositives == 0.01 {
			v.Attack = &attack{chart.PercentUp(a.FalsePositives), chart.PercentUp(a.TruePositives)}
		}
	}
	inWords := chart.FigureWords()
	for _, f := range d.Facts.Utility {
		text := inWords(shortNames.Replace(f.Name), chart.Short(f.Value), "")
		if n := len(v.Quality); n > 0 && v.Quality[n-1].Private == f.Private {
			v.Quality[n-1].Figures += ", " + text
			continue
		}
		v.Quality = append(v.Quality, quality{f.Private, text})
	}
	var b bytes.Buffer
	err := sheet.Execute(&b, v)
	return chart.Together(b.Bytes()), err
}
