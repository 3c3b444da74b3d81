package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/text"
)

// Files of an audit's directory.
const (
	PageFile = "audit.html"
	DataFile = "audit.json"
)

// Meaning is what a bound says.
const Meaning = "A bound below the claim proves nothing: the proof is in the accountant. A bound above it would have shown a fault."

// Facts are the result in words, each with its name; one that goes on has none.
func (r *Result) Facts() (facts [][2]string) {
	add := func(name, format string, args ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, args...)})
	}
	found := "does not contradict it"
	if r.Bound > r.Epsilon {
		found = "is above it, as happens by chance in one audit of 20: no alarm"
	}
	if r.Refuted() {
		found = "REFUTES it: there is a fault"
	}
	against := ""
	if r.Owners > 0 {
		against = ", against " + text.Against(r.Colluders)
	}
	add("Claim", "ε = %s at δ = %s, %v, for any %s%s", chart.Full(r.Epsilon), chart.Full(r.Delta), r.Adjacency,
		text.Whom(r.Unit, r.UnitRows), against)
	add("Found", "ε ≥ %.4g with %.4g %% confidence: %.0f %% of the claim, and %s", r.Bound, 100*(1-r.Failure),
		100*r.Bound/r.Epsilon, found)
	switch r.Attack {
	case Crafted:
		assumed := "the kind of noise, not its amount"
		if r.Mu > 0 {
			assumed = "Gaussian noise, of any amount"
		}
		add("", "ε ≥ %.4g for any mechanism; the first figure assumes %s", r.Plain, assumed)
		add("How", "%d runs of %s on a small synthetic table, %d steps, %d canaries in each", r.Runs, r.Method, r.Steps,
			r.Canaries)
		if r.Mu > 0 {
			add("", "μ ≥ %.4g of Gaussian differential privacy; what is charged allows %.4g", r.Mu, r.Charged)
		}
		if r.Scale != nil {
			add("Noise", "%.5g to %.5g times what is charged, with the same confidence", r.Scale[0], r.Scale[1])
		}
		add("Tests", "%d of the noise and the samples; an alarm of any test is false in one audit of %.0f at most",
			len(r.Tests), 1/Level)
		for _, a := range r.Alarms {
			add("ALARM", "%s", a)
		}
	case OneRun:
		add("", "ε ≥ %.4g for any mechanism; the first figure assumes the kind of noise, not its amount", r.Plain)
		add("How", "one run of %s, %d steps, %d canaries; %d guessed, %d right (%.1f %%; by chance half)", r.Method, r.Steps,
			r.Canaries, r.Guesses, r.Right, 100*float64(r.Right)/float64(r.Guesses))
		if r.Noise > 0 {
			add("Noise", "at most %.3g times what is claimed, by the same test", r.Noise)
		}
	default:
		add("How", "%d runs of %s, half of them on a table with one record more or another one", r.Runs, r.Method)
	}
	return facts
}

// Words are the facts for a terminal.
func (r *Result) Words() string {
	var b strings.Builder
	for _, f := range r.Facts() {
		fmt.Fprintf(&b, "%-10s %s\n", f[0], f[1])
	}
	return b.String() + Meaning + "\n"
}

var sheet = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audit of {{.R.Method}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}svg{width:100%;height:auto;max-width:34rem}table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0}td{overflow-wrap:anywhere}{{.Style}}.found{fill:#0a58ca;stroke:none}.claim{fill:none;stroke:#1b1f24}{{.Dark}}@media screen and (prefers-color-scheme:dark){body{color:#e6e9ee;background:#14171c}.found{fill:#79b0ff}.claim{stroke:#e6e9ee}}</style></head>
<body><h1>Audit of {{.R.Method}}</h1>
<p>{{if .R.Refuted}}<strong>The claim is refuted.</strong>{{else}}The claim is not contradicted.{{end}}</p>
{{.R.Bar}}
<table>{{range .R.Facts}}<tr><th scope="row">{{index . 0}}</th><td>{{index . 1}}</td></tr>{{end}}</table>
<p>{{.Meaning}}</p>
{{if .Odds}}<h2>What the run reveals about each canary</h2>
<p>For each of {{.R.Canaries}} synthetic records, half of which took part: how much more likely the released values are if it did. The farther apart the two lines, the more the run reveals.</p>
{{.Odds}}{{end}}
</body></html>
`))

// Write writes the page and the figures of an audit to a directory.
func (r *Result) Write(dir string) error {
	var page bytes.Buffer
	if err := sheet.Execute(&page,
		map[string]any{"R": r, "Style": template.CSS(chart.Style), "Dark": template.CSS(chart.Dark), "Odds": r.odds(),
			"Meaning": Meaning}); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := newfile.JSON(filepath.Join(dir, DataFile), "  ", r); err != nil {
		return err
	}
	return newfile.Replace(filepath.Join(dir, PageFile), 0o600, page.Bytes())
}

// Read reads the files of Write, without the odds of the canaries.
func Read(dir string) (*Result, error) {
	path := filepath.Join(dir, DataFile)
	b, err := readfile.All(path, readfile.JSON)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Method == "" || r.Unit == "" || !(r.Epsilon > 0) {
		return nil, fmt.Errorf("%s: is not the result of an audit", path)
	}
	return r, nil
}

// Bar draws the bound beside the claim. The style is the page's: classes found and claim.
func (r *Result) Bar() template.HTML {
	const left, width = 70, 320
	scale := width / max(r.Epsilon, r.Bound)
	row := func(y int, name, class, figure string, v float64) string {
		return fmt.Sprintf(`<text x="60" y="%d" class="ylab">%s</text><rect x="%d" y="%d" width="%.1f" height="24" class="%s"/><text x="%.1f" y="%d">%s</text>`,
			y+17, name, left, y, scale*v, class, left+scale*v+6, y+17, figure)
	}
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 480 96" role="img" aria-labelledby="bar-t bar-d"><title id="bar-t">Bound beside claim</title><desc id="bar-d">The audit found an ε of at least %.4g; the claim is at most %.4g.</desc>%s%s</svg>`,
		r.Bound, r.Epsilon, row(12, "found", "found", fmt.Sprintf("≥ %.4g", r.Bound), r.Bound),
		row(56, "claim", "claim", fmt.Sprintf("≤ %.4g", r.Epsilon), r.Epsilon)))
}

// bins of the histogram of the odds.
const bins = 40

// odds draws the distribution of the log odds of the canaries that took part, and of the others.
func (r *Result) odds() template.HTML {
	if len(r.Odds) < 2 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(r.Odds))
	lo, hi := sorted[0], sorted[len(sorted)-1]
	if !(hi > lo) {
		return ""
	}
	var counts [2][bins]float64
	var n [2]float64
	for i, v := range r.Odds {
		side := 0
		if !r.In[i] {
			side = 1
		}
		counts[side][min(bins-1, int(bins*(v-lo)/(hi-lo)))]++
		n[side]++
	}
	p := chart.Plot{ID: "odds", Title: "Log odds of the canaries",
		Desc:   "Two lines: the canaries that took part, more of them to the right, and those that did not",
		XLabel: "log odds", YLabel: "% of them", Lines: []chart.Line{{Name: "took part"}, {Name: "did not"}}}
	for side := range counts {
		for k, c := range counts[side] {
			l := &p.Lines[side]
			l.X, l.Y = append(l.X, lo+(float64(k)+0.5)*(hi-lo)/bins), append(l.Y, 100*c/max(1, n[side]))
		}
	}
	return p.SVG()
}
