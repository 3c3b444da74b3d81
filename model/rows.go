package model

import (
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
)

// dense is the matrix of v for the kernels: x with its stride, and the row
// numbers, or nil where x starts at the first row of a range.
func dense(v data.View) (x []float32, stride int, rows []int32) {
	if v.Rows != nil {
		return v.X, v.Block.Dim, v.Rows
	}
	return v.X[v.From*v.Block.Dim:], v.Block.Dim, nil
}

// sparse is the same for a sparse block.
func sparse(v data.View) (start, col []int32, val []float32, rows []int32) {
	if v.Rows != nil {
		return v.Start, v.Col, v.Val, v.Rows
	}
	return v.Start[v.From:], v.Col, v.Val, nil
}

// margins sets z_i = ⟨w, x_i⟩.
func margins(z, w []float64, v data.View, ws *Workspace) {
	if v.Coded() {
		ws.codedMargins(z, w, 1, v)
		return
	}
	if v.Start != nil {
		start, col, val, rows := sparse(v)
		kern.DotCSR(z, start, col, val, rows, w)
		return
	}
	x, stride, rows := dense(v)
	kern.Dot(z, x, stride, rows, w)
}

// RowNorms sets dst_i = ‖x_i‖_p, never understated.
func RowNorms(dst []float64, v data.View, p int) {
	switch p {
	case 1:
		switch {
		case v.Pixels != nil:
			byteSizes(dst, v)
			return
		case v.Short != nil:
			shortSizes(dst, v)
			return
		}
		if v.Start != nil {
			start, col, val, rows := sparse(v)
			kern.Abs1CSR(dst, start, col, val, rows, v.Block.Dim)
			return
		}
		x, stride, rows := dense(v)
		kern.Abs1(dst, x, stride, rows, v.Block.Dim)
	case 2:
		for i := range dst {
			dst[i] = float64(v.Norm[v.Row(i)])
		}
	default:
		panic("model: gradient norms exist for p = 1 and p = 2")
	}
}

// addRows sets dst += Σ a_i·x_i. It skips rows with a_i = 0: half of an SVM's
// rows, and all that a clip rule rejected.
func addRows(dst, a []float64, v data.View, ws *Workspace) {
	if v.Start == nil && v.Rows == nil && !slices.Contains(a, 0) {
		x, stride, rows := dense(v)
		kern.Axpy(dst, a, x, stride, rows)
		return
	}
	coef, rows := ws.coef[:0], ws.rows[:0]
	for i, ai := range a {
		if ai != 0 {
			coef, rows = append(coef, ai), append(rows, int32(v.Row(i)))
		}
	}
	ws.coef, ws.rows = coef, rows
	switch {
	case v.Start != nil:
		kern.AxpyCSR(dst, coef, v.Start, v.Col, v.Val, rows)
	default:
		kern.Axpy(dst, coef, v.X, v.Block.Dim, rows)
	}
}

// part is rows i … j−1 of v.
func part(v data.View, i, j int) data.View {
	if v.Rows != nil {
		v.Rows = v.Rows[i:j]
		return v
	}
	v.From, v.To = v.From+i, v.From+j
	return v
}

// next is the part of v's rows to come that is fetched during rows i … j−1.
func next(v data.View, i, j int) [][]float32 {
	return v.Next[min(i, len(v.Next)):min(j, len(v.Next))]
}

// up is a·b for a, b ≥ 0, never below the true product.
func up(a, b float64) float64 {
	p := float64(a * b) // not fused with what follows
	if p < 0x1p-1022 && a != 0 && b != 0 {
		return p + math.SmallestNonzeroFloat64 // subnormal: the factor below would round away
	}
	return p * (1 + 0x1p-52)
}

// needUnit panics unless unit is 0 or a power of two whose inverse is finite.
func needUnit(unit float64) {
	if unit == 0 {
		return
	}
	if frac, _ := math.Frexp(unit); frac != 0.5 || unit < 0x1p-1000 || unit > 0x1p1000 {
		panic("model: unit must be 0 or a power of two")
	}
}
