package model

import (
	"fmt"
	"math"
)

// Linear regression of a numeric label, clamped to its public bounds by the
// encoding:
//
//	φ(z, y) = ½(z − y)²
//	s = z − y, unbounded
//	∂s/∂z = 1
type linear struct{}

func newLinear(opt Options) (Model, error) {
	if opt.Classes != 0 {
		return nil, fmt.Errorf("model: linear needs a numeric label, but the label has %d classes; use logistic for two, softmax for more", opt.Classes)
	}
	r := opt.NormBound
	return &glm{name: "linear", features: opt.Dim, link: linear{}, facts: Facts{
		NormBound: r, Lipschitz: math.Inf(1), Smooth: r * r, HessLipschitz: 0, Convex: true, Centered: true, Shifted: true, Curved: true, Bounded: true, Start: math.Inf(1),
	}}, nil
}

func (linear) loss(dst, z, y []float64) {
	for i, v := range z {
		e := v - y[i]
		dst[i] = e * e / 2
	}
}

func (linear) slope(dst, z, y []float64) {
	for i, v := range z {
		dst[i] = v - y[i]
	}
}

func (linear) curve(dst, z, y []float64) {
	for i, v := range z {
		e := v - y[i]
		dst[i] = 1 + (e - e) // NaN where the error is not finite
	}
}
