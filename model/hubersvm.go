package model

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/model/margin"
)

// Support vector machine with a rounded hinge, for methods that need a smooth
// loss (P2; algorithms.md §3.1). With y = ±1, u = 1 − yz and width h > 0:
//
//	φ = 0            u < −h
//	  = (h + u)²/4h  |u| ≤ h
//	  = u            u > h
//	s = −y·min(1, max(0, (h + u)/2h)),  ∂s/∂z ≤ 1/2h
type rounded struct{ h float64 }

// HuberSVM is the configuration of the support vector machine with a rounded hinge.
type HuberSVM struct {
	Width float64 `yaml:"width" json:"width,omitempty" type:"number" default:"0.5" doc:"half-width of the rounded corner"`
}

var huberSVMEntry = Entry{Name: "huber-svm", About: "support vector machine with a rounded hinge", Label: TwoClasses,
	Config: HuberSVM{}, Margin: margin.Words{What: "margin w·x"}}

func (c HuberSVM) New(opt Options) (Model, error) {
	if err := needTwo("huber-svm", opt.Classes); err != nil {
		return nil, err
	}
	h := c.Width
	if h == 0 {
		h = 0.5
	}
	if !(h >= 1e-6 && h <= 1e6) {
		return nil, fmt.Errorf("model: huber-svm: width %v; choose a number from 1e-6 to 1e6, or 0 for 0.5", h)
	}
	r := opt.NormBound
	start := 1. // u = 1
	if h > 1 {
		start = (h + 1) * (h + 1) / (4 * h)
	}
	return &glm{name: "huber-svm", features: opt.Dim, classes: 2, link: rounded{h}, facts: Facts{
		NormBound: r, Lipschitz: r, Smooth: r * r / (2 * h), HessLipschitz: math.Inf(1), Convex: true, Centered: true,
		OneMargin: true, Curved: true, Coded: true, Start: start,
	}}, nil
}

func (l rounded) loss(dst, z, y []float64) {
	for i, v := range z {
		switch u := 1 - y[i]*v; {
		case u < -l.h:
			dst[i] = 0
		case u <= l.h:
			dst[i] = (l.h + u) * (l.h + u) / (4 * l.h)
		default:
			dst[i] = u
		}
	}
}

func (l rounded) slope(dst, z, y []float64) {
	for i, v := range z {
		u := 1 - y[i]*v
		dst[i] = -y[i] * min(1, max(0, (l.h+u)/(2*l.h)))
	}
}

func (l rounded) curve(dst, z, y []float64) {
	for i, v := range z {
		switch u := 1 - y[i]*v; {
		case u < -l.h || u > l.h:
			dst[i] = 0
		case u == u:
			dst[i] = 1 / (2 * l.h)
		default:
			dst[i] = math.NaN()
		}
	}
}
