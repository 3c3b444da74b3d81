package kern

import "unsafe"

func axpyWholeFast(dst, a []float64, x []float32, stride int, rows []int32, unit float64) bool {
	if use == plain {
		return false
	}
	m, n := len(a), len(dst)
	need(x, stride, rows, m, n)
	if rows != nil {
		rows = rows[:m]
	}
	run := axpyWholeAVX2
	if use == avx512 {
		run = axpyWholeAVX512
	}
	run(unsafe.SliceData(dst), n, unsafe.SliceData(a), unsafe.SliceData(x), stride, unsafe.SliceData(rows), m, unit)
	return true
}

// singles is how many of n numbers of 4 bytes the kernels in force take: whole registers.
func singles(n int) int {
	switch use {
	case avx512:
		return n &^ 15
	case avx2:
		return n &^ 7
	}
	return 0
}

func highestFast(dst []float32, from []int32, x []float32, k int32) int {
	n := singles(len(dst))
	if n == 0 {
		return 0
	}
	d, f, v := &dst[0], &from[:n][0], &x[:n][0]
	if use == avx512 {
		highestAVX512(d, f, v, n, k)
	} else {
		highestAVX2(d, f, v, n, k)
	}
	return n
}

func addWhereFast(dst, x []float32, from []int32, k int32) int {
	n := singles(len(dst))
	if n == 0 {
		return 0
	}
	d, v, f := &dst[0], &x[:n][0], &from[:n][0]
	if use == avx512 {
		addWhereAVX512(d, v, f, n, k)
	} else {
		addWhereAVX2(d, v, f, n, k)
	}
	return n
}

func addFast(dst, x []float32) int {
	n := singles(len(dst))
	if n == 0 {
		return 0
	}
	d, v := &dst[0], &x[:n][0]
	if use == avx512 {
		add32AVX512(d, v, n)
	} else {
		add32AVX2(d, v, n)
	}
	return n
}

func linesFast(add bool, dst, src []float32, from []int32, line int) bool {
	if use == plain || line%8 != 0 || line == 0 || len(from) == 0 {
		return false
	}
	packed, image := dst, src
	if add {
		packed, image = src, dst
	}
	if len(packed) < len(from)*line {
		panic("kern: lines reach beyond the slice")
	}
	for _, f := range from {
		if f < 0 || int(f)+line > len(image) {
			panic("kern: lines reach beyond the slice")
		}
	}
	if add {
		addLines(&dst[0], &src[0], &from[0], len(from), line)
	} else {
		copyLines(&dst[0], &src[0], &from[0], len(from), line)
	}
	return true
}
