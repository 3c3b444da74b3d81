package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/config"
)

func TestNames(t *testing.T) {
	for _, names := range [][]string{nil, {"a1"}, {"a1", "a3"}, {"a1", "b", "a3"}, {"a", "b"}, {"a2", "a1"}} {
		if text, ok := RangeOf(names); ok {
			t.Errorf("%q are the range %q", names, text)
		}
	}
	for text, want := range map[string]string{
		"gene_1..gene_3":               "gene_1 gene_2 gene_3",
		"x08..x11":                     "x08 x09 x10 x11",
		"a0..a2":                       "a0 a1 a2",
		"8..10":                        "8 9 10",
		"v2_1_mm..v2_2_mm":             "v2_1_mm v2_2_mm",
		"v1_7..v3_7":                   "v1_7 v2_7 v3_7",
		"p-1..p-2":                     "p-1 p-2",
		"x01..x010":                    "!of different lengths",
		"x1..x1":                       "!do not differ in exactly one number",
		"x2..x1":                       "!not below the last",
		"x1..y2":                       "!do not differ in exactly one number",
		"x1_1..x2_2":                   "!do not differ in exactly one number",
		"x..x3":                        "!do not differ in exactly one number",
		"x1":                           "!without a range",
		"x1..x2..x3":                   "!without a range",
		"":                             "!without a range",
		"x1..x100001":                  "!more than 100000 names",
		"x1..x9999999999999":           "!more than 100000 names",
		"x1..x99999999999999999999999": "!more than 100000 names",
	} {
		names, fault := namesOf(text)
		if why, bad := strings.CutPrefix(want, "!"); bad != (fault != "") || bad && !strings.Contains(fault, why) || !bad && strings.Join(names, " ") != want {
			t.Errorf("%q gives %.80q, %q; want %s", text, names, fault, want)
		}
		if again, ok := RangeOf(names); ok && again != text || !ok && fault == "" {
			t.Errorf("the names of %q are the range %q, %t", text, again, ok)
		}
	}
}

const wide = `dataset: genes
rows: 100
columns:
  - {name: y, type: label, classes: [a, b]}
  - {names: g1..g3, type: numeric, min: 0, max: 16}
  - {names: skip_01..skip_02, type: ignore}
  - {name: age, type: numeric, min: 0, max: 120}
`

// TestRanges: a range is the schema that has an entry for each of its columns, to the byte, and an error stands where the range does.
func TestRanges(t *testing.T) {
	s, err := Parse("s", []byte(wide))
	if err != nil {
		t.Fatal(err)
	}
	long := wide
	for text, line := range map[string]string{"g1..g3": "  - {name: g%d, type: numeric, min: 0, max: 16}\n", "skip_01..skip_02": "  - {name: skip_0%d, type: ignore}\n"} {
		var each string
		for i := range map[string]int{"g1..g3": 3, "skip_01..skip_02": 2}[text] {
			each += fmt.Sprintf(line, i+1)
		}
		at := strings.Index(long, "  - {names: "+text)
		end := at + strings.Index(long[at:], "\n") + 1
		long = long[:at] + each + long[end:]
	}
	same, err := Parse("s", []byte(long))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := s.Marshal()
	b, _ := same.Marshal()
	if string(a) != string(b) || s.Fingerprint() != same.Fingerprint() || s.Dim() != 5 || s.Free() != same.Free() {
		t.Errorf("a range:\n%s\nan entry for each:\n%s", a, b)
	}
	for _, c := range []struct{ from, to, want string }{
		{"g1..g3", "g1", `s:5:13: columns[1].names: found a name without a range; expected the first and the last name`},
		{"names: g1..g3", "names: g1..g3, name: x", `s:5:13: columns[1].names: found names beside name`},
		{"max: 16", "max: -1", `s:5:49: columns[1].max: found -1; write a number above min`},
		{"name: age", "name: g2", `s:7:12: columns[3].name: found "g2" a second time`},
		{"skip_01..skip_02", "g2..g4", `s:6:13: columns[2].names: found "g2" a second time`},
		{"name: y,", "names: y1..y2,", `s:4:6: unknown field "names"; the fields of columns[0] are name, type, classes`},
		{"min: 0, max: 16", "bounds: unknown", `s:5:44: columns[1].bounds: found unknown`},
		{"columns:", "other_columns: {type: numeric, min: 0, max: 16}\ncolumns:", `s:3:16: other_columns: found a block; expected ignore; list similar columns under columns`},
		{"columns:", "other_columns: [ignore]\ncolumns:", `s:3:16: other_columns: found a list`},
	} {
		_, err := Parse("s", []byte(strings.Replace(wide, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.to, err, c.want)
		}
	}
	if _, err := ParseOpen("s", []byte(strings.Replace(wide, "min: 0, max: 16", "bounds: unknown", 1))); err == nil || !strings.Contains(err.Error(), "found unknown for a range of names") {
		t.Error(err)
	}
	if !slices.ContainsFunc(Fields(), func(b config.Block) bool {
		return strings.Contains(b.Title, TypeNumeric) && slices.ContainsFunc(b.Fields, func(f config.Field) bool { return f.Name == "names" })
	}) {
		t.Error("the reference has no names")
	}
}
