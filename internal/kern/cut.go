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

// A CutTile is what Cut made of each row of a tile: its lines and the bumps that are not 0, without the zeros between
// them. It is one goroutine's memory.
type CutTile struct {
	lines, pairs []float32
	at, places   []int32   // of a row's lines, and of its bumps: of the number before the first of the two
	sum          []float64 // of lines
}

// Tile is memory for that many rows, as it is where no row has bumps.
func (c *Cuts) Tile(rows int) *CutTile {
	n := rows * len(c.at)
	t := &CutTile{make([]float32, n), make([]float32, 2*n), c.at, make([]int32, n), Aligned(len(c.at))}
	c.Reset(t)
	return t
}

// Reset makes t what Tile returns.
func (c *Cuts) Reset(t *CutTile) {
	for places := t.places; len(places) > 0; places = places[len(c.at):] {
		copy(places, c.at)
	}
}

// Cut puts the lines of stored rows and their bumps into as many rows of dim numbers. Those are 0 at the bumps, if t
// has been reset, or else as an earlier Cut with t left them. The lines of stored row i begin at x[i·stride]. Each
// number v of them counts as v·inv[i] within ±1, is multiplied by f[i], and is rounded toward zero to a whole number of
// units, which is of magnitude up to 2³⁰. A line of −0 has no bumps.
func (c *Cuts) Cut(rows []float32, dim int, x []float32, stride int, inv, f []float64, unit float64, t *CutTile) {
	n := len(c.at)
	if len(f) == 0 || n == 0 {
		return
	}
	if dim < c.dim || stride < 0 || len(inv) != len(f) || len(t.places) < len(f)*n || len(t.sum) != n {
		panic("kern: rows that are too short for the cuts, or a tile of others")
	}
	need(rows, dim, nil, len(f), dim)
	need(x, stride, nil, len(f), n)
	if c.fast(rows, dim, x, stride, inv, f, unit, t) {
		return
	}
	for i, f := range f {
		c.cut(rows[i*dim:(i+1)*dim], x[i*stride:i*stride+n], inv[i], f, unit, t, i*n)
	}
}

func (c *Cuts) cut(row, x []float32, inv, f, unit float64, t *CutTile, first int) {
	for i, v := range x {
		old, at := t.places[first+i], c.at[i]
		row[old+1], row[old+2] = 0, 0
		line := max(-1, min(1, float64(v)*inv)) + 0
		u := (line + 1) * c.half[i]
		j := min(int32(u), c.last[i])
		left, right := Snap(1-(u-float64(j)), f, unit), Snap(1-(float64(j+1)-u), f, unit)
		if math.Float32bits(v) == 1<<31 {
			left, right = 0, 0
		}
		row[at], row[at+1+j], row[at+2+j] = Snap(line, f, unit), left, right
		t.lines[first+i], t.places[first+i] = row[at], at+j
		t.pairs[2*(first+i)], t.pairs[2*(first+i)+1] = left, right
	}
}

// Line returns the position of line k of row i of the tile, and that of the first of its two bumps, with the three
// numbers.
func (t *CutTile) Line(i, k int) (at, first int32, x [3]float32) {
	k += i * len(t.at)
	return t.at[k-i*len(t.at)], t.places[k] + 1, [3]float32{t.lines[k], t.pairs[2*k], t.pairs[2*k+1]}
}

// Add adds the lines and bumps of the first rows of t, weighted by a, to dst: what Axpy adds of those numbers of the
// rows, where all sums are exact.
func (c *Cuts) Add(dst, a []float64, t *CutTile) {
	n := len(c.at)
	if len(a) == 0 || n == 0 {
		return
	}
	if len(dst) < c.dim || len(t.places) < len(a)*n || len(t.sum) != n {
		panic("kern: a sum that is too short for the cuts, or a tile of others")
	}
	clear(t.sum)
	Axpy(t.sum, a, t.lines, n, nil)
	for i, at := range c.at {
		dst[at] += t.sum[i]
	}
	if cutSumFast(dst, a, t.places, t.pairs, n) {
		return
	}
	for i, ai := range a {
		for k, at := range t.places[i*n : (i+1)*n] {
			left, right := float64(t.pairs[2*(i*n+k)]), float64(t.pairs[2*(i*n+k)+1])
			dst[at+1], dst[at+2] = math.FMA(ai, left, dst[at+1]), math.FMA(ai, right, dst[at+2])
		}
	}
}

// Dot adds to dst the products of the lines and bumps of the first rows of t with w, where all sums are exact.
func (c *Cuts) Dot(dst, w []float64, t *CutTile) {
	n := len(c.at)
	if len(dst) == 0 || n == 0 {
		return
	}
	if len(w) < c.dim || len(t.places) < len(dst)*n || len(t.sum) != n {
		panic("kern: weights that are too few for the cuts, or a tile of others")
	}
	for k, at := range c.at {
		t.sum[k] = w[at]
	}
	if cutDotFast(dst, w, t, n) {
		return
	}
	for i := range dst {
		for k, at := range t.places[i*n : (i+1)*n] {
			left, right := float64(t.pairs[2*(i*n+k)]), float64(t.pairs[2*(i*n+k)+1])
			dst[i] = math.FMA(float64(t.lines[i*n+k]), t.sum[k], dst[i])
			dst[i] = math.FMA(right, w[at+2], math.FMA(left, w[at+1], dst[i]))
		}
	}
}

// Products makes the products of the bumps of pairs of lines: of a pair, with m bumps of either line, those of at most
// two bumps of the one and two of the other, the i-th and the j-th, at i·m + j from a position of a row on.
type Products struct {
	a, b, at   []int32 // lines in a stored row, and the position of the first product
	bumps      int
	lines, dim int // least lengths of a stored row and of a row
}

// NewProducts is for the pairs of the lines a and b of a stored row with their products at those positions of a row,
// and so many bumps of a line, two or more.
func NewProducts(a, b, at []int, bumps int) *Products {
	p := &Products{bumps: bumps}
	for i := range at {
		if a[i] < 0 || b[i] < 0 || at[i] < 0 || bumps < 2 {
			panic("kern: a line or product before its row, or one bump")
		}
		p.a, p.b, p.at = append(p.a, int32(a[i])), append(p.b, int32(b[i])), append(p.at, int32(at[i]))
		p.lines, p.dim = max(p.lines, a[i]+1, b[i]+1), max(p.dim, at[i]+bumps*bumps)
	}
	return p
}

// Put puts the products of the pairs of stored rows into as many rows of dim numbers, which are 0 there. The numbers of
// stored rows, inv, f and unit are as for [Cuts.Cut]; a pair with a line of −0 has no products.
func (p *Products) Put(rows []float32, dim int, x []float32, stride int, inv, f []float64, unit float64) {
	if len(p.at) == 0 || len(f) == 0 {
		return
	}
	if dim < p.dim || stride < 0 || len(inv) != len(f) {
		panic("kern: rows that are too short for the products")
	}
	need(rows, dim, nil, len(f), dim)
	need(x, stride, nil, len(f), p.lines)
	if p.fast(rows, dim, x, stride, inv, f, unit) {
		return
	}
	for i, f := range f {
		row, x := rows[i*dim:(i+1)*dim], x[i*stride:]
		for k, at := range p.at {
			a, b := x[p.a[k]], x[p.b[k]]
			if math.Float32bits(a) == 1<<31 || math.Float32bits(b) == 1<<31 {
				continue
			}
			ja, left, right := p.bump(a, inv[i])
			jb, low, high := p.bump(b, inv[i])
			to := row[int(at)+ja*p.bumps+jb:]
			to[0], to[1] = Snap(left*low, f, unit), Snap(left*high, f, unit)
			to[p.bumps], to[p.bumps+1] = Snap(right*low, f, unit), Snap(right*high, f, unit)
		}
	}
}

// bump is schema.Bumps of a line of a stored row.
func (p *Products) bump(v float32, inv float64) (j int, left, right float64) {
	u := (max(-1, min(1, float64(v)*inv)) + 1) * (float64(p.bumps-1) / 2)
	j = min(int(u), p.bumps-2)
	return j, 1 - (u - float64(j)), 1 - (float64(j+1) - u)
}

// Snap is v·f, of magnitude up to 2³⁰, rounded toward zero, in units.
func Snap(v, f, unit float64) float32 { return float32(float64(int64(v*f)) * unit) }
