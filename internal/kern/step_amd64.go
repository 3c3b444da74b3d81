package kern

// Each function here returns how many numbers its kernel took.

func squaresFast(s *[4]float64, v []float64) int {
	n := len(v) &^ 3
	if use == plain || n == 0 {
		return 0
	}
	squaresAVX2(s, &v[0], n)
	return n
}

func descendFast(s *[4]float64, w, v []float64, eta float64) int {
	n := len(v) &^ 3
	if use == plain || n == 0 {
		return 0
	}
	descendAVX2(s, &w[:n][0], &v[0], n, eta)
	return n
}

func approachFast(dst, v []float64, all float64) int {
	n := len(dst) &^ 7
	switch {
	case use == plain || n == 0:
		return 0
	case use == avx512:
		approachAVX512(&dst[0], &v[:n][0], n, all)
	default:
		approachAVX2(&dst[0], &v[:n][0], n, all)
	}
	return n
}
