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

// Cut puts the lines of stored rows and their bumps into as many rows of dim numbers, which are 0 there. The lines of
// stored row i begin at x[i·stride]. Each number v of them counts as v·inv[i] within ±1, is multiplied by f[i], and is
// rounded toward zero to a whole number of units, which is of magnitude up to 2³⁰. A line of −0 has no bumps.
func (c *Cuts) Cut(rows []float32, dim int, x []float32, stride int, inv, f []float64, unit float64) {
	n := len(c.at)
	if len(f) == 0 || n == 0 {
		return
	}
	if dim < c.dim || stride < 0 || len(inv) != len(f) {
		panic("kern: rows that are too short for the cuts")
	}
	need(rows, dim, nil, len(f), dim)
	need(x, stride, nil, len(f), n)
	if c.fast(rows, dim, x, stride, inv, f, unit) {
		return
	}
	for i, f := range f {
		c.cut(rows[i*dim:(i+1)*dim], x[i*stride:i*stride+n], inv[i], f, unit)
	}
}

func (c *Cuts) cut(row, x []float32, inv, f, unit float64) {
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
