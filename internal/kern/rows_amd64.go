package kern

import "unsafe"

// The functions here run the kernels in force and report true, or report false where
// there are none. They check what the kernels read and write.

// lastFour is the last one to three of m rows, filled up to four with the last one.
func lastFour(rows []int32, m int) (r [4]int32) {
	for k := range r {
		i := min(m&^3+k, m-1)
		r[k] = int32(i)
		if rows != nil {
			r[k] = rows[i]
		}
	}
	return r
}

func dotFast[T float](dst []float64, x []T, stride int, rows []int32, w []float64) bool {
	if use == plain {
		return false
	}
	m, n := len(dst), len(w)
	need(x, stride, rows, m, n)
	if rows != nil {
		rows = rows[:m]
	}
	if full := m / 4; full > 0 {
		dot4(unsafe.SliceData(dst), x, stride, unsafe.SliceData(rows), full, w)
	}
	if m%4 != 0 {
		var z [4]float64
		last := lastFour(rows, m)
		dot4(&z[0], x, stride, &last[0], 1, w)
		copy(dst[m&^3:], z[:])
	}
	return true
}

func dot4[T float](z *float64, x []T, stride int, rows *int32, groups int, w []float64) {
	p, c, n := unsafe.Pointer(unsafe.SliceData(x)), unsafe.SliceData(w), len(w)
	switch wide, f32 := use == avx512, unsafe.Sizeof(*new(T)) == 4; {
	case wide && f32:
		dotF32AVX512(z, (*float32)(p), stride, rows, groups, c, n)
	case wide:
		dotF64AVX512(z, (*float64)(p), stride, rows, groups, c, n)
	case f32:
		dotF32AVX2(z, (*float32)(p), stride, rows, groups, c, n)
	default:
		dotF64AVX2(z, (*float64)(p), stride, rows, groups, c, n)
	}
}

func axpyFast[T float](dst, a []float64, x []T, stride int, rows []int32) bool {
	if use == plain {
		return false
	}
	m, n := len(a), len(dst)
	need(x, stride, rows, m, n)
	if rows != nil {
		rows = rows[:m]
	}
	d, c, r, p := unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(rows), unsafe.Pointer(unsafe.SliceData(x))
	switch wide, f32 := use == avx512, unsafe.Sizeof(*new(T)) == 4; {
	case wide && f32:
		axpyF32AVX512(d, n, c, (*float32)(p), stride, r, m)
	case wide:
		axpyF64AVX512(d, n, c, (*float64)(p), stride, r, m)
	case f32:
		axpyF32AVX2(d, n, c, (*float32)(p), stride, r, m)
	default:
		axpyF64AVX2(d, n, c, (*float64)(p), stride, r, m)
	}
	return true
}

// normFast runs a kernel of the row's norm p, or of its square for p = 2.
func normFast(p int, dst []float64, x []float32, stride int, rows []int32, n int) bool {
	if use == plain {
		return false
	}
	m := len(dst)
	need(x, stride, rows, m, n)
	if rows != nil {
		rows = rows[:m]
	}
	if m >= 4 {
		norm4(p, unsafe.SliceData(dst), unsafe.SliceData(x), stride, unsafe.SliceData(rows), m/4, n)
	}
	if m%4 != 0 {
		var z [4]float64
		last := lastFour(rows, m)
		norm4(p, &z[0], unsafe.SliceData(x), stride, &last[0], 1, n)
		copy(dst[m&^3:], z[:])
	}
	return true
}

func norm4(p int, z *float64, x *float32, stride int, rows *int32, groups, n int) {
	switch wide := use == avx512; {
	case p == 1 && wide:
		absF32AVX512(z, x, stride, rows, groups, n)
	case p == 1:
		absF32AVX2(z, x, stride, rows, groups, n)
	case wide:
		squareF32AVX512(z, x, stride, rows, groups, n)
	default:
		squareF32AVX2(z, x, stride, rows, groups, n)
	}
}

// five and ten are the numbers of classes of the kernels for many: dot5, dot10.
const five, ten = 5, 10

// few is how many rows a call takes: their numbers and addresses stay in registers, and in
// dot10 their sums.
const few = 16

// A four is where four rows begin, and two others that are to be fetched meanwhile: an
// argument of dot5. A two is the same of two rows and one, of dot10.
type (
	four = [6]*float32
	two  = [3]*float32
)

// tenWidth is the most columns of a block of dot10: the parameters of ten classes and what
// they meet fit the first-level cache.
const tenWidth = 400

// beginning returns where a row begins: the i-th that is named, or the last.
func beginning(x []float32, stride int, rows []int32, m, i int) *float32 {
	if i = min(i, m-1); rows != nil {
		i = int(rows[i])
	}
	return &x[i*stride]
}

func dotManyFast(dst []float64, step int, x []float32, stride int, rows []int32, m int, w []float64, k int,
	next [][]float32) bool {
	if use != avx512 || m == 0 || k < five || len(w) < k {
		return false
	}
	n := len(w) / k
	need(x, stride, rows, m, n)
	for from := 0; from < m; from += few {
		size := min(m-from, few)
		c := 0
		for ; c+ten <= k; c += ten {
			var groups [few / 2]two
			for i := range (size + 1) / 2 {
				first := from + 2*i
				a := beginning(x, stride, rows, m, first)
				groups[i] = two{a, beginning(x, stride, rows, m, first+1), a} // the third is here already
				if c == 0 && first < len(next) {
					groups[i][2] = unsafe.SliceData(next[first]) // AxpyMany fetches the others
				}
			}
			z, wc := dst[c*step+from:(c+ten-1)*step+from+size], &w[c*n : (c+ten)*n][0]
			blocks := (n + tenWidth - 1) / tenWidth
			width := ((n+blocks-1)/blocks + 7) &^ 7
			if size >= 2 {
				dot10F32AVX512(&z[0], step, &groups[0], size/2, wc, n, n, width)
			}
			if size%2 != 0 {
				var rest [ten * 2]float64
				dot10F32AVX512(&rest[0], 2, &groups[size/2], 1, wc, n, n, width)
				for i := range ten {
					z[i*step+size-1] = rest[2*i]
				}
			}
		}
		for ; c+five <= k; c += five {
			var groups [few / 4]four
			for i := range (size + 3) / 4 {
				g, first := &groups[i], from+4*i
				for r := range 4 {
					g[r] = beginning(x, stride, rows, m, first+r)
				}
				for r := range 2 {
					g[4+r] = g[r]
					if other := first + 2*r; c == 0 && other < len(next) {
						g[4+r] = unsafe.SliceData(next[other])
					}
				}
			}
			z, wc := dst[c*step+from:(c+five-1)*step+from+size], &w[c*n : (c+five)*n][0]
			if size >= 4 {
				dot5F32AVX512(&z[0], step, &groups[0], size/4, wc, n, n)
			}
			if size%4 != 0 {
				var rest [five * 4]float64
				dot5F32AVX512(&rest[0], 4, &groups[size/4], 1, wc, n, n)
				for i := range five {
					copy(z[i*step+size&^3:i*step+size], rest[4*i:])
				}
			}
		}
	}
	for c := k - k%five; c < k; c++ {
		dotFast(dst[c*step:c*step+m], x, stride, rows, w[c*n:(c+1)*n])
	}
	return true
}

func axpyManyFast(dst, a []float64, step int, x []float32, stride int, rows []int32, m, k int, next [][]float32) bool {
	if use != avx512 || m == 0 || k < five || len(dst) == 0 {
		return false
	}
	n := len(dst) / k
	need(x, stride, rows, m, n)
	if rows != nil {
		rows = rows[:m]
	}
	c := 0
	for ; c+ten <= k; c += ten {
		d, coef := dst[c*n:(c+ten)*n], a[c*step:(c+ten-1)*step+m]
		for from := 0; from < m; from += 2 * few {
			var begin [2 * few]*float32
			var fetch [few]*float32
			size, others := min(m-from, 2*few), 0
			for i := range size {
				begin[i] = beginning(x, stride, rows, m, from+i)
				if i%2 == 1 && c == 0 && from+i < len(next) {
					fetch[others] = unsafe.SliceData(next[from+i])
					others++
				}
			}
			axpy10F32AVX512(&d[0], n, n, &coef[from], step, &begin[0], size, &fetch[0], others)
		}
	}
	for ; c+five <= k; c += five {
		d, coef := dst[c*n:(c+five)*n], a[c*step:(c+five-1)*step+m]
		axpy5F32AVX512(&d[0], n, n, &coef[0], step, unsafe.SliceData(x), stride, unsafe.SliceData(rows), m)
	}
	for ; c < k; c++ {
		axpyFast(dst[c*n:(c+1)*n], a[c*step:c*step+m], x, stride, rows)
	}
	return true
}

// pointFast runs a pointwise kernel, which takes eight values at a time.
func pointFast(what int, dst, z []float64) bool {
	if use == plain {
		return false
	}
	z = z[:len(dst)]
	full := len(dst) &^ 7
	if full > 0 {
		point(what, &dst[0], &z[0], full)
	}
	if full < len(dst) {
		var rest [8]float64
		copy(rest[:], z[full:])
		point(what, &rest[0], &rest[0], 8)
		copy(dst[full:], rest[:])
	}
	return true
}

func point(what int, dst, z *float64, n int) {
	wide := use == avx512
	switch {
	case what == pointExp && wide:
		expAVX512(dst, z, n)
	case what == pointExp:
		expAVX2(dst, z, n)
	case what == pointSigmoid && wide:
		sigmoidAVX512(dst, z, n)
	case what == pointSigmoid:
		sigmoidAVX2(dst, z, n)
	case wide:
		softplusAVX512(dst, z, n)
	default:
		softplusAVX2(dst, z, n)
	}
}

// dotSparseFast adds a sparse row's products to the eight sums of a margin.
func dotSparseFast(s *[8]float64, col []int32, x []float32, w []float64) bool {
	if use == plain {
		return false
	}
	if len(col) > 0 && dotSparseFMA(s, &col[0], &x[:len(col)][0], len(col), unsafe.SliceData(w), len(w)) != 0 {
		panic("kern: a column lies outside the row")
	}
	return true
}

func axpySparseFast(dst []float64, a float64, col []int32, x []float32) bool {
	if use == plain {
		return false
	}
	if len(col) > 0 && axpySparseFMA(unsafe.SliceData(dst), a, &col[0], &x[:len(col)][0], len(col), len(dst)) != 0 {
		panic("kern: a column lies outside the row")
	}
	return true
}

// coefFast makes the first coefficients, a multiple of eight, and returns how many.
func coefFast(dst, c, s []float64, unit float64) int {
	n := len(dst) &^ 7
	if use == plain || n == 0 {
		return 0
	}
	d, cp, sp := &dst[0], &c[:n][0], &s[:n][0]
	switch wide := use == avx512; {
	case unit == 0 && wide:
		coefPlainAVX512(d, cp, sp, n)
	case unit == 0:
		coefPlainAVX2(d, cp, sp, n)
	case wide:
		coefAVX512(d, cp, sp, n, unit, 1/unit)
	default:
		coefAVX2(d, cp, sp, n, unit, 1/unit)
	}
	return n
}

// Prefetch asks memory for x, which is soon to be read, and does not wait. It changes
// nothing but time; on other platforms it does nothing.
func Prefetch[T float | int32 | int16 | byte](x []T) {
	if len(x) > 0 && use != plain {
		prefetchLines((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
	}
}
