package model

import (
	"math"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model/margin"
)

// Logistic regression of two classes, y = ±1:
//
//	φ(z, y) = ln(1 + e^(−yz))
//	s = −y·σ(−yz),  |s| < 1
//	∂s/∂z = σ(z)σ(−z) ≤ 1/4,  |∂²s/∂z²| ≤ 1/(6√3)
type logistic struct{}

// Logistic is the configuration of logistic regression, which has no field.
type Logistic struct{}

var logisticEntry = Entry{Name: "logistic", About: "logistic regression", Label: TwoClasses, Config: Logistic{},
	Margin: margin.Words{What: "log-odds of the class %q", Ratio: "odds ratio"}}

func (Logistic) New(opt Options) (Model, error) {
	if err := needTwo("logistic", opt.Classes); err != nil {
		return nil, err
	}
	r := opt.NormBound
	return &glm{name: "logistic", features: opt.Dim, classes: 2, link: logistic{}, facts: Facts{
		NormBound: r, Lipschitz: r, Smooth: r * r / 4, HessLipschitz: r * r * r / (6 * math.Sqrt(3)),
		Convex: true, Centered: true, OneMargin: true, Probabilities: true, Curved: true, Bounded: true, Coded: true,
		Start: math.Ln2,
	}}, nil
}

func (logistic) loss(dst, z, y []float64) {
	for i, v := range z {
		dst[i] = -y[i] * v
	}
	kern.Log1pExp(dst, dst)
}

func (logistic) slope(dst, z, y []float64) {
	for i, v := range z {
		dst[i] = -y[i] * v
	}
	kern.Sigmoid(dst, dst)
	for i, v := range y {
		dst[i] *= -v
	}
}

func (logistic) curve(dst, z, y []float64) {
	kern.Sigmoid(dst, z)
	for i, p := range dst {
		dst[i] = p * (1 - p) * (y[i] * y[i]) // NaN for a class that does not exist
	}
}
