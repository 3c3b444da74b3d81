package schema

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/internal/kern"
)

// Waves are features of a number that take the place of many bumps where noise is large: smooth curves through the
// centers of eight bumps, piecewise linear between them, each with one more turn than the last and about 0.7 of its
// height. They have no constant and no line, which the intercept and the linear feature are.
const (
	waveBumps = 8
	maxWaves  = 6
	waveFall  = 0.7 // the height of a wave over that of the one before
)

// DefaultWaves is the number of waves with `encode: waves`.
const DefaultWaves = 3

// waves[t][j] is wave t at the center of bump j.
var waves = func() (table [maxWaves][waveBumps]float64) {
	height := 1.0
	for t, s := range Shapes(waveBumps)[2 : 2+maxWaves] {
		height *= waveFall
		for j, v := range s {
			table[t][j] = height * math.Sqrt(waveBumps/2) * v
		}
	}
	return table
}()

// Shapes is an orthonormal basis of what k bumps at equal distances can be: a constant, a line, and cosines of more and
// more turns less what they have of the shapes before.
func Shapes(k int) [][]float64 {
	var all [][]float64
	for turns := range k {
		s := make([]float64, k)
		for i := range s {
			switch turns {
			case 0:
				s[i] = 1
			case 1:
				s[i] = float64(i) - float64(k-1)/2
			default:
				s[i] = math.Cos(math.Pi * float64(turns) * (float64(i) + 0.5) / float64(k))
			}
		}
		for _, before := range all {
			floats.AddScaled(s, -floats.Dot(s, before), before)
		}
		floats.Scale(1/math.Sqrt(kern.SumSquares(s)), s)
		all = append(all, s)
	}
	return all
}

// Wave is the value of a wave, numbered from 0, where the linear feature is x, from −1 to 1.
func Wave(wave int, x float64) float64 {
	j, left, right := Bumps(waveBumps, x)
	return float64(waves[wave][j]*left) + float64(waves[wave][j+1]*right)
}

// WaveBumps are the values of a wave at the points between which it is linear, the centers of eight bumps.
func WaveBumps(wave int) []float64 { return waves[wave][:] }

// Curve is the values of the features beside the linear one, where that is x: of bumps, or of waves.
func (f *Form) Curve(x float64) []float64 {
	v := make([]float64, f.Bumps+f.Waves)
	if f.Bumps > 0 {
		j, left, right := Bumps(f.Bumps, x)
		v[j], v[j+1] = left, right
	}
	for t := range f.Waves {
		v[f.Bumps+t] = Wave(t, x)
	}
	return v
}

// Kinks is the number of points at equal distances between which the column's effect is linear; 0: it is a line.
func (f *Form) Kinks() int {
	if f.Waves > 0 {
		return waveBumps
	}
	return f.Bumps
}

// Lines is the schema of rows from which rows of s can be computed: numeric columns have only their
// line, and there are no reserved pairs. ok is true if s has curves and its rows are dense and have
// an intercept, which reveals the factor of the row rule.
func (s *Schema) Lines() (lines *Schema, ok bool) {
	if len(s.Curved()) == 0 || !s.Intercept || s.Sparse() || s.Image != nil {
		return nil, false
	}
	t := s.each(func(c *Column) { c.Hats, c.Waves, c.Chosen = 0, 0, false })
	t.Pairs, t.Snapped = slices.DeleteFunc(slices.Clone(s.Pairs), Pair.Open), false
	return t, true
}

// Snap is the schema of a new run. If the run chose all curves, they are computed from rows without
// them, so that a file and a table that was packed without curves give the same rows.
func (s *Schema) Snap() *Schema {
	t := *s
	_, t.Snapped = s.Lines()
	if slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Hats+c.Waves > 0 && !c.Chosen }) {
		t.Snapped = false
	}
	return &t
}

// Unmarked are the numeric columns in which a cell without a value is 0 and could be a number.
func (s *Schema) Unmarked() (names []string) {
	for _, c := range s.Columns {
		if c.Type == TypeNumeric && c.Missing == RuleZero {
			names = append(names, c.Name)
		}
	}
	return names
}
