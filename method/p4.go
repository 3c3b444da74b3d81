package method

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
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
// What is claimed of the point at the end is a secondorder.Claim; secondorder.Run holds the state of a run.
type P4 struct {
	Steps     int     `yaml:"steps" json:"steps" doc:"maximum number of steps T (default: as many as the analysis needs from w = 0)"`
	Gradient  float64 `yaml:"gradient" json:"gradient" doc:"tolerance ε_g of the gradient's norm (default: twice the bound on the noise of a gradient)"`
	Curvature float64 `yaml:"curvature" json:"curvature" doc:"tolerance ε_H of negative curvature (default √(M·ε_g), M the bound on the change of the Hessian)"`
	Gap       float64 `yaml:"gap" json:"gap" doc:"public bound on the decrease of the mean loss from w = 0, for the default of steps (default: the loss of a row at w = 0)"`
	Clip      float64 `yaml:"clip" json:"clip" doc:"clip norm of one record's gradient (default the loss's Lipschitz bound, so that none is clipped; R/8 × the width of the label's bounds for the squared loss)"`
	HessClip  float64 `yaml:"hess_clip" json:"hess_clip" doc:"clip norm of one record's Hessian (default the loss's curvature bound, so that none is clipped)"`
	Noise     float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ of gradients and Hessians (default: the smallest that the budget allows)"`

	Off bool `yaml:"-" json:"off,omitempty"` // no noise: lab
}

const (
	// The tolerance and the most steps where there is no noise to say them.
	p4Exact, p4Long = 1e-6, 10_000
	p4Most          = 1_000_000 // steps
)

// queries are those of all methods of P4, on samples of batch rows; 0 is all.
func (m *P4) queries(pub oracle.Public, batch int) secondorder.Queries {
	return secondorder.Queries{Public: pub, Sampler: batches(pub, batch), Clip: m.Clip, HessClip: m.HessClip, Off: m.Off}
}

func (m *P4) phase(noise float64, hessians int) secondorder.Phase {
	return secondorder.Phase{Steps: m.Steps, Noise: noise, Hessians: hessians}
}

// decreases are by how much the analysis says that a step lowers F at least: along the gradient
// and along negative curvature.
type decreases func(secondorder.Constants) (gradient, curvature float64)

// configure sets what is free apart from the noise. asked is how many releases a step makes, for the default
// tolerance. It returns how many steps along negative curvature there can be.
func (m *P4) configure(pub oracle.Public, obj Objective, terms Terms, batch int, d decreases,
	asked int) (bends float64, err error) {
	g := Gradient{Clip: m.Clip, Noise: m.Noise, Batch: batch}
	err = check(
		Number{"gradient", &m.Gradient, Positive, 0},
		Number{"curvature", &m.Curvature, Positive, 0},
		Number{"gap", &m.Gap, Positive, 0},
		Number{"hess_clip", &m.HessClip, clipping, 0},
		Count{"steps", &m.Steps, p4Most, 0},
	)
	if err != nil {
		return 0, err
	}
	c, err := secondorder.Analysis(pub, obj.Reg, m.Gradient, m.Curvature)
	if err != nil {
		return 0, err
	}
	if err := g.configure(pub, terms, clipBound(pub, 1)); err != nil {
		return 0, err
	}
	m.Clip, m.Off = g.Clip, g.Off
	m.HessClip, m.Gap = cmp.Or(m.HessClip, float64(pub.Smooth)), cmp.Or(m.Gap, startLoss(pub))
	if m.Gradient == 0 {
		if m.Gradient, err = m.tolerance(pub, c, terms, d, asked); err != nil {
			return 0, err
		}
	}
	m.Curvature = cmp.Or(m.Curvature, math.Sqrt(c.HessLipschitz*m.Gradient))
	c.Gradient, c.Curvature = m.Gradient, m.Curvature
	if err := c.Check(); err != nil {
		return 0, fmt.Errorf("gradient: %w", err)
	}
	if m.Steps == 0 {
		steps := secondorder.Steps(m.Gap, math.Min(d(c)))
		if m.Off {
			steps = math.Min(steps, p4Long)
		}
		if steps > p4Most {
			return 0, fmt.Errorf("gradient: found %v; by the analysis that takes %.3g steps, more than %d; set a larger tolerance, or steps", m.Gradient, steps, p4Most)
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
// it, and that of Hessians below half of √(Mε_g), but for a probability of secondorder.Miss.
func (m *P4) tolerance(pub oracle.Public, c secondorder.Constants, terms Terms, d decreases,
	asked int) (float64, error) {
	if m.Off {
		return p4Exact, nil
	}
	one, err := account.Calibrate(account.GDP{}, terms.Budget, func(noise float64) privacy.Event {
		return privacy.Gaussian{Sigma: noise}
	})
	if err != nil {
		return 0, fmt.Errorf("noise_multiplier: %w", err)
	}
	q := m.queries(pub, 0)
	low, high := 1e-12, 1e12
	for high/low > 1+1e-6 {
		mid := math.Sqrt(low) * math.Sqrt(high)
		c.Gradient, c.Curvature = mid, math.Sqrt(c.HessLipschitz*mid)
		steps := math.Max(1, secondorder.Steps(m.Gap, math.Min(d(c))))
		if m.Steps > 0 {
			steps = float64(m.Steps)
		}
		noise := one * math.Sqrt(float64(asked)*steps)
		if m.Noise > 0 {
			noise = m.Noise
		}
		each := secondorder.Miss / (4 * steps)
		if 2*q.GradientNoise(noise, each) <= mid && 2*q.HessianNoise(noise, each) <= c.Curvature {
			high = mid
		} else {
			low = mid
		}
	}
	return high, nil
}

// move adds rate·s to w.
func (st *Step) move(s []float64, rate, gradNorm float64) {
	for j, v := range s {
		st.W[j] += rate * v
	}
	st.T, st.Rate, st.GradNorm, st.Moved = st.T+1, math.Abs(rate), gradNorm, math.Abs(rate)*norm2(s)
}

// converged is the last step of a run whose point passed the test of a 2NS.
func (st Step) converged(gradNorm float64, c *secondorder.Claim) Step {
	st.GradNorm, st.Status, st.Claim = gradNorm, Converged, c
	return st
}
