package model

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model/margin"
)

// Poisson regression of a count, y ≥ 0, clamped to its public bounds by the encoding. The model is
// the mean μ = e^z, the loss half the unit deviance (McCullagh and Nelder 1989, §2.3):
//
//	φ(z, y) = e^z − yz + y·ln y − y ≥ 0, and y·ln y = 0 at y = 0
//	s = e^z − y, unbounded
//	∂s/∂z = e^z, unbounded
//
// Deviations: counts need not be whole numbers, since only the mean enters. There is no bound on
// slope or curvature: methods that need one refuse the model.
type poisson struct{}

// Poisson is the configuration of Poisson regression, which has no field.
type Poisson struct{}

var poissonEntry = Entry{Name: "poisson", About: "Poisson regression of a count", Label: Count, Config: Poisson{},
	Margin: margin.Words{What: "logarithm of the expected count", Ratio: "ratio of expected counts"}}

func (Poisson) New(opt Options) (Model, error) {
	if opt.Classes != 0 {
		return nil, fmt.Errorf("model: poisson needs a count, but the label has %d classes; use logistic for two, softmax for more", opt.Classes)
	}
	if !(opt.LabelMin >= 0) {
		return nil, fmt.Errorf("model: poisson needs a count, but the label's bounds begin at %v; set its min to 0 or more, or use linear", opt.LabelMin)
	}
	inf := math.Inf(1)
	return &glm{name: "poisson", features: opt.Dim, link: poisson{}, facts: Facts{
		NormBound: opt.NormBound, Lipschitz: inf, Smooth: inf, HessLipschitz: inf, Convex: true, Centered: true, Start: inf,
	}}, nil
}

func (poisson) loss(dst, z, y []float64) {
	for i, m := range z {
		v := y[i]
		switch l := math.Exp(m) - v*m; {
		case v > 0:
			dst[i] = max(0, l+v*math.Log(v)-v) // 0 at most by rounding
		case v == 0:
			dst[i] = l
		default:
			dst[i] = math.NaN() // no count
		}
	}
}

func (poisson) slope(dst, z, y []float64) {
	for i, m := range z {
		if dst[i] = math.Exp(m) - y[i]; y[i] < 0 {
			dst[i] = math.NaN()
		}
	}
}

func (poisson) curve(dst, z, y []float64) {
	for i, m := range z {
		if dst[i] = math.Exp(m); !(y[i] >= 0) {
			dst[i] = math.NaN()
		}
	}
}

func (poisson) mean(z []float64) { kern.Exp(z, z) }

func (poisson) stage() Stage { return Stage{Kind: "exp"} }
