package schema

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
)

// PairBins is the most bins of a number in a table of two columns.
const PairBins = 8

// MostBins is the most bins of a number in its histogram.
const MostBins = 1024

// A Counting is how a column is counted in a table made by [Schema.ForHistograms].
type Counting struct {
	Bins int // of a number; levels have a cell each
	// of the label's classes, which match as labels do; nil: the column is read as its type is
	Label *Column
}

// A CellTable is the cells of two columns together, by their positions in Schema.Columns.
type CellTable struct{ A, B int }

// ForHistograms describes the same table for histograms: of each column that is read, the label among them, a row has
// one indicator of 1, in the cell that its value is in. Cells are equal-width bins between the bounds of a number, or
// its levels, then one for missing values and one for values that the schema does not allow, so no value makes a bad
// row. Each pair of columns has a table of its own. A row has a norm of at most the root of the number of columns and
// pairs.
func (s *Schema) ForHistograms(bins int, pairs []Pair) (*Schema, error) {
	if s.Format.Kind != KindCSV {
		return nil, fmt.Errorf("format.kind: found %s; only tables of named columns have histograms of columns", s.Format.Kind)
	}
	if bins < 2 || bins > MostBins {
		return nil, fmt.Errorf("bins: found %d; choose a number from 2 to %d", bins, MostBins)
	}
	t := &Schema{
		Dataset: s.Dataset, Unit: s.Unit, UnitRows: s.UnitRows, Rows: s.Rows, Format: s.Format,
		RowScaling: RowProject, OnBadRow: s.OnBadRow, OtherColumns: s.OtherColumns, Columns: slices.Clone(s.Columns),
	}
	columns := 0
	for i := range t.Columns {
		c := &t.Columns[i]
		count := &Counting{Bins: bins}
		switch {
		case c.Type == TypeLabel && c.Bounds == nil:
			label := *c
			count.Label = &label
			*c = Column{Name: c.Name, Type: TypeCategorical, Levels: c.Classes, Unknown: RuleError, Missing: RuleError}
		case c.Type == TypeLabel:
			*c = Column{Name: c.Name, Type: TypeNumeric, Bounds: c.Bounds, Transform: TransformNone, Missing: RuleError}
		case c.features() == 0:
			continue
		}
		c.Hats, c.Waves, c.Free, c.Counts = 0, 0, false, count
		columns++
	}
	if columns == 0 {
		return nil, fmt.Errorf("columns: found none that is read; name at least one column that is not ignored")
	}
	for k, p := range pairs {
		a, err := t.countedAt(p.A)
		if err != nil {
			return nil, err
		}
		b, err := t.countedAt(p.B)
		switch {
		case err != nil:
			return nil, err
		case a == b:
			return nil, fmt.Errorf("pairs: found %q with itself; name two columns", p.A)
		case slices.Contains(pairs[:k], p) || slices.Contains(pairs[:k], Pair{p.B, p.A}):
			return nil, fmt.Errorf("pairs: found %s twice; name it once", p)
		}
		t.Tables = append(t.Tables, CellTable{a, b})
	}
	t.RowNorm = float32Up(math.Sqrt(float64(columns + len(pairs))))
	if d := t.Dim(); d > maxDim {
		return nil, fmt.Errorf("bins: the histograms have %d cells together; choose fewer bins or pairs, for at most %d", d,
			maxDim)
	}
	return t, nil
}

// countedAt is the position of a column that is counted.
func (s *Schema) countedAt(name string) (int, error) {
	at := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Counts != nil && c.Name == name })
	if at >= 0 {
		return at, nil
	}
	var names []string
	for _, c := range s.Columns {
		if c.Counts != nil {
			names = append(names, c.Name)
		}
	}
	return 0, fmt.Errorf("pairs: found %q; choose columns of the schema that are read: %s", name, strings.Join(names, ", "))
}

// float32Up is v as a float32 number, rounded up.
func float32Up(v float64) float64 {
	if f := float32(v); float64(f) < v {
		return float64(math.Nextafter32(f, float32(math.Inf(1))))
	}
	return float64(float32(v))
}

// IsCounted says whether rows are indicators of cells: they are made by [Schema.ForHistograms].
func (s *Schema) IsCounted() bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Counts != nil })
}

// Histograms are the counted columns, each with the position of its first cell in a row.
func (s *Schema) Histograms() iter.Seq2[int, Column] {
	return func(yield func(int, Column) bool) {
		first := 0
		for _, c := range s.Columns {
			if c.Counts != nil && !yield(first, c) {
				return
			}
			first += c.features()
		}
	}
}

// CellTables are the pairs of counted columns, by their positions in Columns, each with the position of its first cell.
// The cell of row i and column j of a table is that of number i·n + j, n the PairCells of b.
func (s *Schema) CellTables() iter.Seq2[int, [2]int] {
	return func(yield func(int, [2]int) bool) {
		first := 0
		for _, c := range s.Columns {
			first += c.features()
		}
		for _, t := range s.Tables {
			if !yield(first, [2]int{t.A, t.B}) {
				return
			}
			first += s.tableCells(t)
		}
	}
}

func (s *Schema) tableCells(t CellTable) int {
	return s.Columns[t.A].Form().PairCells() * s.Columns[t.B].Form().PairCells()
}

// counted is the form of a column that is counted.
func (c *Column) counted(f *Form) *Form {
	g := &Form{Levels: f.Levels, Counts: f.Counts, Step: f.Step, Write: f.Write, Line: f.Line, reader: f.reader}
	switch {
	case f.Levels != nil:
		g.Cells, g.Line = len(f.Levels), nil
	case f.Words > 0:
		g.Cells = 1 // any text that is not missing
		g.reader = func() func(string) (float64, string) { return func(string) (float64, string) { return 0, "" } }
	default:
		g.Cells = c.Counts.Bins
		g.Line = &Line{f.Line.Bounds, TransformNone}
	}
	if label := c.Counts.Label; label != nil {
		g.reader = label.classReader
	}
	return g
}

// classReader reads the class of a label: by its text without what is stripped, or where classes are numbers by that.
func (c *Column) classReader() func(cell string) (v float64, fault string) {
	read, numbers := levelReader(c.Classes), c.NumericClasses()
	return func(cell string) (float64, string) {
		if c.Strip != "" {
			cell = strings.TrimSuffix(cell, c.Strip)
		}
		v, fault := read(cell)
		if fault != "" && numbers != nil {
			if number, bad := config.ParseNumber(cell); bad == "" {
				if class, ok := numbers[number]; ok {
					return float64(class), ""
				}
			}
		}
		return v, fault
	}
}

// PairCells is the number of cells of the column in a table of two columns: its levels, or at most [PairBins] bins, and
// one for values that are missing or not allowed.
func (f *Form) PairCells() int {
	if f.Line == nil {
		return f.Cells + 1
	}
	return min(f.Cells, PairBins) + 1
}

// CellOf is the cell of a number among so many, the first 0: its level, or its bin between the bounds.
func (f *Form) CellOf(v float64, cells int) int {
	if f.Line == nil {
		return int(v)
	}
	at := (v - f.Line.Min) / (f.Line.Max - f.Line.Min) * float64(cells)
	return int(max(0, min(at, float64(cells-1))))
}

// Edge is the lower edge of bin j of so many, j up to their number.
func (f *Form) Edge(j, cells int) float64 {
	if j == cells {
		return f.Line.Max
	}
	return f.Line.Min + float64(j)*((f.Line.Max-f.Line.Min)/float64(cells))
}
