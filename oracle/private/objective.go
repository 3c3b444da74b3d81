package private

import (
	"context"
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
)

// outputShare is the part of ε and of δ that pays for the noise on the result of an objective perturbation. What
// that noise hides is small, so the part can be.
const outputShare = 1.0 / 128

// A perturbation is what follows from the public numbers of an objective perturbation. PROOFS.md#objective.
//
//	J(w) = (1/n)(Σ_i ℓ_i(w) + b·w) + (curve/2)‖w‖²,  b ~ N(0, tilt² I)
type perturbation struct {
	curve   float64 // L2 + Λ/n
	tilt    float64 // standard deviation of a coordinate of b
	grid    float64 // of b
	longest float64 // what ‖b‖ does not exceed
	reach   float64 // bound on every iterate
	off     float64 // bound on the error of a gradient of J, rounding of a step included
	missed  float64 // bound on the distance of what the solver returns from the minimiser
	sigma   float64 // noise multiplier of the noise on the result
}

// sensitivity of the result given the minimiser: it is that or within missed of it, on both tables.
func (p perturbation) sensitivity() float64 { return 2 * p.missed }

// perturbation derives the numbers; it fails where Lambda and L2 leave no ε to the linear term.
func (o *Oracle) perturbation(h oracle.Objective, l2 float64) (p perturbation, err error) {
	f, n, d := o.cfg.Model.Facts(), float64(o.cfg.Facts.Rows), float64(o.cfg.Facts.Dim)
	p.curve = l2 + h.Lambda/n
	epsilon, delta := math.Nextafter(h.Epsilon*(1-outputShare), 0), math.Nextafter(h.Delta*(1-outputShare), 0)
	bent := math.Log1p(f.Smooth/(n*p.curve)) * (1 + 1e-12) // what the determinants can differ by
	left := epsilon - bent
	if !(left > 0) {
		return p, fmt.Errorf("private: curvature %.3g of the sum leaves nothing of ε = %v: it must exceed %.4g", n*p.curve, h.Epsilon, f.Smooth/math.Expm1(epsilon))
	}
	if p.tilt, err = tiltFor(math.Nextafter(left, 0), delta, f.Lipschitz); err != nil {
		return p, err
	}
	if p.sigma, err = account.Calibrate(account.GDP{}, privacy.Budget{Epsilon: h.Epsilon * outputShare, Delta: h.Delta * outputShare, Adjacency: privacy.ReplaceOne},
		func(sigma float64) privacy.Event { return privacy.Gaussian{Sigma: sigma} }); err != nil {
		return p, err
	}
	p.grid = powerBelow(p.tilt) * 0x1p-40
	p.longest = 1.01 * (p.tilt*(math.Sqrt(d)+18) + 2*f.Lipschitz)
	p.reach = 3.03 * (f.Lipschitz + p.longest/n) / p.curve
	steep := f.Smooth + p.curve
	p.off = o.gradientError(p.reach, o.units) + 0x1p-48*(f.Lipschitz+steep*p.reach+p.longest/n)
	p.missed = 1.01 * (4*p.off/p.curve + p.grid*math.Sqrt(d)/(n*p.curve))
	if !(p.off < p.curve*p.reach/100) {
		return p, fmt.Errorf("private: curvature %.3g of the mean is too little for numbers of 53 bits", p.curve)
	}
	return p, nil
}

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
			return 0, fmt.Errorf("private: no linear term is enough for ε = %v and δ = %v", epsilon, delta)
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

// objective sets w, which is 0, to the minimiser of J, to within p.missed.
func (o *Oracle) objective(ctx context.Context, w []float64, p perturbation) error {
	n := float64(o.cfg.Facts.Rows)
	counts := make([]int64, len(w))
	o.noise.AddGaussian(counts, p.tilt/p.grid*(1+0x1p-50))
	b := make([]float64, len(w))
	for j, c := range counts {
		b[j] = float64(c) * p.grid
	}
	if long := norm(b); long > p.longest { // less likely than 2⁻²³⁰, whatever the rows are
		for j := range b {
			b[j] *= p.longest / long
		}
	}
	j := &mean{s: o.local, n: n, curve: p.curve, tilt: b}
	over := func(w, g []float64) bool { return ctx.Err() != nil || p.arrived(w, g) }
	if !lbfgs(j.grad, w, o.cfg.Model.Facts().Smooth+p.curve, searchGrads, over) {
		o.theLongWay(w, j, p, over)
	}
	return ctx.Err()
}

// arrived says whether w, with the computed gradient g, is near enough to the minimiser of J.
func (p perturbation) arrived(w, g []float64) bool {
	return norm(g) <= 3*p.off/1.01 && norm(w) <= p.reach
}

// searchGrads is how many gradients the fast solver may take.
const searchGrads = 5000

// theLongWay is gradient descent of so many steps that it has arrived, whatever the rows are. It is
// where the fast solver ends that has no such theorem. PROOFS.md#solver.
func (o *Oracle) theLongWay(w []float64, j *mean, p perturbation, over func(w, g []float64) bool) {
	steep := o.cfg.Model.Facts().Smooth + p.curve
	steps := math.Ceil(1.01 * steep / p.curve * math.Log(max(2, p.reach*p.curve/p.off)))
	g := make([]float64, len(w))
	clear(w)
	for t := 0.0; t < steps; t++ {
		j.grad(g, w)
		if over(w, g) {
			return
		}
		for i := range w {
			w[i] -= g[i] / steep
		}
	}
}

// exact sets w to the minimiser as well as 53 bits allow: lab only.
func (o *Oracle) exact(ctx context.Context, w []float64, l2 float64) error {
	j := &mean{s: o.local, n: float64(o.cfg.Facts.Rows), curve: l2}
	first := -1.0
	lbfgs(j.grad, w, o.cfg.Model.Facts().Smooth+l2, searchGrads, func(w, g []float64) bool {
		if first < 0 {
			first = norm(g)
		}
		return ctx.Err() != nil || norm(g) <= 1e-13*first
	})
	return ctx.Err()
}

// mean is J: the mean loss of all rows, a linear term over n, and curvature.
type mean struct {
	s     *Local
	n     float64
	curve float64
	tilt  []float64 // nil: none
}

// grad sets g = ∇J(w).
func (j *mean) grad(g, w []float64) {
	j.s.plain(g, w, clip.None{}, nil, true)
	for i := range g {
		if j.tilt != nil {
			g[i] += j.tilt[i]
		}
		g[i] = g[i]/j.n + j.curve*w[i]
	}
}
