package kern

import "math"

// Padded is the number of columns that Whole and Gram give a row of n values: n rounded up
// to a multiple of 8.
func Padded(n int) int { return (n + 7) &^ 7 }

// Whole sets row i of dst, side apart, to a_i·x_i rounded toward zero to whole numbers, for the len(a)
// rows named, each of n values; the rest of side = Padded(n) columns is 0. A row with a_i = 0
// becomes 0, and so does a value that is not finite.
func Whole[T float](dst []float64, side int, a []float64, x []T, stride int, rows []int32, n int) {
	single, ok := any(x).([]float32)
	if len(a) == 0 || ok && wholeFast(dst, side, a, single, stride, rows, n) {
		return
	}
	for i, ai := range a {
		to := dst[i*side:][:side]
		clear(to[n:])
		if ai == 0 {
			clear(to[:n])
			continue
		}
		for j, v := range row(x, stride, rows, i, n) {
			to[j] = whole(ai, float64(v))
		}
	}
}

// whole is a·v rounded toward zero, 0 where it is not finite, and never −0.
func whole(a, v float64) float64 {
	t := math.Trunc(a * v)
	if !(math.Abs(t) <= math.MaxFloat64) {
		return 0
	}
	return t + 0
}

// Gram adds VᵀV to the upper triangle of dst, for V of m rows of side whole numbers, side a multiple
// of 8. Entries below the diagonal get any value. The sum is exact as long as the
// magnitudes of the products in an entry sum up to less than 2⁵³, whatever set of kernels.
func Gram(dst []float64, side int, v []float64, m int) {
	if m == 0 || gramFast(dst, side, v, m) {
		return
	}
	i := 0
	for ; i+4 <= m; i += 4 {
		v0, v1, v2, v3 := v[i*side:][:side], v[(i+1)*side:][:side], v[(i+2)*side:][:side], v[(i+3)*side:][:side]
		for j := range side {
			a0, a1, a2, a3 := v0[j], v1[j], v2[j], v3[j]
			to := dst[j*side+j : (j+1)*side]
			b0, b1, b2, b3 := v0[j:], v1[j:], v2[j:], v3[j:]
			b0, b1, b2, b3 = b0[:len(to)], b1[:len(to)], b2[:len(to)], b3[:len(to)]
			for k, s := range to {
				to[k] = s + a0*b0[k] + a1*b1[k] + a2*b2[k] + a3*b3[k]
			}
		}
	}
	for ; i < m; i++ {
		r := v[i*side:][:side]
		for j, a := range r {
			if a == 0 {
				continue
			}
			to := dst[j*side+j : (j+1)*side]
			for k, b := range r[j:] {
				to[k] += a * b
			}
		}
	}
}

// OuterCSR is Whole and Gram for sparse rows: it adds only what is not 0. It returns buf,
// its memory, perhaps grown.
func OuterCSR(dst []float64, side int, a []float64, start, col []int32, val []float32, rows []int32,
	buf []float64) []float64 {
	for i, ai := range a {
		if ai == 0 {
			continue
		}
		from, to := span(start, rows, i)
		c := col[from:to]
		buf = buf[:0]
		for _, v := range val[from:to] {
			buf = append(buf, whole(ai, float64(v)))
		}
		for k, j := range c {
			t := buf[k]
			if t == 0 {
				continue
			}
			to := dst[int(j)*side:][:side]
			for l := k; l < len(c); l++ {
				to[c[l]] += t * buf[l]
			}
		}
	}
	return buf
}
