package kern

// The kernels take sixteen numbers at a time, and each function here returns how many it took.

func narrowFast(dst []float32, src []float64) (n int, finite bool) {
	n = len(src) &^ 15
	if use != avx512 || n == 0 {
		return 0, true
	}
	return n, narrowAVX512(&dst[:n][0], &src[0], n) == 1<<16-1
}

func rectifyFast[T float](z []T) int {
	single, ok := any(z).([]float32)
	n := len(single) &^ 15
	if !ok || use != avx512 || n == 0 {
		return 0
	}
	rectifyAVX512(&single[0], n)
	return n
}

func maskFast[T float](d, a []T) int {
	single, ok := any(d).([]float32)
	n := len(single) &^ 15
	if !ok || use != avx512 || n == 0 {
		return 0
	}
	maskAVX512(&single[0], &any(a).([]float32)[:n][0], n)
	return n
}
