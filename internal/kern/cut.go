package kern

import "math"

// Cuts makes the bumps of the lines of rows: of each line x it puts at three positions of a row x itself and the two
// bumps that are not 0 there, the j-th and the one after it of the bumps that follow x (schema.Bumps).
type Cuts struct {
	at   []int32   // positions of the lines
	half []float64 // the distance of −1 and 1, in bumps, over 2
	last []int32   // the last bump that another follows
	dim  int       // least length of a row
}

// NewCuts is for lines at those positions of a row, each with so many bumps behind it, two or more.
func NewCuts(at, bumps []int) *Cuts {
	c := new(Cuts)
	for i, n := range bumps {
		if at[i] < 0 || n < 2 {
			panic("kern: a line before its row, or with one bump")
		}
		c.at = append(c.at, int32(at[i]))
		c.half = append(c.half, float64(n-1)/2)
		c.last = append(c.last, int32(n-2))
		c.dim = max(c.dim, at[i]+1+n)
	}
	return c
}

// Cut puts the lines x of a stored row and their bumps into row, which is 0 there. A number x_i·inv counts as within
// ±1; each number is multiplied by f, of magnitude up to 2³⁰, and rounded toward zero to a whole number of units.
// A line of −0 has no bumps.
func (c *Cuts) Cut(row, x []float32, inv, f, unit float64) {
	if len(row) < c.dim || len(x) != len(c.at) {
		panic("kern: lines that are not those of the cuts, or a row that is too short")
	}
	if c.fast(row, x, inv, f, unit) {
		return
	}
	for i, v := range x {
		at := c.at[i]
		line := max(-1, min(1, float64(v)*inv)) + 0
		row[at] = Snap(line, f, unit)
		if math.Float32bits(v) == 1<<31 {
			continue
		}
		u := (line + 1) * c.half[i]
		j := min(int32(u), c.last[i])
		row[at+1+j] = Snap(1-(u-float64(j)), f, unit)
		row[at+2+j] = Snap(1-(float64(j+1)-u), f, unit)
	}
}

// Snap is v·f, of magnitude up to 2³⁰, rounded toward zero, in units.
func Snap(v, f, unit float64) float32 { return float32(float64(int64(v*f)) * unit) }
