package data

import (
	"slices"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/schema"
)

// denseRows are rows of float32 with their zeros, one after the other: X.
type denseRows struct{ base }

func (r denseRows) run(from, end int) []float32                     { return r.X[from*r.Dim : end*r.Dim] }
func (r denseRows) fill(x []float32, i int)                         { copy(x, r.run(i, i+1)) }
func (r denseRows) values(i int, _ *[]float32) ([]int32, []float32) { return nil, r.run(i, i+1) }
func (r denseRows) memory(i int) [2][]byte                          { return [2][]byte{asBytes(r.run(i, i+1))} }
func (r denseRows) copyTo(to *Block, i int)                         { to.X = append(to.X, r.run(i, i+1)...) }
func (r denseRows) parts() [][]byte                                 { return [][]byte{asBytes(r.X)} }

func (r denseRows) prefetch(i int) {
	kern.Prefetch(r.X[i*r.Dim:][:min(r.Dim, firstBytes/4)])
}

// matrix is v for the kernels: x with its stride, and the row numbers, or nil where x starts at the first row of a
// range.
func (r denseRows) matrix(v View) (x []float32, stride int, rows []int32) {
	if v.Rows != nil {
		return r.X, r.Dim, v.Rows
	}
	return r.X[v.From*r.Dim:], r.Dim, nil
}

func (r denseRows) margins(z, w []float64, k int, v View, _ *Space) {
	if k == 1 {
		x, stride, rows := r.matrix(v)
		kern.Dot(z, x, stride, rows, w)
		return
	}
	n := v.Len()
	for i := 0; i < n; i += tile {
		j := min(i+tile, n)
		x, stride, rows := r.matrix(v.part(i, j))
		kern.DotMany(z[i:], n, x, stride, rows, j-i, w, k, v.next(i, j))
	}
}

func (r denseRows) sizes(dst []float64, v View) {
	x, stride, rows := r.matrix(v)
	kern.Abs1(dst, x, stride, rows, r.Dim)
}

func (r denseRows) add(dst, a []float64, k int, v View, _ float64, s *Space) {
	switch n := v.Len(); {
	case k > 1:
		for i := 0; i < n; i += tile {
			j := min(i+tile, n)
			x, stride, rows := r.matrix(v.part(i, j))
			kern.AxpyMany(dst, a[i:], n, x, stride, rows, j-i, k, v.next(i, j))
		}
	case v.Rows == nil && !slices.Contains(a, 0):
		x, stride, rows := r.matrix(v)
		kern.Axpy(dst, a, x, stride, rows)
	default:
		coef, rows := s.nonzero(a, v)
		kern.Axpy(dst, coef, r.X, r.Dim, rows)
	}
}

// As many scaled rows are kept at a time as fit the first-level cache, but enough of them to justify a pass over the
// matrix.
const outerRows, outerRoom = 48, 28 << 10

func (r denseRows) outer(dst []float64, side int, a []float64, v View, scratch []float64) []float64 {
	some := max(outerRows, outerRoom/(8*side))
	scratch = grow(scratch, min(some, len(a))*side)
	for i := 0; i < len(a); i += some {
		j := min(i+some, len(a))
		x, stride, rows := r.matrix(v.part(i, j))
		kern.Whole(scratch, side, a[i:j], x, stride, rows, r.Dim)
		kern.Gram(dst, side, scratch, j-i)
	}
	return scratch
}

// densePack is how such rows lie in a chunk.
var densePack = packForm{
	sizes: func(rows, _, dim int) []int { return []int{4 * rows * dim} }, // at most 2¹⁰·2²⁴·4
	open:  func(k *Block, _ *schema.Schema, parts [][]byte) { k.X = numbers[float32](parts[0]) },
}

// denseFiller makes such rows.
type denseFiller struct {
	dim int
	x   []float32
}

func (f *denseFiller) begin(memory *Arena) { f.x = memory.Floats(BlockRows * f.dim) }

func (f *denseFiller) add(i int, r *record) {
	if r.dropped {
		return
	}
	row := f.x[i*f.dim:][:f.dim]
	if len(r.col) < len(r.val) {
		copy(row, r.val)
	}
	for n, j := range r.col {
		row[j] = r.val[n]
	}
}

func (f *denseFiller) end(k *Block, _ *Arena) {
	if k.X = f.x; k.N < BlockRows {
		k.X = append([]float32(nil), f.x[:k.N*f.dim]...)
	}
	f.x = nil
}
