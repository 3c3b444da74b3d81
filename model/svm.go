package model

import (
	"math"

	"github.com/sottodp/sotto/model/margin"
)

// Support vector machine: the hinge loss of two classes, y = ±1:
//
//	φ(z, y) = max(0, 1 − yz)
//	s = −y where yz < 1, else 0; at the kink 0, a subgradient
type hinge struct{}

// SVM is the configuration of the support vector machine, which has no field.
type SVM struct{}

var svmEntry = Entry{Name: "svm", About: "support vector machine, by the hinge loss", Label: TwoClasses, Config: SVM{},
	Margin: margin.Words{What: "margin w·x"}}

func (SVM) New(opt Options) (Model, error) {
	if err := needTwo("svm", opt.Classes); err != nil {
		return nil, err
	}
	return &glm{name: "svm", features: opt.Dim, classes: 2, link: hinge{}, facts: Facts{
		NormBound: opt.NormBound, Lipschitz: opt.NormBound,
		Smooth: math.Inf(1), HessLipschitz: math.Inf(1), Convex: true, Centered: true, OneMargin: true, Coded: true, Start: 1,
	}}, nil
}

func (hinge) loss(dst, z, y []float64) {
	for i, v := range z {
		dst[i] = max(0, 1-y[i]*v)
	}
}

func (hinge) slope(dst, z, y []float64) {
	for i, v := range z {
		switch m := y[i] * v; {
		case m >= 1:
			dst[i] = 0
		case m < 1:
			dst[i] = -y[i]
		default:
			dst[i] = math.NaN()
		}
	}
}

// curve is 0 but at the kink, where there is none: no Hessian to work with, and Facts say so.
func (hinge) curve(dst, z, y []float64) { clear(dst) }
