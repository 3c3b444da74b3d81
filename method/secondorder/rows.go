package secondorder

import (
	"errors"
	"math"

	"github.com/sottodp/sotto/privacy/sample"
)

// Rows is how many rows the analysis needs: with as many, the noise of every step stays within (9), but for a
// probability of Miss. It is P4's (12), and (25) for samples of the same share of the rows, with this package's bounds
// on the noise; P4's leave constants open. A line search needs [Constants.SearchRows], too. Noise in a mean falls with
// 1/n and the error of a sample with 1/√n; each may have half of what (9) allows.
func (q Queries) Rows(c Constants, p Phase) (float64, error) {
	n := float64(q.Public.Rows)
	gradient, hessian := math.Min(c.C1*c.Gradient, c.C2*c.Curvature*c.Curvature/c.HessLipschitz), c.C*c.Curvature
	each, rows := Miss/(4*float64(p.Steps)), 1.
	switch s := q.Sampler.(type) {
	case sample.Full:
	case sample.Fixed:
		gradient, hessian = gradient/2, hessian/2
		part := float64(s.M) / n
		rows = math.Max(square(SampleError(1, q.Clip, each)/gradient),
			square(SampleError(1, q.HessClip, each)/hessian)) / part
	default:
		return 0, errors.New("batch: found Poisson samples; P4 has no analysis of them; choose adjacency replace-one, or all rows in every step")
	}
	if q.Off {
		return 0, errors.New("without noise there is nothing to count rows for")
	}
	return math.Ceil(math.Max(rows,
		n*math.Max(q.GradientNoise(p.Noise, each)/gradient, q.HessianNoise(p.Noise, each)/hessian))), nil
}

func square(x float64) float64 { return x * x }
