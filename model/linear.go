package model

import (
	"math"

	"github.com/sottodp/sotto/model/margin"
)

// Linear regression of a numeric label, clamped to its public bounds by the
// encoding:
//
//	φ(z, y) = ½(z − y)²
//	s = z − y, unbounded
//	∂s/∂z = 1
type linear struct{}

// Linear is the configuration of linear regression, which has no field.
type Linear struct{}

var linearEntry = Entry{Name: "linear", About: "linear regression by least squares", Label: Number, Config: Linear{},
	Margin: margin.Words{What: "prediction"}}

func (Linear) New(opt Options) (Model, error) {
	if err := needNumber("linear", opt.Classes); err != nil {
		return nil, err
	}
	r := opt.NormBound
	return &glm{name: "linear", features: opt.Dim, link: linear{}, facts: Facts{
		NormBound: r, Lipschitz: math.Inf(1), Smooth: r * r, HessLipschitz: 0, Convex: true, Centered: true, Shifted: true,
		Curved: true, Bounded: true, Start: math.Inf(1),
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
