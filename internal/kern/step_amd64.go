package kern

// The kernels take four numbers at a time, and each function here returns how many it took.

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
