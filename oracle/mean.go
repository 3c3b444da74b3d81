package oracle

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// Mean asks for the mean of the encoded rows: their sum, each row scaled down to Clip, plus noise, divided by the
// sampler's public size. One record moves the sum as it moves one of gradients of clip norm Clip.
type Mean struct {
	Clip  float64 // C, of one row in the norm of the noise; rows up to Public.NormBound stay as they are where it is that
	Noise mech.Additive
}

// Grad is the query of a sum of gradients that moves as this sum does: it has the same event and the same noise.
func (q Mean) Grad() Grad {
	rule := clip.Norm{C: q.Clip}
	if _, laplace := q.Noise.(mech.Laplace); laplace {
		rule.P = 1
	}
	return Grad{Clip: rule, Noise: q.Noise}
}

// Event is the event of the noise.
func (q Mean) Event() privacy.Event { return q.Noise.Event() }

// Validate: there is a noise, and the bound is a sensitivity.
func (q Mean) Validate() error {
	if q.Noise == nil {
		return errors.New("oracle: a query of the mean row needs a noise")
	}
	return q.Grad().Validate()
}

// Shifts says that Grad is answered with Shift: where the label is a number and Shifted, or rows are Centered, the
// label is a class and the model has one margin.
func (p Public) Shifts() bool { return p.Shifted || p.Centered && p.Classes > 0 && p.Margins() == 1 }

// centerBits are the binary digits of a center's numbers below NormBound.
const centerBits = 18

// Center makes a released mean of rows a center for Grad.Centered, in place: it is brought to a norm of at most
// NormBound, where every mean of rows lies, and rounded toward zero to 18 binary digits below it, so that a center is a
// multiple of what all rows are multiples of. A mean that is not finite becomes 0.
func (p Public) Center(mean []float64) {
	most := 0.0
	for _, v := range mean {
		most = math.Max(most, math.Abs(v)) // NaN if any is
	}
	if !(most > 0) || math.IsInf(most, 1) {
		clear(mean)
		return
	}
	square := 0.0
	for _, v := range mean {
		square += v / most * (v / most)
	}
	// A little less than the bound covers the rounding of the length.
	scale := math.Min(1, p.NormBound*(1-0x1p-20)/(most*math.Sqrt(square)))
	_, e := math.Frexp(p.NormBound)
	for j, v := range mean {
		mean[j] = math.Ldexp(math.Trunc(math.Ldexp(v*scale, centerBits-e+1)), e-1-centerBits) + 0 // no negative zero
	}
}

// checkCentered: the sum of centered rows has its proof for norm clipping in the L2 norm of whole rows.
func (q Grad) checkCentered() error {
	if norm, ok := q.Clip.(clip.Norm); q.Centered && (!ok || norm.Norm() != 2 || q.Augmentation.Count > 1) {
		return fmt.Errorf("oracle: gradients of centered rows need clipping by their L2 norm, without views; found %T in the L%d norm", q.Clip, q.Clip.Norm())
	}
	return nil
}
