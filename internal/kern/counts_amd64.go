package kern

// The kernels take eight numbers at a time, and each function here returns how many it took.

func spillFast(counts []int64, acc []float64, scale float64, add bool) int {
	n := len(counts) &^ 7
	if use != avx512 || n == 0 {
		return 0
	}
	if add {
		spillAVX512(&counts[0], &acc[:n][0], n, scale)
	} else {
		moveAVX512(&counts[0], &acc[:n][0], n, scale)
	}
	return n
}

func roundShiftFast(v []int64, most uint) int {
	n := len(v) &^ 7
	if use != avx512 || n == 0 {
		return 0
	}
	roundShiftAVX512(&v[0], n, uint64(most))
	return n
}

func releaseFast(dst []float64, counts []int64, shift uint, grid, size float64) int {
	n := len(counts) &^ 7
	if use != avx512 || n == 0 {
		return 0
	}
	// The kernel has no division: see release in avo/counts.go.
	if !(grid > 0x1p-800 && grid < 0x1p800 && size > 0x1p-100 && size < 0x1p100) {
		return 0
	}
	releaseAVX512(&dst[:n][0], &counts[0], n, uint64(shift), grid, size, 1/size)
	return n
}
