package data

import (
	"slices"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/schema"
)

// sparseRows are rows of float32 without their zeros: row i is Val at the columns Col, from Start[i] to Start[i+1].
type sparseRows struct{ base }

func (sparseRows) sparse() bool      { return true }
func (sparseRows) filler(int) filler { return &sparseFiller{zeros: true} }

func (r sparseRows) values(i int, _ *[]float32) ([]int32, []float32) {
	from, to := r.Start[i], r.Start[i+1]
	if from == to {
		return []int32{}, nil // not nil, which would be all columns
	}
	return r.Col[from:to], r.Val[from:to]
}

func (r sparseRows) fill(x []float32, i int) {
	col, val := r.values(i, nil)
	for e, j := range col {
		x[j] = val[e]
	}
}

func (r sparseRows) appendText(dst []byte, i int) []byte {
	col, val := r.values(i, nil)
	for e, j := range col {
		dst = appendValue(dst, j, val[e])
	}
	return dst
}

func (r sparseRows) index(i int) []byte { return asBytes(r.Start[i : i+2]) }

func (r sparseRows) memory(i int) [2][]byte {
	col, val := r.values(i, nil)
	return [2][]byte{asBytes(col), asBytes(val)}
}

func (r sparseRows) copyTo(to *Block, i int) {
	if len(to.Start) == 0 {
		to.Start = append(to.Start, 0)
	}
	col, val := r.values(i, nil)
	to.Col, to.Val = append(to.Col, col...), append(to.Val, val...)
	to.Start = append(to.Start, int32(len(to.Col)))
}

// setSparse gives b copies of these rows.
func (b *Block) setSparse(memory *Arena, start, col []int32, val []float32) {
	b.Start, b.Col, b.Val = slices.Clone(start), memory.Ints(len(col)), memory.Floats(len(val))
	copy(b.Col, col)
	copy(b.Val, val)
}

func (r sparseRows) erase(i int) {
	_, val := r.values(i, nil)
	clear(val)
}

func (r sparseRows) parts() [][]byte {
	return [][]byte{asBytes(r.Start), asBytes(r.Col), asBytes(r.Val)}
}

func (r sparseRows) valid() bool {
	if r.Start[0] != 0 || int(r.Start[r.N]) != len(r.Col) {
		return false
	}
	for i := range r.N {
		from, to := r.Start[i], r.Start[i+1]
		if from < 0 || from > to || int(to) > len(r.Col) || !ascend(r.Col[from:to], r.Dim) {
			return false
		}
	}
	return true
}

// ascend reports whether the columns of a sparse row ascend from 0 to below dim.
func ascend(columns []int32, dim int) bool {
	last := int32(-1)
	for _, j := range columns {
		if j <= last || int(j) >= dim {
			return false
		}
		last = j
	}
	return true
}

// matrix is v for the kernels: the rows from start on, or those listed in rows.
func (r sparseRows) matrix(v View) (start, rows []int32) {
	if v.Rows != nil {
		return r.Start, v.Rows
	}
	return r.Start[v.From:], nil
}

func (r sparseRows) margins(z, w []float64, k int, v View, _ *Space) {
	n, d := v.Len(), r.Dim
	r.tiles(k, v, func(i, j int, part View) {
		start, rows := r.matrix(part)
		for c := range k {
			kern.DotCSR(z[c*n+i:c*n+j], start, r.Col, r.Val, rows, w[c*d:(c+1)*d])
		}
	})
}

func (r sparseRows) sizes(dst []float64, v View) {
	start, rows := r.matrix(v)
	kern.Abs1CSR(dst, start, r.Col, r.Val, rows, r.Dim)
}

func (r sparseRows) add(dst, a []float64, k int, v View, _ float64, s *Space) {
	n, d := v.Len(), r.Dim
	r.tiles(k, v, func(i, j int, part View) {
		for c := range k {
			coef, rows := s.nonzero(a[c*n+i:c*n+j], part)
			kern.AxpyCSR(dst[c*d:(c+1)*d], coef, r.Start, r.Col, r.Val, rows)
		}
	})
}

// tiles calls f for the rows that all k classes use before the next are loaded.
func (sparseRows) tiles(k int, v View, f func(i, j int, part View)) {
	n, size := v.Len(), tile
	if k == 1 {
		size = max(1, n)
	}
	for i := 0; i < n; i += size {
		j := min(i+size, n)
		f(i, j, v.part(i, j))
	}
}

func (r sparseRows) outer(dst []float64, side int, a []float64, v View, scratch []float64) []float64 {
	start, rows := r.matrix(v)
	return kern.OuterCSR(dst, side, a, start, r.Col, r.Val, rows, scratch)
}

// sparsePack is how such rows lie in a chunk.
var sparsePack = packForm{
	sizes: func(rows, nonzero, _ int) []int { return []int{4 * (rows + 1), 4 * nonzero, 4 * nonzero} },
	open: func(k *Block, _ *schema.Schema, parts [][]byte) {
		k.Start, k.Col, k.Val = numbers[int32](parts[0]), numbers[int32](parts[1]), numbers[float32](parts[2])
	},
}

// sparseFiller makes such rows.
type sparseFiller struct {
	zeros      bool // those of a row's numbers that are 0 stay, too
	start, col []int32
	val        []float32
}

func (f *sparseFiller) begin(*Arena) {
	f.start, f.col, f.val = append(f.start[:0], 0), f.col[:0], f.val[:0]
}

func (f *sparseFiller) add(_ int, r *record) {
	if !r.dropped {
		for i, v := range r.val {
			if v != 0 || f.zeros {
				f.col, f.val = append(f.col, r.col[i]), append(f.val, v)
			}
		}
	}
	f.start = append(f.start, int32(len(f.col)))
}

func (f *sparseFiller) end(k *Block, memory *Arena) { k.setSparse(memory, f.start, f.col, f.val) }
