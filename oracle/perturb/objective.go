package perturb

import (
	"context"
	"fmt"
	"math"

	"github.com/sottodp/sotto/internal/lbfgs"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// outputShare is the part of ε and of δ that is charged for the noise on the result. What that noise
// hides is small, so the part can be.
const outputShare = 1.0 / 128

// An Objective holds the public numbers of an objective perturbation. PROOFS.md#objective.
//
//	J(w) = (1/n)(Σ_i ℓ_i(w) + b·w) + (Curve/2)‖w‖²,  b ~ N(0, Tilt² I)
type Objective struct {
	Smooth  float64 // bound on the curvature of a record's loss
	Curve   float64 // L2 + Λ/n
	Tilt    float64 // standard deviation of a coordinate of b
	Grid    float64 // of b
	Longest float64 // bound on ‖b‖
	Reach   float64 // bound on the norm of every iterate
	Off     float64 // bound on the error of a gradient of J, rounding of a step included
	Missed  float64 // bound on the distance of the solver's result from the minimizer
	Sigma   float64 // noise multiplier of the noise on the result
}

// Objective derives the numbers. It fails where Lambda and L2 leave no ε to the linear term.
func (p Problem) Objective(h oracle.Objective, l2 float64) (o Objective, err error) {
	if !p.OneMargin {
		return o, fmt.Errorf("objective perturbation is proven for losses of one margin; %s is none", p.Model)
	}
	if k := p.UnitRows; k > 1 {
		return o, fmt.Errorf("objective perturbation is proven for records of one row; a unit of up to %d has a loss of as many margins", k)
	}
	n, d := float64(p.Records), float64(p.Dim)
	o.Smooth, o.Curve = p.Smooth, l2+h.Lambda/n
	epsilon, delta := math.Nextafter(h.Epsilon*(1-outputShare), 0), math.Nextafter(h.Delta*(1-outputShare), 0)
	bent := math.Log1p(p.Smooth/(n*o.Curve)) * (1 + 1e-12) // what the determinants can differ by
	left := epsilon - bent
	if !(left > 0) {
		return o, fmt.Errorf("curvature %.3g of the sum leaves nothing of ε = %v: it must exceed %.4g", n*o.Curve, h.Epsilon,
			p.Smooth/math.Expm1(epsilon))
	}
	if o.Tilt, err = tiltFor(math.Nextafter(left, 0), delta, p.Lipschitz); err != nil {
		return o, err
	}
	if o.Sigma, err = account.Calibrate(account.GDP{},
		privacy.Budget{Epsilon: h.Epsilon * outputShare, Delta: h.Delta * outputShare, Adjacency: privacy.ReplaceOne},
		func(sigma float64) privacy.Event { return privacy.Gaussian{Sigma: sigma} }); err != nil {
		return o, err
	}
	o.Grid = powerBelow(o.Tilt) * 0x1p-40
	o.Longest = 1.01 * (o.Tilt*(math.Sqrt(d)+18) + 2*p.Lipschitz)
	o.Reach = 3.03 * (p.Lipschitz + o.Longest/n) / o.Curve
	o.Off = p.GradientError(o.Reach, p.Records) + 0x1p-48*(p.Lipschitz+o.steep()*o.Reach+o.Longest/n)
	o.Missed = 1.01 * (4*o.Off/o.Curve + o.Grid*math.Sqrt(d)/(n*o.Curve))
	if !(o.Off < o.Curve*o.Reach/100) {
		return o, fmt.Errorf("curvature %.3g of the mean is too little for numbers of 53 bits", o.Curve)
	}
	return o, nil
}

// steep bounds the curvature of J.
func (o Objective) steep() float64 { return o.Smooth + o.Curve }

// tiltFor is the least deviation of b, to 1e-9 relative and never too small, at which three Gaussian
// mechanisms, of shifts 2L, L and L, together stay within δ at ε.
func tiltFor(epsilon, delta, lipschitz float64) (float64, error) {
	enough := func(s float64) bool {
		total := 0.0
		for _, g := range []struct{ times, shift float64 }{{1, 2 * lipschitz}, {2, lipschitz}} {
			loss, err := (account.GDP{}).Loss(privacy.Gaussian{Sigma: math.Nextafter(s/g.shift, 0)}, privacy.ReplaceOne)
			if err != nil {
				return false
			}
			total += g.times * loss.Delta(epsilon)
		}
		return total*(1+0x1p-50) <= delta
	}
	hi := lipschitz
	for !enough(hi) {
		if hi *= 2; hi > lipschitz*0x1p60 {
			return 0, fmt.Errorf("no linear term is enough for ε = %v and δ = %v", epsilon, delta)
		}
	}
	for lo := 0.0; hi-lo > 1e-9*hi; {
		if mid := lo + (hi-lo)/2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, nil
}

// powerBelow is the largest power of two up to x.
func powerBelow(x float64) float64 {
	_, exp := math.Frexp(x)
	return math.Ldexp(1, exp-1)
}

// A Mean is J: the mean loss of all records, a linear term over N, and curvature.
type Mean struct {
	Sum   func(g, w []float64) // sets g to the sum of the records' gradients at w
	N     float64
	Curve float64
	Tilt  []float64 // b; nil: none
}

// Grad sets g = ∇J(w).
func (j *Mean) Grad(g, w []float64) {
	j.Sum(g, w)
	for i := range g {
		if j.Tilt != nil {
			g[i] += j.Tilt[i]
		}
		g[i] = g[i]/j.N + j.Curve*w[i]
	}
}

// searchGrads is how many gradients the fast solver may take.
const searchGrads = 5000

// Solve sets w, which is 0, to the minimizer of J, to within o.Missed. It shortens a b longer than
// o.Longest, which is less likely than 2⁻²³⁰, whatever the records are.
func (o Objective) Solve(ctx context.Context, w []float64, j *Mean) error {
	if long := lbfgs.Norm(j.Tilt); long > o.Longest {
		for i := range j.Tilt {
			j.Tilt[i] *= o.Longest / long
		}
	}
	over := func(w, g []float64) bool { return ctx.Err() != nil || o.arrived(w, g) }
	if !lbfgs.Minimize(j.Grad, w, o.steep(), searchGrads, over) {
		o.descend(w, j, over)
	}
	return ctx.Err()
}

// arrived says whether w, with the computed gradient g, is near enough to the minimizer of J.
func (o Objective) arrived(w, g []float64) bool {
	return lbfgs.Norm(g) <= 3*o.Off/1.01 && lbfgs.Norm(w) <= o.Reach
}

// descend is gradient descent of so many steps that it has arrived, whatever the records are: L-BFGS
// has no such theorem. PROOFS.md#solver.
func (o Objective) descend(w []float64, j *Mean, over func(w, g []float64) bool) {
	steps := math.Ceil(1.01 * o.steep() / o.Curve * math.Log(max(2, o.Reach*o.Curve/o.Off)))
	g := make([]float64, len(w))
	clear(w)
	for t := 0.0; t < steps; t++ {
		j.Grad(g, w)
		if over(w, g) {
			return
		}
		for i := range w {
			w[i] -= g[i] / o.steep()
		}
	}
}

// Exact sets w, which is 0, to the minimizer as well as 53 bits allow, for losses of curvature up to
// smooth: lab only.
func Exact(ctx context.Context, w []float64, smooth float64, j *Mean) error {
	first := -1.0
	lbfgs.Minimize(j.Grad, w, smooth+j.Curve, searchGrads, func(w, g []float64) bool {
		if first < 0 {
			first = lbfgs.Norm(g)
		}
		return ctx.Err() != nil || lbfgs.Norm(g) <= 1e-13*first
	})
	return ctx.Err()
}
