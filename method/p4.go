package method

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// P4 is what the methods of P4 have in common: Differentially Private Optimization for Smooth
// Non-Convex ERM. They look for an (ε_g, ε_H)-2NS, a point with ‖∇F‖ ≤ ε_g and
// λ_min(∇²F) ≥ −ε_H, and end with status Converged where the noisy gradient g̃ and the noisy Hessian
// H̃ say that they are there.
//
//	P4            here
//	ε_g, ε_H      Gradient, Curvature
//	G, M          the model's bounds on a row, with the regularizer's
//	B_g, B_H      Clip, HessClip: by default the model's bounds, so that nothing is clipped
//	σ_g = σ_H     Noise, over the sensitivities 2B_g and √2·B_H of the sums
//	T             Steps
//	f(w0) − f     Gap, a public number
//
// Deviations. P4 finds T from f(w_0)+|z|, which is not private (S-4a); here the loss at w_0 = 0 is the same for
// every table. The Hessians of rows have rank one, so their sensitivity is √2·B_H and not
// 2√d·B_H, and the noise beside the diagonal has half the variance (S-4d). Costs that depend on the run are no
// guarantee (S-4c): they are a plan of T steps or go through a filter.
//
// What is claimed of the point at the end is a Claim.
type P4 struct {
	Steps     int     `yaml:"steps" json:"steps" doc:"most steps T (default: as many as the analysis needs from w = 0)"`
	Gradient  float64 `yaml:"gradient" json:"gradient" doc:"tolerance ε_g of the gradient's norm (default: twice the bound on the noise of a gradient)"`
	Curvature float64 `yaml:"curvature" json:"curvature" doc:"tolerance ε_H of negative curvature (default √(M·ε_g), M the bound on the change of the Hessian)"`
	Gap       float64 `yaml:"gap" json:"gap" doc:"public bound on how far the mean loss can fall from w = 0, on which the default of steps rests (default: the loss of a row at w = 0)"`
	Clip      float64 `yaml:"clip" json:"clip" doc:"clip norm of one record's gradient (default the loss's Lipschitz bound, so that none is clipped; R/8 × the width of the label's bounds for the squared loss)"`
	HessClip  float64 `yaml:"hess_clip" json:"hess_clip" doc:"clip norm of one record's Hessian (default the loss's curvature bound, so that none is clipped)"`
	Noise     float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ of gradients and Hessians (default: the smallest that the budget allows)"`

	Off bool `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// Constants of P4's analysis, which does not state those of its experiments.
const (
	p4C    = 0.1 // c = c₁ = c₂
	p4CG   = 0.2 // c_g = c_H
	p4Miss = 0.01
	// The tolerance and the most steps where there is no noise to say them.
	p4Exact, p4Long = 1e-6, 10_000
	p4Most          = 1_000_000 // steps
)

// constants are those of F, from public facts.
func (m *P4) constants(pub oracle.Public, obj Objective) (secondorder.Constants, error) {
	c := secondorder.Constants{Smooth: float64(pub.Smooth), HessLipschitz: float64(pub.HessLipschitz), Gradient: m.Gradient, Curvature: m.Curvature,
		C: p4C, C1: p4C, C2: p4C, CG: p4CG, CH: p4CG}
	if obj.Reg != nil {
		r, ok := obj.Reg.(reg.Curved)
		if !ok {
			return c, errors.New("model: found a regularizer with kinks; allowed for this method is one with a Hessian, or none")
		}
		c.Smooth += r.Smooth()
		c.HessLipschitz += r.HessLipschitz()
	}
	if !pub.Curved || math.IsInf(c.Smooth, 1) {
		return c, errors.New("model: found one without a Hessian; allowed for this method are logistic, linear, huber-svm")
	}
	if c.HessLipschitz == 0 || math.IsInf(c.HessLipschitz, 1) {
		c.HessLipschitz = c.Smooth // the squared loss has any bound above 0, the Huberised hinge none
	}
	return c, nil
}

// decreases are by how much the analysis says that a step lowers F at least: along the gradient
// and along negative curvature.
type decreases func(secondorder.Constants) (gradient, curvature float64)

func (d decreases) least(c secondorder.Constants) float64 { return math.Min(d(c)) }

// fit sets what may be left free apart from the noise; asked is how many releases a step
// makes, for the default tolerance. It returns how many steps along negative curvature there can be.
func (m *P4) fit(pub oracle.Public, obj Objective, terms Terms, d decreases, asked int) (bends float64, err error) {
	m.Off = terms.Off
	for _, f := range []interface{ check() error }{
		number{"gradient", &m.Gradient, positive, 0},
		number{"curvature", &m.Curvature, positive, 0},
		number{"gap", &m.Gap, positive, 0},
		number{"noise_multiplier", &m.Noise, noises, 0},
		number{"clip", &m.Clip, clipping, 0},
		number{"hess_clip", &m.HessClip, clipping, 0},
		count{"steps", &m.Steps, p4Most, 0},
	} {
		if err := f.check(); err != nil {
			return 0, err
		}
	}
	if m.Noise > 0 && m.Off {
		return 0, fmt.Errorf("noise_multiplier: found %v; it has no place beside `privacy: none`", m.Noise)
	}
	if !m.Off && terms.Budget.Delta == 0 {
		return 0, errNoDelta
	}
	if m.HessClip == 0 {
		m.HessClip = float64(pub.Smooth)
	}
	if m.Gap == 0 {
		m.Gap = startLoss(pub)
	}
	c, err := m.constants(pub, obj)
	if err != nil {
		return 0, err
	}
	if !m.Off {
		if err := (number{"clip", &m.Clip, clipping, clipBound(pub, 1)}).fill(); err != nil {
			return 0, err
		}
	}
	if m.Gradient == 0 {
		if m.Gradient, err = m.tolerance(pub, c, terms, d, asked); err != nil {
			return 0, err
		}
	}
	if m.Curvature == 0 {
		m.Curvature = math.Sqrt(c.HessLipschitz * m.Gradient)
	}
	c.Gradient, c.Curvature = m.Gradient, m.Curvature
	if err := c.Check(); err != nil {
		return 0, fmt.Errorf("gradient: %w", err)
	}
	if m.Steps == 0 {
		steps := secondorder.Steps(m.Gap, d.least(c))
		if m.Off {
			steps = math.Min(steps, p4Long)
		}
		if steps > p4Most {
			return 0, fmt.Errorf("gradient: found %v; by the analysis that takes %.3g steps, allowed are up to %d: set a larger tolerance, or steps", m.Gradient, steps, p4Most)
		}
		m.Steps = max(1, int(steps))
	}
	_, along := d(c)
	return secondorder.Steps(m.Gap, along), nil
}

// startLoss bounds how far the mean loss falls from w = 0.
func startLoss(pub oracle.Public) float64 {
	if pub.StartLoss > 0 && pub.StartLoss.Finite() {
		return float64(pub.StartLoss)
	}
	return startError(pub)
}

// tolerance is the least ε_g at which the noise of T releases of each kind stays below half of
// it, and that of Hessians below half of √(Mε_g), but for a probability of p4Miss.
func (m *P4) tolerance(pub oracle.Public, c secondorder.Constants, terms Terms, d decreases, asked int) (float64, error) {
	if m.Off {
		return p4Exact, nil
	}
	one, err := account.Calibrate(account.GDP{}, terms.Budget, func(noise float64) privacy.Event { return privacy.Gaussian{Sigma: noise} })
	if err != nil {
		return 0, fmt.Errorf("noise_multiplier: %w", err)
	}
	l := lens{P4: m, pub: pub, sample: sample.Full{}}
	low, high := 1e-12, 1e12
	for high/low > 1+1e-6 {
		mid := math.Sqrt(low) * math.Sqrt(high)
		c.Gradient, c.Curvature = mid, math.Sqrt(c.HessLipschitz*mid)
		steps := math.Max(1, secondorder.Steps(m.Gap, d.least(c)))
		if m.Steps > 0 {
			steps = float64(m.Steps)
		}
		noise := one * math.Sqrt(float64(asked)*steps)
		if m.Noise > 0 {
			noise = m.Noise
		}
		each := p4Miss / (4 * steps)
		if 2*secondorder.VectorNoise(pub.Dim, noise*l.gradDeviation(), each) <= mid && 2*secondorder.MatrixNoise(pub.Dim, noise*l.hessDeviation(), each) <= c.Curvature {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}

// calibrate is the noise multiplier with which event fits the budget: as a plan, or in the filter
// that comes with it.
func (m *P4) calibrate(terms Terms, plan bool, event func(noise float64) privacy.Event) (noise float64, filter *privacy.Filtered, err error) {
	switch {
	case m.Off:
		return 0, nil, nil
	case plan:
		noise, err = account.Calibrate(terms.Accountant, terms.Budget, event)
	default:
		filter = new(privacy.Filtered)
		noise, *filter, err = account.CalibrateFilter(terms.Budget, event)
	}
	unproven := (*account.UnsupportedError)(nil)
	switch {
	case errors.As(err, &unproven):
		return 0, nil, fmt.Errorf("privacy.accountant: %w", err)
	case err != nil:
		return 0, nil, fmt.Errorf("noise_multiplier: %w", err)
	case noise > maxNoise:
		return 0, nil, fmt.Errorf("noise_multiplier: this budget needs %.3g; allowed is at most %g: set a larger tolerance, fewer steps or a larger budget", noise, float64(maxNoise))
	}
	return noise, filter, nil
}

// MaxSteps is T.
func (m P4) MaxSteps() int { return m.Steps }

// NoiseMultiplier is σ.
func (m P4) NoiseMultiplier() float64 { return m.Noise }
