package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pairColumns = `
  - {name: ward, type: categorical, levels: [a, b]}
  - {name: age, type: numeric, min: 0, max: 100, hats: 3}
  - {name: hours, type: numeric, min: 0, max: 80, missing: zero}
  - {name: gain, type: numeric, min: 0, max: 1000, transform: log1p}
  - {name: born, type: date, min: 1950-01-01, max: 2020-01-01}
  - {name: notes, type: ignore}
  - {name: sick, type: label, classes: ["no", "yes"]}
`

// paired is a schema file with pairs.
func paired(pairs string) string {
	return "dataset: d\nrows: 100\npairs: " + pairs + "\ncolumns:" + pairColumns
}

// TestPairs: pairs have 25 features each behind those of all columns, go into files and what a model depends on, and leave a
// schema without pairs as it is.
func TestPairs(t *testing.T) {
	plain := mustParse(t, strings.Replace(paired(""), "pairs: \n", "", 1))
	none := mustParse(t, paired("none"))
	s := mustParse(t, paired("[[hours, age], [gain, hours]]"))
	if none.Paired == plain.Paired {
		t.Error("a schema that says none is one that says nothing")
	}
	none.Paired = false
	if d := cmp.Diff(plain, none); d != "" {
		t.Error(d)
	}
	want := []Pair{{"hours", "age"}, {"gain", "hours"}}
	names := s.FeatureNames()
	if !slices.Equal(s.Pairs, want) || s.Dim() != plain.Dim()+50 || len(names) != s.Dim() {
		t.Fatalf("%v, %d features, %d names", s.Pairs, s.Dim(), len(names))
	}
	first := plain.Dim() - 1 // before the intercept
	for at, name := range map[int]string{first - 1: "born", first: "hours × age at 1 1", first + 7: "hours × age at 2 3", first + 24: "hours × age at 5 5",
		first + 25: "gain × hours at 1 1", first + 50: "(intercept)"} {
		if names[at] != name {
			t.Errorf("feature %d is %q, not %q", at, names[at], name)
		}
	}
	for at, p := range s.PairPlaces() {
		if p != want[(at-first)/25] || (at-first)%25 != 0 {
			t.Errorf("%v from feature %d on", p, at)
		}
	}
	if said := strings.Join(s.Assumptions(), "\n"); !strings.Contains(said, `The columns "hours" and "age" are also encoded together, as the 25 products of 5 bumps of each at equal distances.`) {
		t.Error(said)
	}
	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := FromJSON(b)
	if err != nil || cmp.Diff(s.WithHats(0), back) != "" || back.Fingerprint() != s.Fingerprint() {
		t.Errorf("JSON: %v, %s", err, cmp.Diff(s.WithHats(0), back))
	}
	if old, err := plain.Marshal(); err != nil || strings.Contains(string(old), "pairs") {
		t.Errorf("%s, %v", old, err)
	}
	other := mustParse(t, paired("[[age, hours], [gain, hours]]"))
	if s.Fingerprint() == plain.Fingerprint() || s.Fingerprint() == other.Fingerprint() || plain.Fingerprint() != none.Fingerprint() {
		t.Error("a model does not depend on its pairs")
	}
	if with := plain.WithPairs(want...); with.Check() != nil || with.Fingerprint() != s.Fingerprint() || plain.Pairs != nil || cmp.Diff(s, with) != "" {
		t.Errorf("%v", with.Pairs)
	}
}

// TestPairsOfFewer: a schema with fewer columns keeps the pairs whose columns it has, and Dims says how many features it has then.
func TestPairsOfFewer(t *testing.T) {
	s := mustParse(t, paired("[[hours, age], [gain, hours], [age, gain]]"))
	for n, pairs := range []int{0, 0, 0, 1, 3, 3} {
		first := s.First(n)
		if len(first.Pairs) != pairs || n > 0 && (first.Check() != nil || first.Dim() != s.Dims()[n-1]) {
			t.Errorf("%d columns have %d pairs, %d features of %v", n, len(first.Pairs), first.Dim(), s.Dims())
		}
	}
	for label, pairs := range map[string]int{"ward": 3, "hours": 1, "gain": 1} {
		if with, err := s.WithLabel(label); err != nil || len(with.Pairs) != pairs || with.Dim() != len(with.FeatureNames()) {
			t.Errorf("label %s: %v, %v", label, with.Pairs, err)
		}
	}
}

// TestPairSizes: what a pair adds to a row is from nothing, where it can be 0, to 1.
func TestPairSizes(t *testing.T) {
	for text, want := range map[string]float64{paired("[[age, gain]]"): 0.25, "norm: l1\n" + paired("[[age, gain]]"): 1, paired("[[age, hours]]"): 0, paired("[[hours, gain]]"): 0} {
		s := mustParse(t, text)
		if least, most := s.pairSizes(s.Pairs[0]); least != want || most != 1 {
			t.Errorf("%s: from %v to %v", text, least, most)
		}
	}
}

// TestPairErrors: what is no pair is an error where it stands, in a schema file and in JSON.
func TestPairErrors(t *testing.T) {
	for pairs, want := range map[string]string{
		"auto":                                `3:8: pairs: found "auto"; write none, or a list of pairs of numeric columns, as in [[age, hours], [age, income]]`,
		"{age: hours}":                        "3:8: pairs: found a block; expected none, or a list",
		"7":                                   "3:8: pairs: found 7; write none, or a list",
		"[age, hours]":                        `3:9: pairs[0]: found "age"; write the names of two columns, as in [age, hours]`,
		"[[age]]":                             "3:9: pairs[0]: found a list; expected the names of two columns",
		"[[age, hours, gain]]":                "3:9: pairs[0]: found a list; expected the names of two columns",
		"[[age, hours], []]":                  "3:23: pairs[1]: found a list; expected the names of two columns",
		"[[age, [hours]]]":                    "3:9: pairs[0]: found a list; expected the names of two columns",
		"[{age: hours}]":                      "3:9: pairs[0]: found a block; expected the names of two columns",
		"[[age, hour]]":                       `3:15: pairs[0][1]: the schema has no column "hour"; choose one of its numeric columns`,
		"[[ward, age]]":                       `3:10: pairs[0][0]: the column "ward" is of type categorical; choose a numeric column`,
		"[[age, born]]":                       `3:15: pairs[0][1]: the column "born" is of type date; choose a numeric column`,
		"[[age, notes]]":                      `3:15: pairs[0][1]: the column "notes" is of type ignore; choose a numeric column`,
		"[[age, sick]]":                       `3:15: pairs[0][1]: the column "sick" is of type label; choose a numeric column`,
		"[[age, age]]":                        `3:9: pairs[0]: the column "age" is paired with itself; choose two columns`,
		"[[age, hours], [hours, age]]":        `3:23: pairs[1]: the columns "hours" and "age" are paired twice; list each pair once`,
		"[[age, hours], [age, hours]]":        `3:23: pairs[1]: the columns "age" and "hours" are paired twice; list each pair once`,
		"[[age, hours]]\nformat: {kind: idx}": "pairs: tables of kind idx have no columns to pair; leave pairs out",
		"[[y, z]]\nformat: {kind: libsvm}":    "pairs: tables of kind libsvm have no columns to pair; leave pairs out",
		"[[a, b], [a, c], [a, d], [b, c], [b, d]]": "3:41: pairs[4]: there are 5 pairs; keep at most 4",
	} {
		text := paired(pairs)
		switch {
		case strings.Contains(pairs, "idx"):
			text = strings.Replace(pictures, "columns:", "pairs: [[y, z]]\ncolumns:", 1)
		case strings.Contains(pairs, "libsvm"):
			text = strings.Replace(svm, "columns:", "pairs: [[y, z]]\ncolumns:", 1)
		case strings.Contains(pairs, "[a, b]"):
			text = "dataset: d\nrows: 9\npairs: " + pairs + "\ncolumns:\n  - {name: y, type: label, min: 0, max: 1}\n"
			for _, c := range "abcd" {
				text += fmt.Sprintf("  - {name: %c, type: numeric, min: 0, max: 1}\n", c)
			}
		}
		if _, err := Parse("s", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", pairs, err, want)
		}
	}
	b, err := mustParse(t, paired("[[age, hours]]")).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		`"pairs":[{"a":"age","b":"ward"}]`:             `schema (JSON): pairs[0][1]: the column "ward" is of type categorical`,
		`"pairs":[{"a":"age"}]`:                        `pairs[0][1]: the schema has no column ""`,
		`"pairs":[{"a":"age","b":"hours","c":"ward"}]`: "text that is not a schema",
	} {
		text := strings.Replace(string(b), `"pairs":[{"a":"age","b":"hours"}]`, from, 1)
		if _, err := FromJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", from, err)
		}
	}
}
