package kern

// SumSquares is Σ v_j², as four partial sums, one for each j modulo 4.
func SumSquares(v []float64) float64 {
	var s [4]float64
	v = v[squaresFast(&s, v):]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for ; len(v) >= 4; v = v[4:] {
		s0, s1, s2, s3 = s0+v[0]*v[0], s1+v[1]*v[1], s2+v[2]*v[2], s3+v[3]*v[3]
	}
	return sumSquares4(s0, s1, s2, s3, v)
}

// Descend sets w to w − eta·v, and returns SumSquares(v).
func Descend(w, v []float64, eta float64) float64 {
	var s [4]float64
	n := descendFast(&s, w, v, eta)
	w, v = w[n:len(v)], v[n:]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for ; len(v) >= 4 && len(w) >= 4; w, v = w[4:], v[4:] {
		s0, s1, s2, s3 = s0+v[0]*v[0], s1+v[1]*v[1], s2+v[2]*v[2], s3+v[3]*v[3]
		w[0] -= eta * v[0]
		w[1] -= eta * v[1]
		w[2] -= eta * v[2]
		w[3] -= eta * v[3]
	}
	for i, x := range v {
		w[i] -= eta * x
	}
	return sumSquares4(s0, s1, s2, s3, v)
}

// Approach moves the numbers of dst toward those of v: dst_j += (v_j − dst_j)/all.
func Approach(dst, v []float64, all float64) {
	n := approachFast(dst, v, all)
	dst, v = dst[n:], v[n:len(dst)]
	for j, x := range v {
		dst[j] += (x - dst[j]) / all
	}
}

// sumSquares4 adds the squares of up to three numbers to four partial sums, and these up.
func sumSquares4(s0, s1, s2, s3 float64, v []float64) float64 {
	s := [4]float64{s0, s1, s2, s3}
	for i, x := range v {
		s[i] += x * x
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}
