// Package kern holds the float kernels under the models: margins of rows, weighted
// sums of rows, row norms, the few vector functions that a loss needs, matrix
// products, sums of outer products, and transforms of random bytes. Rows are float32 or float64; parameters,
// margins and sums over rows are float64 (R14).
//
// Each kernel is plain Go, and has twins in assembly for AVX2 and AVX-512, which
// avo, a separate module, generates: go generate. The best is chosen at start-up;
// SOTTO_KERN forces one (Variable). Twins give the same bits, NaN payloads apart.
//
// The interface is slices and strides only. A dense matrix is x with a stride: row i
// is x[i*stride : i*stride+n]. A sparse one is (start, col, val): row i is
// col[start[i]:start[i+1]] and val likewise, col ascending. Where a kernel takes
// rows, they are the numbers of the rows meant; nil means rows 0, 1, ….
//
// Two promises carry the exact sums of package model:
//
//   - A margin is eight partial sums, one for each column number modulo 8, in
//     ascending column order, each product fused with its addition; lanes adds them
//     up. It does not depend on the row's position, on its neighbors, on how rows are
//     grouped, or on whether zeros are stored: the dense and the sparse form of a
//     row have the same margin, bit for bit.
//   - A weighted sum multiplies and adds in float64, row after row. Where every
//     weight is a multiple of a power of two u, every value one of v, and all
//     partial sums stay below 2⁵³·u·v, each product and each sum is exact, so
//     the result depends on no order.
package kern

import "math"

//go:generate go run -C avo . -pkg kern -out ../kern_amd64.s -stubs ../stubs_amd64.go

// row is row number i of the listed rows: n values of it.
func row[T float](x []T, stride int, rows []int32, i, n int) []T {
	if rows != nil {
		i = int(rows[i])
	}
	return x[i*stride : i*stride+n]
}

// need panics unless each listed row of n values lies in x; without a list, m rows.
func need[T float](x []T, stride int, rows []int32, m, n int) {
	if m == 0 {
		return
	}
	if stride < 0 || len(x) < n {
		panic("kern: a row reaches beyond the matrix")
	}
	last := math.MaxInt32 // number of the last row that fits
	if stride > 0 {
		last = (len(x) - n) / stride
	}
	if rows == nil {
		if m-1 > last {
			panic("kern: a row reaches beyond the matrix")
		}
		return
	}
	for _, r := range rows[:m] {
		if uint(r) > uint(last) {
			panic("kern: a row reaches beyond the matrix")
		}
	}
}

// span is the range in col and val of the i-th listed sparse row.
func span(start, rows []int32, i int) (from, to int) {
	if rows != nil {
		i = int(rows[i])
	}
	return int(start[i]), int(start[i+1])
}

type float interface{ float32 | float64 }

// Dot sets dst[i] = Σ_j x_ij·w_j for the len(dst) rows named, in float64.
// A row has len(w) values.
func Dot[T float](dst []float64, x []T, stride int, rows []int32, w []float64) {
	if dotFast(dst, x, stride, rows, w) {
		return
	}
	for i := range dst {
		dst[i] = dot(row(x, stride, rows, i, len(w)), w)
	}
}

// lanes adds up the eight partial sums of a row. The last 0 turns −0 into 0.
func lanes(s0, s1, s2, s3, s4, s5, s6, s7 float64) float64 {
	return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7)) + 0
}

func dot[T float](x []T, w []float64) float64 {
	x = x[:len(w)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	for len(w) >= 8 {
		s0 = math.FMA(float64(x[0]), w[0], s0)
		s1 = math.FMA(float64(x[1]), w[1], s1)
		s2 = math.FMA(float64(x[2]), w[2], s2)
		s3 = math.FMA(float64(x[3]), w[3], s3)
		s4 = math.FMA(float64(x[4]), w[4], s4)
		s5 = math.FMA(float64(x[5]), w[5], s5)
		s6 = math.FMA(float64(x[6]), w[6], s6)
		s7 = math.FMA(float64(x[7]), w[7], s7)
		x, w = x[8:], w[8:]
	}
	s := [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
	for j, v := range w {
		s[j] = math.FMA(float64(x[j]), v, s[j])
	}
	return lanes(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
}

// DotCSR sets dst[i] = Σ_j x_ij·w_j for the len(dst) sparse rows named.
func DotCSR(dst []float64, start, col []int32, val []float32, rows []int32, w []float64) {
	for i := range dst {
		from, to := span(start, rows, i)
		c, x := col[from:to], val[from:to]
		x = x[:len(c)]
		var s [8]float64
		if !dotSparseFast(&s, c, x, w) {
			for k, j := range c {
				s[j&7] = math.FMA(float64(x[k]), w[j], s[j&7])
			}
		}
		dst[i] = lanes(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
	}
}

// DotMany is Dot for k parameter vectors, one after the other in w: it sets
// dst[c·step+i] = Σ_j x_ij·w_cj for m rows. A row has len(w)/k values. Meanwhile it
// fetches rows of next toward the caches, as many as m: every other one, for AxpyMany
// fetches those between them.
func DotMany(dst []float64, step int, x []float32, stride int, rows []int32, m int, w []float64, k int,
	next [][]float32) {
	if dotManyFast(dst, step, x, stride, rows, m, w, k, next) {
		return
	}
	n := len(w) / k
	for c := range k {
		Dot(dst[c*step:c*step+m], x, stride, rows, w[c*n:(c+1)*n])
	}
}

// Axpy adds weighted rows to dst: dst_j += Σ_i a_i·x_ij over the len(a) rows
// named. A row has len(dst) values. The rows are added in their order, each product
// fused with its addition. For rows that are not listed it also fetches as many rows
// that follow toward the caches.
func Axpy[T float](dst, a []float64, x []T, stride int, rows []int32) {
	if axpyFast(dst, a, x, stride, rows) {
		return
	}
	n, i := len(dst), 0
	for ; i+4 <= len(a); i += 4 { // four rows for one load and store of dst
		axpy4(dst, a[i], a[i+1], a[i+2], a[i+3],
			row(x, stride, rows, i, n), row(x, stride, rows, i+1, n),
			row(x, stride, rows, i+2, n), row(x, stride, rows, i+3, n))
	}
	for ; i < len(a); i++ {
		axpy1(dst, a[i], row(x, stride, rows, i, n))
	}
}

func axpy4[T float](dst []float64, a0, a1, a2, a3 float64, x0, x1, x2, x3 []T) {
	x0, x1, x2, x3 = x0[:len(dst)], x1[:len(dst)], x2[:len(dst)], x3[:len(dst)]
	for j, s := range dst {
		s = math.FMA(a0, float64(x0[j]), s)
		s = math.FMA(a1, float64(x1[j]), s)
		s = math.FMA(a2, float64(x2[j]), s)
		dst[j] = math.FMA(a3, float64(x3[j]), s)
	}
}

func axpy1[T float](dst []float64, a float64, x []T) {
	x = x[:len(dst)]
	for j, s := range dst {
		dst[j] = math.FMA(a, float64(x[j]), s)
	}
}

// AxpyCSR adds weighted sparse rows to dst: dst_j += Σ_i a_i·x_ij over the
// len(a) rows named, in their order.
func AxpyCSR(dst, a []float64, start, col []int32, val []float32, rows []int32) {
	for i, ai := range a {
		from, to := span(start, rows, i)
		c, x := col[from:to], val[from:to]
		if axpySparseFast(dst, ai, c, x) {
			continue
		}
		x = x[:len(c)]
		for k, j := range c {
			dst[j] = math.FMA(ai, float64(x[k]), dst[j])
		}
	}
}

// AxpyMany is Axpy for k vectors of weights and k sums, one after the other in dst:
// dst_cj += Σ_i a[c·step+i]·x_ij over m rows. A row has len(dst)/k values. next is that of
// DotMany.
func AxpyMany(dst, a []float64, step int, x []float32, stride int, rows []int32, m, k int, next [][]float32) {
	if axpyManyFast(dst, a, step, x, stride, rows, m, k, next) {
		return
	}
	n := len(dst) / k
	for c := range k {
		Axpy(dst[c*n:(c+1)*n], a[c*step:c*step+m], x, stride, rows)
	}
}

// Abs1 sets dst[i] = Σ_j |x_ij| for the len(dst) rows named, each of n values.
// The sum is never below the true one: it is rounded up by more than all its
// rounding errors together.
func Abs1(dst []float64, x []float32, stride int, rows []int32, n int) {
	if !normFast(1, dst, x, stride, rows, n) {
		for i := range dst {
			dst[i] = abs1(row(x, stride, rows, i, n))
		}
	}
	for i := range dst {
		dst[i] *= above(n)
	}
}

// Abs1CSR is Abs1 for sparse rows of n values, zeros included.
func Abs1CSR(dst []float64, start, col []int32, val []float32, rows []int32, n int) {
	for i := range dst {
		from, to := span(start, rows, i)
		var s [8]float64
		for k, v := range val[from:to] {
			s[col[from+k]&7] += math.Abs(float64(v))
		}
		dst[i] = lanes(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]) * above(n)
	}
}

func abs1(x []float32) float64 {
	var s [8]float64
	for j, v := range x {
		s[j&7] += math.Abs(float64(v))
	}
	return lanes(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
}

// above covers the rounding of a sum of at most n numbers that are not negative: its
// relative error is at most (n−1)·2⁻⁵³ to first order in any order of additions, and
// the factor covers twice that. It depends on n, not on the stored values, so both forms
// round alike.
func above(n int) float64 { return 1 + float64(n)*0x1p-52 }

// Norm2 sets dst[i] = ‖x_i‖₂ for the len(dst) rows named, each of n values, rounded
// up: it is never below the true norm, unless squares underflow.
func Norm2(dst []float64, x []float32, stride int, rows []int32, n int) {
	if !normFast(2, dst, x, stride, rows, n) {
		for i := range dst {
			var s [8]float64
			for j, v := range row(x, stride, rows, i, n) {
				s[j&7] = math.FMA(float64(v), float64(v), s[j&7])
			}
			dst[i] = lanes(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7])
		}
	}
	for i, s := range dst { // the root halves the relative error of the sum, and adds its own
		dst[i] = math.Sqrt(s) * above(n+1)
	}
}

// Coef sets dst_i = c_i·s_i, the weights of a sum of rows. A row with c_i = 0
// gets 0 whatever s_i is. With unit > 0, a power of two, the product is
// truncated toward zero to a multiple of unit, and counts as 0 where it is not
// finite. With unit = 0 it is not changed. dst may be c or s.
func Coef(dst, c, s []float64, unit float64) {
	n := coefFast(dst, c, s, unit)
	dst, c, s = dst[n:], c[n:len(dst)], s[n:len(dst)]
	if unit == 0 {
		for i, ci := range c {
			if ci == 0 {
				dst[i] = 0
				continue
			}
			dst[i] = ci * s[i]
		}
		return
	}
	inv := 1 / unit // a power of two: exact, as are the two scalings below
	for i, ci := range c {
		t := math.Trunc(ci * s[i] * inv)
		if !(math.Abs(t) <= math.MaxFloat64) {
			t = 0
		}
		dst[i] = t*unit + 0 // not −0
	}
}

// The functions of one number that have kernels.
const (
	pointExp = iota
	pointSigmoid
	pointSoftplus
)

// Exp sets dst_i = e^(z_i). The relative error is below 2⁻⁵² where the result is a
// normal number. NaN stays NaN. dst may be z.
func Exp(dst, z []float64) {
	if pointFast(pointExp, dst, z) {
		return
	}
	z = z[:len(dst)]
	for i, v := range z {
		dst[i] = exp(v)
	}
}

// Sigmoid sets dst_i = 1/(1+e^(−z_i)) without overflow: the relative error is below
// 2⁻⁵¹, near 0 too. NaN stays NaN. dst may be z.
func Sigmoid(dst, z []float64) {
	if pointFast(pointSigmoid, dst, z) {
		return
	}
	z = z[:len(dst)]
	for i, v := range z {
		e := exp(-math.Abs(v))
		num := 1.0
		if math.Signbit(v) {
			num = e
		}
		dst[i] = num / (1 + e)
	}
}

// Log1pExp sets dst_i = ln(1+e^(z_i)) without overflow: the relative error is below
// 2⁻⁵¹. NaN stays NaN. dst may be z.
func Log1pExp(dst, z []float64) {
	if pointFast(pointSoftplus, dst, z) {
		return
	}
	z = z[:len(dst)]
	for i, v := range z {
		dst[i] = log1p(exp(-math.Abs(v))) + max(v, 0)
	}
}
