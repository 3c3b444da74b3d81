package secondorder

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// TrustRegion minimizes ⟨g, s⟩ + ½·s'Hs over ‖s‖ ≤ radius, globally and to rounding, in the hard
// case too. It returns s and the multiplier µ ≥ max(0, −λ_min) with (H+µI)s = −g and
// µ(radius−‖s‖) = 0, by which the global minimum is known (Moré and Sorensen 1983). g and H are
// finite, radius is above 0.
func TrustRegion(h *mat.SymDense, g []float64, radius float64) (s []float64, mu float64, err error) {
	if err := finite(h); err != nil {
		return nil, 0, err
	}
	var e mat.EigenSym
	if !e.Factorize(h, true) {
		return nil, 0, errEigen
	}
	lambda := e.Values(nil)
	var q mat.Dense
	e.VectorsTo(&q)
	d := len(g)
	along := mat.NewVecDense(d, nil) // g in the eigenvectors' coordinates
	along.MulVec(q.T(), mat.NewVecDense(d, g))

	// µ = least + shift. The differences λ_i + least are formed once, so that a shift far below
	// least keeps all its digits: the neighborhood of the hard case.
	least := math.Max(0, -lambda[0])
	c := make([]float64, d) // s in the eigenvectors' coordinates
	length := func(shift float64) float64 {
		for i, l := range lambda {
			c[i] = 0
			if v := along.AtVec(i); v != 0 {
				c[i] = -v / ((l + least) + shift)
			}
		}
		return floats.Norm(c, 2)
	}
	low, high := 0.0, floats.Norm(g, 2)/radius // at high it is short enough
	if length(0) <= radius {
		high = 0
	}
	for high > 0 {
		mid := low + (high-low)/2
		if mid == low || mid == high {
			break
		}
		if length(mid) > radius {
			low = mid
		} else {
			high = mid
		}
	}
	if short := length(high); least > 0 && short < radius*(1-1e-12) {
		// Hard case: (H+least·I)s = −g has a solution within the radius. Along the
		// smallest eigenvector nothing changes but the length.
		rest := math.Max(0, radius*radius-(short*short-c[0]*c[0]))
		c[0] = math.Copysign(math.Sqrt(rest), c[0])
	}
	out := mat.NewVecDense(d, nil)
	out.MulVec(&q, mat.NewVecDense(d, c))
	return out.RawVector().Data, least + high, nil
}
