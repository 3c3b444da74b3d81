package schema

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// BoundsUnknown is the value of a numeric column's field bounds if its bounds are not known: bounds: unknown. Only
// [ParseOpen] takes such a column: private counts on the public grid propose its bounds, and [SetBounds] writes them.
const BoundsUnknown = "unknown"

// gridEdges are the absolute values that the public grid's bins end at: 1, 2 and 5 times the powers of ten from 1e-9 to
// 1e18.
var gridEdges = func() (edges []float64) {
	for e := -9; e <= 18; e++ {
		for _, m := range []string{"1", "2", "5"} {
			v, _ := strconv.ParseFloat(m+"e"+strconv.Itoa(e), 64)
			edges = append(edges, v)
		}
	}
	return edges[:len(edges)-2] // up to 1e18
}()

// gridZero is the bin of 0. On both sides of it are as many as there are edges but one.
var gridZero = len(gridEdges) - 1

// GridBins is the number of bins of the public grid. They are in the order of their values.
func GridBins() int { return 2*gridZero + 1 }

// GridBin is the bin of a value. Bins of positive values hold their upper edge, the others mirror them, the bin of 0
// holds what is within the least edge, and the outermost bins hold all that lies beyond.
func GridBin(v float64) int {
	i, _ := slices.BinarySearch(gridEdges, math.Abs(v)) // the first edge that is not below
	i = min(i, gridZero)
	if v < 0 {
		return gridZero - i
	}
	return gridZero + i
}

// GridBounds are the bounds of the values in bins from … to of the grid: edges of it, or 0 at the bin of 0.
func GridBounds(from, to int) Bounds {
	edge := func(bin, out int) float64 { // the end of a bin on the side out
		switch i := bin - gridZero; {
		case i == 0:
			return 0
		case i > 0:
			return gridEdges[i-(1-out)/2]
		default:
			return -gridEdges[-i-(1+out)/2]
		}
	}
	return Bounds{edge(from, -1), edge(to, 1)}
}

// Unbounded are the names of the numeric columns whose bounds are unknown, in their order.
func (s *Schema) Unbounded() (names []string) {
	for _, c := range s.Columns {
		if c.onGrid() {
			names = append(names, c.Name)
		}
	}
	return names
}

// onGrid reports whether the column's bounds are unknown, so that it is encoded as one indicator for each bin of the
// grid.
func (c *Column) onGrid() bool { return c.Type == TypeNumeric && c.Bounds == nil }

// OnGrid describes the same table for counts on the grid: of each of these columns, whose bounds are unknown, a row has
// one indicator, of its bin, or none where its value is missing. All other features are ignored. No row's norm is above
// the root of the number of columns.
func (s *Schema) OnGrid(columns []string) *Schema {
	t := &Schema{
		Dataset: s.Dataset, Unit: s.Unit, UnitRows: s.UnitRows, Rows: s.Rows, Format: s.Format,
		RowNorm: float32Up(math.Sqrt(float64(len(columns)))), RowScaling: RowProject, OnBadRow: s.OnBadRow,
		Columns: slices.Clone(s.Columns), Grid: true,
	}
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case c.onGrid() && slices.Contains(columns, c.Name):
			c.Hats, c.Waves, c.Missing, c.Free, c.Transform = 0, 0, missingOf(c.Missing), false, TransformNone
		case c.features() > 0:
			*c = Column{Name: c.Name, Type: TypeIgnore}
		}
	}
	return t
}

// missingOf is the rule on the grid for missing cells: a bad row stays one; else the cell is in no bin.
func missingOf(rule string) string {
	if rule == RuleError {
		return rule
	}
	return RuleZero
}

var unknownBounds = regexp.MustCompile(`^bounds\s*:\s*["']?unknown["']?`)

// SetBounds is a schema file with bounds for columns that say bounds: unknown, by their names. All other text stays.
func SetBounds(src []byte, bounds map[string]Bounds, source string) ([]byte, error) {
	doc, err := config.Parse("", "a schema", src)
	if err != nil {
		return nil, err
	}
	var columns []config.Node
	if err := doc.Root().Field("columns").Decode(&columns); err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(src), "\n")
	for _, c := range slices.Backward(columns) { // so that what follows in a line keeps its place
		b, ok := bounds[c.Field("name").Text()]
		if !ok {
			continue
		}
		line, column, braces := c.FieldAt("bounds")
		text := []rune(lines[line-1])
		before, rest := string(text[:column-1]), string(text[column-1:])
		old := unknownBounds.FindString(rest)
		if old == "" {
			return nil, &config.Error{Line: line, Column: column, Field: "bounds", Found: "a word on another line",
				Allowed: "bounds: unknown on one line"}
		}
		between := ", "
		if !braces {
			between = "\n" + strings.Repeat(" ", column-1)
		}
		lines[line-1] = before +
			strings.Join([]string{"min: " + num(b.Min), "max: " + num(b.Max), "source: " + strconv.Quote(source)}, between) +
			rest[len(old):]
	}
	return []byte(strings.Join(lines, "")), nil
}
