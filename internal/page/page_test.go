package page

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type inner struct{ Deep string }

type thing struct {
	*inner
	Word    string
	N       int
	Figure  float64
	None    *float64
	Some    *float64
	List    []string
	Rows    []thing
	Budget  stringer
	Picture template.HTML
	Any     any
	Map     map[string]any
}

type stringer struct{ v string }

func (s stringer) String() string { return "<" + s.v + ">" }

var funcs = Funcs{
	"twice": func(s string) string { return s + s },
	"half":  func(v float64) string { return fmt.Sprint(v / 2) },
	"line":  func(a, b string) template.HTML { return template.HTML("<hr>" + template.HTMLEscapeString(a+b)) },
	"nine":  func() int { return 9 },
}

// pages use all of the language.
var pages = []string{
	`<p>{{.Word}}, {{.N}} {{.Figure}}, {{.Deep}}{{.Budget}}</p>`,
	`<!DOCTYPE html><html lang="en"><title>{{.Word}}</title><style>p{color:red}</style><script src="/a.js" defer></script><p class="a{{if .N}} b{{else}} c{{end}}" id="d-{{.Word}}" data-run="{{.Word}}" aria-label="{{.Word}}">`,
	`<input type="search" name="q" value="{{.Word}}" /><option{{if eq .Word "a"}} selected{{end}}>{{.Word}}</option>`,
	`{{range .List}}<li>{{.}}</li>{{else}}none{{end}}{{range $i, $w := .List}}{{if $i}}, {{end}}{{$w}}{{$.Word}}{{end}}{{range $w := .List}}{{$w}}{{end}}`,
	`{{range 3}}<b>{{.}}</b>{{end}}{{range nine}}x{{end}}`,
	`{{with .Some}}{{half .}}{{end}}{{with .None}}{{half .}}{{else}}nothing{{end}}{{with $x := .Word}}{{$x}}{{end}}`,
	`{{$now := .Word}}{{range .List}}{{if eq . $now}}same{{else if ne . "b"}}other{{end}}{{end}}{{$now}}`,
	`{{if and .Word .List (gt .N 0)}}all{{end}}{{if or .None .Word}}some{{end}}{{if not .List}}none{{end}}{{len .List}}{{if and .List (index .List 0)}}{{index .List 0}}{{end}}`,
	`{{printf "%s of %d, %.2f" .Word .N .Figure}}{{.Word | twice}}{{twice (printf "%q" .Word)}}{{line .Word "<"}}{{.Picture}}{{half .Figure | line .Word}}`,
	`{{define "row"}}<tr><td>{{.Word}}</td></tr>{{range .Rows}}{{template "row" .}}{{end}}{{end}}<table>{{template "row" .}}</table>`,
	`{{.Any}}{{.Map.Word}}{{with .Map}}{{.Deep.Deep}}{{end}}{{true}}{{7}}{{"<"}}{{(.Map).Word}}`,
	`<p>{{.Word}}{{- /* a remark */ -}} </p>`,
}

func things() *rapid.Generator[thing] {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "b", `"><script>alert('x')</script>`, "javascript:x", "a+b&amp;\x00", "//x/../?y=z#", "é ε"}))
	return rapid.Custom(func(t *rapid.T) thing {
		made := func() thing {
			v := rapid.Float64Range(-9, 9).Draw(t, "figure")
			w := word.Draw(t, "word")
			return thing{inner: &inner{word.Draw(t, "deep")}, Word: w, N: rapid.IntRange(0, 3).Draw(t, "n"), Figure: v, Some: &v, List: rapid.SliceOfN(word, 0, 3).Draw(t, "list"),
				Budget: stringer{w}, Picture: "<svg/>", Any: w, Map: map[string]any{"Word": w, "Deep": inner{w}}}
		}
		top := made()
		for range rapid.IntRange(0, 2).Draw(t, "rows") {
			top.Rows = append(top.Rows, made())
		}
		return top
	})
}

// Pages have the bytes that html/template gives them, which finds out for itself where a
// value stands and what is to be escaped there.
func TestAsStandard(t *testing.T) {
	for _, text := range pages {
		own, err := Parse(funcs, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		standard := template.Must(template.New("").Funcs(template.FuncMap(funcs)).Parse(text))
		rapid.Check(t, func(t *rapid.T) {
			data := things().Draw(t, "data")
			var want bytes.Buffer
			if err := standard.Execute(&want, data); err != nil {
				t.Fatal(err)
			}
			got, err := own.Fill("", data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.String(), string(got)); diff != "" {
				t.Fatalf("%s\n%s", text, diff)
			}
		})
	}
}

// A part of an address stays one, whatever is in it.
func TestPart(t *testing.T) {
	p := Must(Parse(nil, `<a href="/runs/{{.}}/report">`))
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.String().Draw(t, "word")
		got, err := p.Fill("", word)
		if err != nil {
			t.Fatal(err)
		}
		part, _ := strings.CutPrefix(string(got), `<a href="/runs/`)
		part, ok := strings.CutSuffix(part, `/report">`)
		if back, err := url.PathUnescape(part); !ok || err != nil || back != word || strings.ContainsAny(part, "/?#\"&<>'+") {
			t.Fatalf("%q became %q", word, got)
		}
	})
}

// What has no safe place, or no place at all, is found when a page is read.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`<p {{.Word}}>`:                                  "stands in a tag or a script",
		`<p class={{.Word}}>`:                            "stands in a tag or a script",
		`<{{.Word}}>`:                                    "a tag has no name",
		`<p class='{{.Word}}'>`:                          "single quotes",
		`<p onclick="{{.Word}}">`:                        "attribute onclick",
		`<p style="{{.Word}}">`:                          "attribute style",
		`<p srcdoc="{{.Word}}">`:                         "attribute srcdoc",
		`<p on{{if .N}}{{end}}click="{{.Word}}">`:        "a name is cut in two",
		`<p {{if .N}}on{{end}}class="{{.Word}}">`:        "a name is cut in two",
		`<script>{{.Word}}</script>`:                     "stands in a tag or a script",
		`<a href="java{{.Word}}">`:                       "may become any",
		`<!-- {{.Word}} -->`:                             "a comment",
		`<p class="a`:                                    "ends inside a tag",
		`<p{{if .N}} class="{{end}}">`:                   "branches end at different places",
		`{{range .List}}<p class="{{end}}`:               "branches end at different places",
		`{{template "row"}}`:                             "no such template",
		`{{define "row"}}x{{end}}<p {{template "row"}}>`: "stands in a tag",
		`{{range .List}}{{break}}{{end}}`:                "not part of the language",
		`{{define "a"}}x{{end}}{{define "b"}}`:           "unexpected EOF",
		`{{unknown .Word}}`:                              `function "unknown" not defined`,
	} {
		if _, err := Parse(funcs, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Parse(nil, `{{define "a"}}x{{end}}`, `{{define "a"}}y{{end}}`); err == nil {
		t.Error("two templates have one name")
	}
	if _, err := Read(fstest.MapFS{"a.html": {Data: []byte(`{{define "a"}}x{{end}}`)}}, nil, "a.html", "b.html"); err == nil {
		t.Error("a file that is not there was read")
	}
}

// What only the data can show is an error of the filling, and nothing is filled.
func TestFillErrors(t *testing.T) {
	for text, want := range map[string]string{
		`x{{.Absent}}`:                "no field Absent",
		`x{{.Budget.String}}`:         "no field String", // a method
		`x{{.Map.Absent}}`:            "no field Absent",
		`x{{with .Any}}{{.X}}{{end}}`: "no field X",
		`x{{half .Word}}`:             "argument 1 of half",
		`x{{half .None}}`:             "argument 1 of half",
		`x{{twice .Word .Word}}`:      "twice takes 1 arguments",
		`x{{eq .Word 1}}`:             "cannot be compared",
		`x{{eq .Word}}`:               "eq takes 2",
		`x{{range .Map}}{{end}}`:      "cannot be gone through",
		`x{{.Word .N}}`:               "only a function takes arguments",
		`x<a href="{{.Word}}">`:       "not one of this site",
		`x<style>{{.Word}}</style>`:   "a style sheet",
	} {
		p, err := Parse(funcs, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		b, err := p.Fill("", thing{Word: "javascript:alert(1)", Any: inner{}, Map: map[string]any{}})
		if err == nil || !strings.Contains(err.Error(), want) || b != nil {
			t.Errorf("%s: %q, %v, want %q", text, b, err, want)
		}
	}
	if _, err := Must(Parse(nil, "x")).Fill("row", nil); err == nil {
		t.Error("a template that is not there was filled")
	}
}

// A whole address is one of this site, and what is trusted goes where its type says.
func TestTrusted(t *testing.T) {
	p := Must(Parse(nil, `<style>{{.Style}}</style><a href="{{.To}}" title="{{.Picture}}">{{.Picture}}{{.Style}}</a>`))
	got, err := p.Fill("", map[string]any{"Style": template.CSS("a>b{}"), "To": "/?page=2&q=a%20b", "Picture": template.HTML("<svg/>")})
	want := `<style>a>b{}</style><a href="/?page=2&amp;q=a%20b" title="&lt;svg/&gt;"><svg/>a&gt;b{}</a>`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for _, to := range []string{"//elsewhere", `/\elsewhere`, "https://elsewhere", "javascript:x", ""} {
		if _, err := p.Fill("", map[string]any{"Style": template.CSS(""), "To": to, "Picture": ""}); err == nil {
			t.Errorf("%s is no address of this site", to)
		}
	}
}
