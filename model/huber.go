package model

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sottodp/sotto/model/margin"
)

// Huber regression of a numeric label, for labels of which some lie far off (Huber 1964). With e = z − y and width
// h > 0:
//
//	φ(z, y) = ½e²          |e| ≤ h
//	        = h(|e| − ½h)  |e| > h
//	s = max(−h, min(h, e)),  |s| ≤ h
//	∂s/∂z = 1 where |e| ≤ h, else 0
//
// |s| = min(h, √(2φ)) is a function of the loss alone. Unlike that of linear regression the gradient is bounded, by
// h·R.
type huber struct{ h float64 }

// Huber is the configuration of Huber regression.
type Huber struct {
	Width float64 `yaml:"width" json:"width,omitempty" type:"number" default:"half the label's scale, or a tenth of its range" doc:"error beyond which the loss grows linearly, in the label's unit"`
}

var huberEntry = Entry{Name: "huber",
	About: "linear regression by the Huber loss, for labels of which some lie far off", Label: Number, Config: Huber{},
	Small: Huber{Width: 1}, Margin: margin.Words{What: "prediction"}}

// Choose sets the width.
func (c Huber) Choose(opt Options) Config {
	c.Width = cmp.Or(c.Width, opt.LabelScale/2, (opt.LabelMax-opt.LabelMin)/10)
	return c
}

func (c Huber) New(opt Options) (Model, error) {
	if err := needNumber("huber", opt.Classes); err != nil {
		return nil, err
	}
	if h := c.Width; !(h > 0) || math.IsInf(h*h, 1) || h*h == 0 {
		return nil, fmt.Errorf("model: huber: width: found %v; choose a number above 0, in the unit of the label", h)
	}
	r := opt.NormBound
	return &glm{name: "huber", features: opt.Dim, link: huber{c.Width}, facts: Facts{
		NormBound: r, Lipschitz: c.Width * r, Smooth: r * r, HessLipschitz: math.Inf(1),
		Convex: true, Centered: true, Shifted: true, Curved: true, Bounded: true, Start: math.Inf(1),
	}}, nil
}

func (l huber) loss(dst, z, y []float64) {
	for i, v := range z {
		if e := math.Abs(v - y[i]); e > l.h {
			dst[i] = l.h * (e - l.h/2)
		} else {
			dst[i] = e * e / 2
		}
	}
}

func (l huber) slope(dst, z, y []float64) {
	for i, v := range z {
		dst[i] = max(-l.h, min(l.h, v-y[i]))
	}
}

func (l huber) curve(dst, z, y []float64) {
	for i, v := range z {
		switch e := v - y[i]; {
		case math.Abs(e) <= l.h:
			dst[i] = 1
		case e == e:
			dst[i] = 0
		default:
			dst[i] = math.NaN()
		}
	}
}
