package kern

// decimalsFast does the first numbers, a multiple of eight, and returns how many.
func decimalsFast(dst []float64, x []float32) int {
	n := len(x) &^ 7
	if use != avx512 || n == 0 {
		return 0
	}
	decimalsAVX512(&dst[0], &x[0], n)
	return n
}
