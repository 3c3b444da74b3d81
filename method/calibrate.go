package method

import "math"

// calibrated returns the factor a and the offset b of the margins of a model of two classes, after one look at them
// (oracle.Margins, with curvature) at a0 and b0. The law of θ = (b, a·bound) is Gaussian before, around θ0, with the
// deviations tb and ta·bound; the noisy slope is taken as g = H(θ0 − θ) + noise + sampling, of covariances σ²I and H,
// so the mean afterward is θ0 − PH(HPH + σ²I + H)⁻¹g. noise is σ, the standard deviation of a number of the slope.
func calibrated(answer []float64, rows, noise, bound, a0, b0, ta, tb float64) (a, b float64) {
	// H is noisy: it is brought to what curvatures of rows can be, and made positive definite.
	h := min(max(answer[2], 0.02*rows), rows/4)
	m := min(max(answer[4], 0.001*rows), h)
	most := 0.98 * math.Sqrt(h*m)
	c := min(max(answer[3], -most), most)
	p, q := tb*tb, ta*bound*ta*bound
	// x solves (HPH + σ²I + H)x = g.
	s11, s12, s22 := h*h*p+c*c*q+noise*noise+h, c*(h*p+m*q)+c, c*c*p+m*m*q+noise*noise+m
	g1, g2, det := answer[0], answer[1], s11*s22-s12*s12
	x1, x2 := (s22*g1-s12*g2)/det, (s11*g2-s12*g1)/det
	return factorWithin(a0, a0-q*(c*x1+m*x2)/bound), b0 - p*(h*x1+c*x2)
}

// calibratedClasses is calibrated for a model with a margin for each class, where H is taken as diagonal. Offsets have
// the mean 0. The curvature of a factor is taken as at least clear deviations of its noise: one that noise made small
// would move the factor far.
func calibratedClasses(answer []float64, rows, noise, bound, a0 float64, b0 []float64,
	ta, tb, clear float64) (a float64, b []float64) {
	k := len(b0)
	move := func(j int, h, deviation float64) float64 {
		p := deviation * deviation
		return p * h * answer[j] / (h*h*p + noise*noise + h)
	}
	b = make([]float64, k)
	mean := 0.0
	for c := range b {
		b[c] = b0[c] - move(c, min(max(answer[k+1+c], 0.02*rows/float64(k)), rows/4), tb)
		mean += b[c] / float64(k)
	}
	for c := range b {
		b[c] -= mean
	}
	return factorWithin(a0, a0-move(k, min(max(answer[2*k+1], 0.001*rows, clear*noise), rows/2), ta*bound)/bound), b
}

// factorWithin moves a factor on its logarithm: the slope falls less and less toward a factor of 0, and a straight step
// down would go too far. It keeps the factor from 0.02 to 1.3 times what it was.
func factorWithin(a0, a float64) float64 { return a0 * min(max(math.Exp((a-a0)/a0), 0.02), 1.3) }
