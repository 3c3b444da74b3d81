// Package recordtest finds the figures of a page that are not in the record that the page shows.
package recordtest

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/chart"
)

// Figures are what a page may show: the numbers of a record, and words that hold digits.
type Figures struct {
	numbers []float64
	words   map[string]bool
}

// New takes the JSON of a record.
func New(t testing.TB, record []byte) *Figures {
	t.Helper()
	f := &Figures{words: map[string]bool{}}
	dec := json.NewDecoder(bytes.NewReader(record))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	f.take("", v)
	return f
}

// points are lists that a plot shows as a line, and of which no number stands in a text.
var points = []string{"trade_off", "spending", "steps", "values", "x", "y", "half_band", "epsilon", "delta",
	"by_second", "pixels"}

func (f *Figures) take(key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if slices.Contains(points, key) {
			return
		}
		for k, of := range v {
			f.Words(k)
			f.take(k, of)
		}
	case []any:
		if slices.Contains(points, key) && len(v) > 3 {
			return
		}
		f.numbers = append(f.numbers, float64(len(v))) // "17 runs"
		for _, of := range v {
			f.take(key, of)
		}
	case json.Number:
		if n, err := v.Float64(); err == nil {
			f.numbers = append(f.numbers, n)
		}
		f.words[v.String()] = true
	case string:
		f.Words(v)
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			for _, form := range []string{"2 January 2006, 15:04 UTC", "2 Jan 2006, 15:04", time.DateOnly} {
				f.Words(at.UTC().Format(form))
			}
		}
	}
}

// Words adds those of a text: what people wrote, names, and the fixed words of a page.
func (f *Figures) Words(text string) {
	for _, w := range split(text) {
		f.words[w] = true
	}
}

// Source adds the fixed words of the templates and the program texts in a directory.
func (f *Figures) Source(t testing.TB, dir string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pages {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Words(Plain(action.ReplaceAllString(string(b), " ")))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(pages)+len(files) == 0 {
		t.Fatalf("%s: no sources, %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					f.Words(verb.ReplaceAllString(s, " "))
				}
			}
			return true
		})
	}
}

var (
	action   = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	verb     = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)
	hidden   = regexp.MustCompile(`(?s)<style>.*?</style>|<svg.*?</svg>`)
	describe = regexp.MustCompile(`(?s)<desc>(.*?)</desc>`)
	tag      = regexp.MustCompile(`<[^>]*>`)
)

// Plain is the text of a page, with plain spaces: of plots what describes them, and no axes.
func Plain(page string) string {
	page = hidden.ReplaceAllStringFunc(page, func(s string) string {
		text := " "
		for _, m := range describe.FindAllStringSubmatch(s, -1) {
			text += m[1] + " "
		}
		return text
	})
	return strings.ReplaceAll(html.UnescapeString(tag.ReplaceAllString(page, " ")), "\u00a0", " ")
}

// split are the words of a text that hold a digit, without the marks around them.
func split(text string) (words []string) {
	text = strings.NewReplacer(" × 10", "×10", "\u00a0× 10", "×10").Replace(text)
	between := func(r rune) bool { return strings.ContainsRune(" \t\n\r\u00a0\u202f/=<>|{}()", r) }
	for _, w := range strings.FieldsFunc(text, between) {
		w = strings.Trim(w, `.,;:()[]{}"'“”’‘!?%&#±+−-–…*`+"`")
		if strings.ContainsAny(w, "0123456789") {
			words = append(words, w)
		}
	}
	return words
}

// Unknown are the words of a text that hold a digit, and are neither a number of the record, as a page writes it, nor
// a word that is known.
func (f *Figures) Unknown(text string) (words []string) {
	for _, w := range split(text) {
		if !f.words[w] && !f.number(w) && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// OtherWays are the ε, δ, μ and percentages of a text that are no number of the record as pages write it: in full where
// a person chose it, a bound rounded up, what is left rounded down, a probability by [chart.PercentUp].
func (f *Figures) OtherWays(text string) (wrong []string) {
	ways := map[string]bool{}
	for _, n := range f.numbers {
		for _, way := range []string{chart.Full(n), chart.Upper(n), chart.NumberDown(n, 4), chart.PercentUp(n),
			chart.Percent(n, 0)} {
			ways[way] = true
		}
	}
	for _, m := range said.FindAllStringSubmatch(text, -1) {
		token := strings.TrimRight(m[1]+m[2], ".,")
		if m[2] != "" {
			token = m[2]
		}
		if token != "" && !ways[token] && !f.words[strings.TrimSuffix(token, " %")] && !slices.Contains(wrong, token) {
			wrong = append(wrong, token)
		}
	}
	return wrong
}

// said finds what is said to be ε, δ or μ, and percentages.
var said = regexp.MustCompile(
	`[εδμ] (?:= )?((?:[0-9][0-9.,]*(?:e-?[0-9]+)?(?: × )?)?(?:10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)|([0-9][0-9.,]* %)`)

var superscripts = strings.NewReplacer("⁻", "-", "⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5",
	"⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9")

// number reports whether a word is a number of the record with fewer digits, rounded to either side, or in percent.
func (f *Figures) number(word string) bool {
	word = strings.ReplaceAll(word, ",", "")
	if m, power, ok := strings.Cut(word, "×10"); ok {
		word = m + "e" + superscripts.Replace(power)
	} else if power, ok := strings.CutPrefix(word, "10"); ok && superscripts.Replace(power) != power {
		word = "1e" + superscripts.Replace(power)
	}
	v, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return false
	}
	mantissa, _, _ := strings.Cut(word, "e")
	unit := math.Abs(v) // of its last digit, for a number such as 32,600 that of the last one before zeros
	if digits := strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0"); digits != "" {
		lead := strings.TrimLeft(strings.ReplaceAll(mantissa, ".", ""), "0")
		if strings.Contains(mantissa, ".") {
			digits = lead
		}
		unit = math.Pow(10, math.Floor(math.Log10(math.Abs(v))+1e-12)-float64(len(digits)-1))
	}
	return slices.ContainsFunc(f.numbers, func(n float64) bool {
		n = math.Abs(n)
		return math.Abs(n-v) <= 1.01*unit && near(n, v) || math.Abs(100*n-v) <= 1.01*unit && near(100*n, v)
	})
}

// near keeps a number of one digit from standing for any other.
func near(n, v float64) bool { return math.Abs(n-v) <= 0.1*math.Abs(n) || n == v }
