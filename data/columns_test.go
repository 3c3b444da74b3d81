package data

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/schema"
	"github.com/sottodp/sotto/schema/schematest"
)

// encoded encodes the cells of a row, without the row rule.
func encoded(e *encoder, cells []string) ([]float64, Fault) {
	e.begin()
	place := make([]int, len(e.cols))
	for i := range place {
		place[i] = i
	}
	f := e.cells(cells, nil, nil, place)
	x := make([]float64, e.dim)
	for i, j := range e.col {
		x[j] = e.val[i]
	}
	return x, f
}

// near says whether numbers differ by rounding alone.
func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
}

func TestColumnTypes(t *testing.T) {
	half := math.Sqrt(0.5)
	for _, c := range []struct {
		column string
		cells  map[string][]float64 // nil: a bad row
	}{
		{"type: ordinal, levels: [low, middle, high], unknown: middle, missing: zero", map[string][]float64{"low": {-1}, "middle": {0}, "high": {1}, "": {0}, "other": {0}}},
		{"type: ordinal, levels: [low, high], missing: high", map[string][]float64{"low": {-1}, "": {1}, "other": nil}},
		{"type: boolean", map[string][]float64{"TRUE": {1}, "t": {1}, "Yes": {1}, "y": {1}, "1": {1}, "False": {-1}, "F": {-1}, "no": {-1}, "N": {-1}, "0": {-1}, "2": nil, "": nil, "on": nil, "truetrue": nil}},
		{"type: boolean, missing: zero", map[string][]float64{"": {0}, "true": {1}}},
		{"type: boolean, missing: No", map[string][]float64{"": {-1}}},
		{"type: date, min: 2020-01-01, max: 2020-01-11, missing: 2020-01-11", map[string][]float64{
			"2020-01-01": {-1}, "2020-01-06": {0}, "2020-01-08T12:00": {0.5}, "2020-01-08 12:00:00": {0.5}, "2020-01-08T12:00:00.000Z": {0.5}, "2020-01-08T14:00+02:00": {0.5},
			"2020-01-08 09:30:00-0230": {0.5}, "2020-01-08 12:00:00+00": {0.5}, "1999-12-31": {-1}, "0000-01-01": {-1}, "9999-12-31T23:59:59.999999999": {1}, "": {1},
			"2020-02-30": nil, "2020-13-01": nil, "2020-1-1": nil, "20200101": nil, "10000-01-01": nil, "-001-01-01": nil, "2020-01-01T24:00": nil, "2020-01-01T12": nil, "2020-01-01T12:00+": nil,
			"2020-01-01T12:00:00.": nil, "2020-01-01T12:00Z ": nil, "NaN": nil, "43831": nil,
		}},
		{`type: date, layout: "%d.%m.%Y %H:%M", min: 2020-01-01, max: 2020-01-11`, map[string][]float64{"6.1.2020 0:00": {0}, "08.01.2020 12:00": {0.5}, "2020-01-06": nil, "32.01.2020 00:00": nil}},
		{`type: date, layout: "%m/%d/%y %I:%M %p", min: 2020-01-01, max: 2020-01-11`, map[string][]float64{"01/08/20 12:00 PM": {0.5}, "1/11/20 12:00 AM": {1}, "1/11/70 1:00 AM": {-1}}},
		{"type: date, min: 2024-01-01, max: 2024-01-15, cycles: [week, day], missing: zero", map[string][]float64{
			"2024-01-01":       {-1, 0, 1, 0, 1}, // a Monday at midnight
			"2024-01-08T06:00": {2*7.25/14 - 1, math.Sin(2 * math.Pi * .25 / 7), math.Cos(2 * math.Pi * .25 / 7), 1, 0},
			"2024-02-01":       {1, 0, 1, 0, 1}, // clamped to a Monday
			"":                 {0, 0, 0, 0, 0},
		}},
		{"type: date, origin: 2000-01-01, min: 1999-01-01, max: 2001-01-01, cycles: [year]", map[string][]float64{"2000-01-01": {2*365./731 - 1, 0, 1}}},
		{"type: text, dimension: 4", map[string][]float64{"": nil, "...": {0, 0, 0, 0}}},
		{"type: text, dimension: 2, missing: zero", map[string][]float64{"": {0, 0}, "a b c d e f": {half, half}}},
	} {
		s := mustParse(t, "dataset: d\nintercept: false\ncolumns:\n  - {name: c, "+c.column+"}\n  - {name: y, type: label, min: 0, max: 1}\n")
		e := newEncoder(s)
		for cell, want := range c.cells {
			got, f := encoded(e, []string{cell, "0"})
			if (f.Found != "") != (want == nil) || want != nil && !near(got, want) {
				t.Errorf("%s: %q is %v (%s), want %v", c.column, cell, got, f.Found, want)
			}
			if cell != "" && len(cell) > 3 && strings.Contains(f.Found+f.Allowed, cell) {
				t.Errorf("%s: the error shows the cell: %v", c.column, f)
			}
		}
	}
}

// TestText: a text is what its words are, however often, in which case and order they stand.
func TestText(t *testing.T) {
	s := mustParse(t, "dataset: d\nintercept: false\ncolumns:\n  - {name: c, type: text, dimension: 512}\n  - {name: y, type: label, min: 0, max: 1}\n")
	e := newEncoder(s)
	want, _ := encoded(e, []string{"Fièvre et toux", "0"})
	for _, cell := range []string{"toux, FIÈVRE; et - fièvre", "et\ntoux\tfièvre!"} {
		if got, _ := encoded(e, []string{cell, "0"}); !near(got, want) {
			t.Errorf("%q differs", cell)
		}
	}
	if other, _ := encoded(e, []string{"fièvre et", "0"}); near(other, want) {
		t.Error("a missing word changes nothing")
	}
	norm := 0.0
	for _, x := range want {
		norm += x * x
	}
	if math.Abs(norm-1) > 1e-12 {
		t.Errorf("norm² %v", norm)
	}
}

// anyCell draws cells: ordinary and absurd ones.
var anyCell = rapid.OneOf(
	rapid.String(),
	rapid.SampledFrom([]string{"", "NaN", "-Inf", "1e999", "-1e308", "5e-324", "true", "0", "mild", "a", "0000-01-01", "9999-12-31T23:59:59.999999999+23:59", "0000-01-01T00:00-23:59", "2024-02-29", "1.1.0001", "31.12.9999", "a a a b"}),
	rapid.StringMatching(`[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,12})?)?(Z|[+-][0-2][0-9](:?[0-5][0-9])?)?)?`),
)

// cellsOf draws the cells of a row of schematest.Types.
func cellsOf(t *rapid.T) []string {
	return []string{anyCell.Draw(t, "stage"), anyCell.Draw(t, "smoker"), anyCell.Draw(t, "seen"), anyCell.Draw(t, "told"), anyCell.Draw(t, "note"), anyCell.Draw(t, "age"), "yes"}
}

// TestConformance is the suite of column types: each sample line of each type, as a schema shows it, is a column that passes it.
func TestConformance(t *testing.T) {
	for _, typ := range schema.ColumnTypes() {
		t.Run(typ.Name, func(t *testing.T) {
			n := 0
			for _, sample := range schema.Samples() {
				if line := sample[0]; regexp.MustCompile(`type: `+typ.Name+`[,}]`).MatchString(line) && !strings.Contains(line, "bounds: unknown") {
					n++
					checkColumn(t, typ.Name, line)
				}
			}
			if n == 0 {
				t.Errorf("no line of sample has a column of type %s; write one into its columnType, package schema: {name: x, type: %[1]s, …}", typ.Name)
			}
		})
	}
}

func checkColumn(t *testing.T, typ, line string) {
	text := "dataset: d\nintercept: false\ncolumns:\n  - " + line + "\n  - {name: other, type: numeric, min: 0, max: 1}\n"
	if typ == schema.TypeUnit {
		text = "unit: {name: patient_id, rows: 2}\n" + text
	}
	if typ != schema.TypeLabel {
		text += "  - {name: y, type: label, min: 0, max: 1}\n"
	}
	s, err := schema.Parse("sample", []byte(text))
	if err != nil {
		t.Fatalf("the sample %s is refused: %v", line, err)
	}
	c := &s.Columns[0]
	form := c.Form()
	if form == nil || typ == schema.TypeLabel {
		return
	}
	if c.Says() == "" || !strings.Contains(strings.Join(s.Assumptions(), "\n"), schema.Text(c.Name)) {
		t.Errorf("%s: columnType.says gives %q, and the assumptions do not name the column; reports need says and assumes", line, c.Says())
	}
	if form.Allowed() == "" || form.Wanted() == "" {
		t.Errorf("%s: Form.Allowed gives %q and Form.Wanted %q; write both, since errors say by them what a cell may be", line, form.Allowed(), form.Wanted())
	}
	read := form.Reader()
	for i, level := range form.Levels {
		if v, fault := read(level); fault != "" || v != float64(i) {
			t.Errorf("%s: Form.reader reads the level %q as %v (%s), not as its place %d in Form.Levels", line, level, v, fault, i)
		}
	}
	if form.Levels == nil && read != nil {
		checkWrite(t, line, form)
	}
	if t.Failed() { // rapid panics then
		return
	}
	e, again := newEncoder(s), newEncoder(s)
	rapid.Check(t, func(t *rapid.T) {
		cell := anyCell.Draw(t, "cell")
		encoded(e, []string{anyCell.Draw(t, "earlier"), "0", "0"})
		x, f := encoded(e, []string{cell, "0", "0"})
		y, g := encoded(again, []string{cell, "0", "0"})
		if f != g || !slices.Equal(x, y) {
			t.Fatalf("%s: features depend on an earlier row", line)
		}
		for j, v := range x {
			if !(v >= -1 && v <= 1) {
				t.Fatalf("%s: feature %d is %v; a feature is from -1 to 1 for every cell", line, j, v)
			}
		}
		if len(cell) > 4 && strings.Contains(f.Found+"\n"+f.Allowed, cell) {
			t.Fatalf("%s: the fault of a cell, %q, shows the cell; a fault is a kind, never a value", line, f.Found)
		}
	})
}

// checkWrite: what a form writes for a number is short and is read as that number.
func checkWrite(t *testing.T, line string, form *schema.Form) {
	if form.Write == nil {
		t.Errorf("%s: the form has a reader, and no Write, so that synthetic tables would hold bare numbers; write the cell that is read as a number", line)
		return
	}
	for _, v := range []float64{form.Line.Min, math.Round((form.Line.Min + form.Line.Max) / 2), form.Line.Max} {
		cell := form.Write(v)
		if got, fault := form.Reader()(cell); fault != "" || math.Abs(got-v) > 1 {
			t.Errorf("%s: Form.Write(%v) is the cell %.40q, which Form.reader reads as %v (%s)", line, v, cell, got, fault)
		}
		if len(cell) > 64 {
			t.Errorf("%s: Form.Write(%v) has %d bytes; descriptions show it as a mean or a bound, so it must tell a person the number", line, v, len(cell))
		}
	}
}

// TestBoundedFeatures: for any cell a feature is a number from −1 to 1, and depends on the cell and the schema alone; the row's norm is
// within its bound.
func TestBoundedFeatures(t *testing.T) {
	for _, scaling := range []string{schema.RowScale, schema.RowProject} {
		for _, norm := range []string{"l1", "l2"} {
			s := mustParse(t, "row_scaling: "+scaling+"\nnorm: "+norm+"\n"+schematest.Types)
			e, again := newEncoder(s), newEncoder(s)
			bound, _ := s.RowRule()
			rapid.Check(t, func(t *rapid.T) {
				encoded(e, cellsOf(t)) // what came before has no effect
				cells := cellsOf(t)
				x, f := encoded(e, cells)
				for j, v := range x {
					if !(v >= -1 && v <= 1) {
						t.Fatalf("feature %d is %v", j, v)
					}
				}
				y, g := encoded(again, cells)
				if f != g || !slices.Equal(x, y) {
					t.Fatal("the features depend on an earlier row")
				}
				if e.finish(); !(float64(e.norm) <= bound) {
					t.Fatalf("norm %v above %v", e.norm, bound)
				}
			})
		}
	}
}

func FuzzTypes(f *testing.F) {
	s := mustParse(f, schematest.Types)
	dir := f.TempDir()
	f.Add([]byte(schematest.TypesHeader+"mild,yes,2024-03-31T14:05,1.2.2003,some words,7,no\n"), uint(60), false)
	f.Add([]byte(schematest.TypesHeader+"severe,F,0000-01-01,31.12.9999,,1e999,yes\n,,,,,,\n"), uint(70), true)
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop bool) { fuzzRead(t, dir, s, content, at, drop) })
}
