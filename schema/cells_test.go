package schema

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

const countedSchema = `dataset: d
rows: 10
format: {missing: ["", "NA"]}
columns:
  - {name: a, type: numeric, min: -1, max: 3, transform: signed_log1p, hats: 4, missing: 0}
  - {name: b, type: categorical, levels: [x, z], unknown: zero}
  - {name: o, type: ordinal, levels: [I, II, III]}
  - {name: t, type: boolean}
  - {name: seen, type: date, min: 2020-01-01, max: 2020-12-31, cycles: [year]}
  - {name: words, type: text, dimension: 64}
  - {name: skipped, type: ignore}
  - {name: y, type: label, classes: ["1", "2.5"], strip: "."}
`

func parsed(t *testing.T, text string) *Schema {
	t.Helper()
	s, err := Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestForHistograms: each column that is read has its bins or levels, and two cells more; the label is one of them. The schema that a
// person wrote stays as it was.
func TestForHistograms(t *testing.T) {
	full := parsed(t, countedSchema)
	before := full.Fingerprint()
	s, err := full.ForHistograms(20, []Pair{{"y", "a"}, {"seen", "t"}})
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Check(); e != nil {
		t.Fatal(e)
	}
	var names []string
	cells, next := []int{20, 2, 3, 2, 20, 1, 2}, 0
	for first, c := range s.Histograms() {
		f := c.Form()
		if first != next || f.Cells != cells[len(names)] || f.Features() != f.Cells+2 {
			t.Errorf("%s begins at %d with %d cells", c.Name, first, f.Cells)
		}
		names, next = append(names, c.Name), first+f.Features()
	}
	if strings.Join(names, " ") != "a b o t seen words y" {
		t.Errorf("%v", names)
	}
	for first, p := range s.CellTables() {
		if first != next {
			t.Errorf("table %v begins at %d, want %d", p, first, next)
		}
		next += s.Columns[p[0]].Form().PairCells() * s.Columns[p[1]].Form().PairCells()
	}
	if want := 3*9 + 9*3; next != s.Dim() || s.Dim() != 20+2+3+2+20+1+2+14+want {
		t.Errorf("%d cells, tables end at %d", s.Dim(), next)
	}
	if !(s.RowNorm >= 3) || s.RowNorm > 3.000001 || !s.Sparse() || !s.IsCounted() || full.IsCounted() || s.Intercept {
		t.Errorf("norm %v", s.RowNorm)
	}
	if full.Fingerprint() != before || full.Dim() == s.Dim() || full.Column("y").Type != TypeLabel {
		t.Error("the schema was changed")
	}
	for _, cell := range []struct {
		text  string
		class float64
		bad   bool
	}{{"1", 0, false}, {"1.", 0, false}, {"1.0", 0, false}, {"2.50.", 1, false}, {"3", 0, true}, {"x", 0, true}} {
		v, fault := s.Column("y").Form().Reader()(cell.text)
		if (fault != "") != cell.bad || !cell.bad && v != cell.class {
			t.Errorf("label %q is read as %v (%s)", cell.text, v, fault)
		}
	}
}

// TestCellOf: every number between the bounds is between the edges of its bin, up to rounding, and others are in the first or last.
func TestCellOf(t *testing.T) {
	rnd := rand.New(rand.NewPCG(45, 1))
	for _, bounds := range [][2]float64{{0, 1}, {-3, 1e9}, {1e-7, 2e-7}, {-1e15, -1e14}} {
		f := &Form{Line: &Line{Bounds{bounds[0], bounds[1]}, TransformNone}}
		for _, cells := range []int{2, 7, 50, MostBins} {
			f.Cells = cells
			wide := (bounds[1] - bounds[0]) / float64(cells)
			for k := range 200 {
				v := bounds[0] + rnd.Float64()*(bounds[1]-bounds[0])
				if k < 3 {
					v = bounds[k%2]
				}
				j := f.CellOf(v, cells)
				if j < 0 || j >= cells || v < f.Edge(j, cells)-1e-6*wide || v > f.Edge(j+1, cells)+1e-6*wide {
					t.Fatalf("%v of %v is in bin %d of %d", v, bounds, j, cells)
				}
			}
			if f.CellOf(-math.MaxFloat64, cells) != 0 || f.CellOf(math.MaxFloat64, cells) != cells-1 {
				t.Errorf("%v: numbers beyond are in other bins", bounds)
			}
			if f.Edge(0, cells) != bounds[0] || f.Edge(cells, cells) != bounds[1] {
				t.Errorf("%v: edges do not end at the bounds", bounds)
			}
		}
	}
}

// TestForHistogramsRefuses what has no cells.
func TestForHistogramsRefuses(t *testing.T) {
	full := parsed(t, countedSchema)
	for _, c := range []struct {
		bins  int
		pairs []Pair
		says  string
	}{
		{1, nil, "bins: found 1"},
		{MostBins + 1, nil, "bins: found 1025"},
		{8, []Pair{{"a", "a"}}, `pairs: found "a" with itself`},
		{8, []Pair{{"a", "b"}, {"b", "a"}}, "twice"},
		{8, []Pair{{"a", "skipped"}}, `pairs: found "skipped"; choose columns of the schema that are read: a, b, o`},
		{8, []Pair{{"nothing", "a"}}, `pairs: found "nothing"`},
	} {
		if _, err := full.ForHistograms(c.bins, c.pairs); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d bins, %v: %v", c.bins, c.pairs, err)
		}
	}
	lib := parsed(t, "dataset: d\nrows: 5\nfeatures: 3\nformat: {kind: libsvm}\ncolumns: [{name: y, type: label, classes: [a, b]}]\n")
	if _, err := lib.ForHistograms(8, nil); err == nil || !strings.Contains(err.Error(), "found libsvm") {
		t.Errorf("%v", err)
	}
}
