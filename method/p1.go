package method

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// P1 is what the methods of P1 have in common: Kuru, Birbil, Gürbüzbalaban and
// Yıldırım, Differentially Private Accelerated Optimization Algorithms, SIAM J.
// Optim. 32 (2022). Each takes T steps along noisy mean gradients; they differ in
// momentum, in step sizes, and in how the budget is spread over the steps.
//
//	P1        here
//	T, α      Steps, Rate
//	μ         Mu
//	L         Smooth; without it 1/α: a step size says which curvature is counted on
//	S_1       2·Clip under replace-one: rows' gradients are clipped in ℓ1
//	m, n      Batch, the number of rows; m = n is Batch 0
//	b_t       Noise or Schedule[t], over the sensitivity: the noise of a sum is
//	          Laplace of scale b·S_1
//	η_t       the noise
//
// Where the budget has a δ, the noise is Gaussian instead and the clip norm is ℓ2: P1 §6
// names the idea, package schedule has the optimum. All of it is known beforehand.
//
// Deviations: sensitivity is enforced by clipping, so it rests on no bound of the
// loss; the default clips at half the loss's Lipschitz bound, which halves the noise and
// slows only rows that are far on the wrong side. P1 estimates L from the rows, which is
// not private (S-0d); here no constant comes from them. x_0 = 0. Strong convexity is
// counted on, not added: the objective is what the caller wrote.
type P1 struct {
	Steps  int     `yaml:"steps" json:"steps" doc:"number of steps T (default: where the bound on the error is least, see below)"`
	Rate   float64 `yaml:"rate" json:"rate" doc:"step size α, for the masg methods of the first stage (default 12/R² or 120/R₁², whichever is more, R and R₁ the bounds on a row's L2 and L1 norm; 1/L for the squared loss, L its curvature bound)"`
	Mu     float64 `yaml:"mu" json:"mu" doc:"strong convexity μ that momentum, stages and number of steps count on (default: that of the regulariser or 1/(100α), whichever is more; 1/(10α) in gd)"`
	Smooth float64 `yaml:"smooth" json:"smooth,omitempty" doc:"smoothness L that stages and number of steps count on (default 1/α)"`
	Clip   float64 `yaml:"clip" json:"clip" doc:"clip norm C of one record's gradient, in the L1 norm where δ is 0 and in the L2 norm otherwise (default half the loss's Lipschitz bound in that norm; an eighth of the bound on a row's norm × the width of the label's bounds for the squared loss)"`
	Batch  int     `yaml:"batch" json:"batch" doc:"rows m of a step, drawn without replacement under replace-one and each by itself under add-or-remove; 0 means all rows in every step"`
	Noise  float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"scale of Laplace noise, or standard deviation of Gaussian noise, over the sensitivity of the sum (default: the smallest that the budget allows; the opt methods have one for each step and take none)"`

	Schedule []float64 `yaml:"-" json:"schedule,omitempty"` // noise multiplier of each step, in place of Noise
	Laplace  bool      `yaml:"-" json:"laplace,omitempty"`  // δ = 0
	Off      bool      `yaml:"-" json:"off,omitempty"`      // no noise: lab
}

// Defaults of what Fit may choose, from public facts only (docs/measurements/methods.md).
const (
	p1Rate    = 12.  // × 1/R²
	p1RateL1  = 120. // × 1/R₁²
	p1Clip    = 0.5  // × Lipschitz bound
	p1Kappa   = 100. // least strong convexity that momentum counts on: 1/(κα)
	p1KappaGD = 10.  // and that DP-GD's number of steps does
	p1Steps   = 1000 // the most steps that Fit picks
)

// The factors of a method's bound after that many steps, and how they follow from
// the method's numbers and the constants of the objective.
type (
	weights  func(steps int) (a0 float64, a []float64)
	weighing func(m P1, f schedule.Convex) weights
)

// convex is what a method counts on.
func (m P1) convex() schedule.Convex {
	if m.Smooth > 0 {
		return schedule.Convex{Mu: m.Mu, L: m.Smooth}
	}
	return schedule.Convex{Mu: m.Mu, L: 1 / m.Rate}
}

// fit sets what was left free. kappa bounds μ from below, w is the method's bound,
// optimal asks for a schedule.
func (m *P1) fit(name string, pub oracle.Public, obj Objective, terms Terms, kappa float64, w weighing, optimal bool) error {
	m.Off, m.Laplace, m.Schedule = terms.Off, !terms.Off && terms.Budget.Delta == 0, nil
	if err := m.check(pub, optimal); err != nil {
		return err
	}
	if m.Rate == 0 {
		m.Rate = p1DefaultRate(pub, obj)
	}
	if m.Mu == 0 {
		m.Mu = math.Min(math.Max(obj.convex(), 1/(kappa*m.Rate)), 1/m.Rate)
	}
	if m.Mu > 1/m.Rate {
		return fmt.Errorf("mu: found %v; allowed is at most 1/rate, which is %v here", m.Mu, 1/m.Rate)
	}
	if f := m.convex(); f.Mu > f.L {
		return fmt.Errorf("smooth: found %v; allowed is any number from mu, which is %v here", f.L, f.Mu)
	}
	if m.Clip == 0 && !m.Off {
		m.Clip = m.defaultClip(pub)
	}
	if m.Off {
		if m.Steps == 0 {
			m.Steps = sgdSteps
		}
		return nil
	}
	if err := m.spend(pub, terms, w(*m, m.convex()), optimal); err != nil {
		if unproven := (*account.UnsupportedError)(nil); errors.As(err, &unproven) && m.Batch != 0 {
			return fmt.Errorf("batch: found %d; allowed is 0 (all rows): accountant %s has no theorem for %v under %v", m.Batch, unproven.Accountant, unproven.Event, unproven.Adjacency)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	for t := range m.Steps {
		if s := m.noise(t); s > maxNoise {
			return fmt.Errorf("noise_multiplier: this budget needs %.3g; allowed is at most %g: take fewer steps or a larger budget", s, float64(maxNoise))
		}
	}
	return nil
}

func p1DefaultRate(pub oracle.Public, obj Objective) float64 {
	if !pub.Lipschitz.Finite() {
		return 1 / (float64(pub.Smooth) + obj.smooth()) // NAG diverges from 1.38/L on
	}
	rate := p1Rate / (pub.NormBound * pub.NormBound)
	if pub.L1Bound > 0 {
		rate = math.Max(rate, p1RateL1/(pub.L1Bound*pub.L1Bound))
	}
	return rate
}

// defaultClip is part of the loss's Lipschitz bound, in the norm of the noise.
func (m *P1) defaultClip(pub oracle.Public) float64 {
	c := p1Clip * float64(pub.Lipschitz)
	if !pub.Lipschitz.Finite() {
		c = sgdQuadClip * pub.NormBound * pub.LabelSpan
	}
	if m.Laplace && pub.L1Bound > 0 {
		c *= pub.L1Bound / pub.NormBound
	}
	return c
}

// spend sets Steps and the noise, by what the budget allows.
func (m *P1) spend(pub oracle.Public, terms Terms, w weights, optimal bool) error {
	if m.Noise > 0 && m.Steps > 0 {
		return nil
	}
	price, err := m.price(pub, terms)
	if err != nil {
		return err
	}
	if m.Steps == 0 {
		m.Steps = m.bestSteps(pub, price, w, optimal)
	}
	if m.Noise > 0 {
		return nil
	}
	shape := make([]float64, m.Steps)
	for t := range shape {
		shape[t] = 1
	}
	if optimal {
		_, a := w(m.Steps)
		if shape, err = price.optimal(a); err != nil {
			return err
		}
	}
	// The shape is what the theory says, the scale what the accountant grants.
	fitted := *m
	scale, err := account.Calibrate(terms.Accountant, terms.Budget, func(x float64) privacy.Event {
		if !optimal {
			fitted.Noise = x
			return fitted.plan(pub)
		}
		fitted.Schedule = make([]float64, len(shape))
		for t := range shape {
			fitted.Schedule[t] = x * shape[t]
		}
		return fitted.plan(pub)
	})
	if err != nil {
		return err
	}
	if !optimal {
		m.Noise = scale
		return nil
	}
	for t := range shape {
		shape[t] *= scale
	}
	m.Schedule = shape
	return nil
}

// bestSteps is T′ of Remark 4.1 with the factor 2 that P1 lost (S-1a).
func (m *P1) bestSteps(pub oracle.Public, price *price, w weights, optimal bool) int {
	var best Prediction
	for i, p := range m.predictions(pub, price, w, optimal) {
		if i == 0 || p.Error < best.Error {
			best = p
		}
	}
	return best.Steps
}

// predictions are the bounds for 1, 2, 3, … steps, and then for numbers some 5% apart;
// for Steps alone where it is set. For samples of the rows they count on the same
// noise in all steps.
func (m *P1) predictions(pub oracle.Public, price *price, w weights, optimal bool) []Prediction {
	delta, err := clip.Sensitivity(m.Clip, pub.Adjacency)
	if err != nil {
		return nil
	}
	size := m.sampler(pub).Size(pub.Rows)
	unit := delta / size * delta / size // variance of Gaussian noise of multiplier 1
	if m.Laplace {
		unit *= 2
	}
	sampling := schedule.SampleVariance(2*m.Clip, int(size), pub.Rows)
	optimal = optimal && int(size) == pub.Rows
	var all []Prediction
	from, to := 1, p1Steps
	if m.Steps > 0 {
		from, to = m.Steps, m.Steps
	}
	for steps := from; steps <= to; steps += 1 + steps/20 {
		a0, a := w(steps)
		variance := make([]float64, steps)
		noise := price.optimal
		if !optimal {
			noise = price.even
		}
		sigma, err := noise(a)
		if err != nil {
			continue
		}
		for t, s := range sigma {
			variance[t] = unit * s * s
		}
		p := Prediction{Steps: steps, Rate: m.Rate, Momentum: schedule.Momentum(m.Rate, m.Mu), Start: a0 * startError(pub)}
		p.Noise = schedule.Error(0, 0, a, variance, pub.Dim, sampling)
		p.Error = p.Start + p.Noise
		all = append(all, p)
	}
	return all
}

// startError is E_0, a bound on F(0) − F* of the losses with classes, which are 0 or more
// (a width of huber-svm above 1 apart), and a guess for the squared loss.
func startError(pub oracle.Public) float64 {
	if !pub.Lipschitz.Finite() {
		return pub.LabelSpan * pub.LabelSpan / 2
	}
	return math.Max(1, math.Log(float64(pub.Classes)))
}

// check says what is wrong with the fields, which are public numbers.
func (m *P1) check(pub oracle.Public, optimal bool) error {
	switch {
	case m.Steps < 0:
		return fmt.Errorf("steps: found %d; allowed is 1 or more", m.Steps)
	case !(m.Rate >= 0) || math.IsInf(m.Rate, 1):
		return fmt.Errorf("rate: found %v; allowed is any number above 0", m.Rate)
	case !(m.Mu >= 0) || math.IsInf(m.Mu, 1):
		return fmt.Errorf("mu: found %v; allowed is any number above 0", m.Mu)
	case !(m.Smooth >= 0) || math.IsInf(m.Smooth, 1):
		return fmt.Errorf("smooth: found %v; allowed is any number above 0", m.Smooth)
	case m.Clip != 0 && !(m.Clip >= minClip && m.Clip <= maxClip):
		return fmt.Errorf("clip: found %v; allowed is any number from %g to %g", m.Clip, minClip, maxClip)
	case m.Batch < 0 || m.Batch > pub.Rows:
		return fmt.Errorf("batch: found %d; allowed is 0 (all rows) to %d, the nominal row count", m.Batch, pub.Rows)
	case !(m.Noise >= 0 && m.Noise <= maxNoise):
		return fmt.Errorf("noise_multiplier: found %v; allowed is any number above 0 and up to %g", m.Noise, float64(maxNoise))
	case m.Noise > 0 && m.Off:
		return fmt.Errorf("noise_multiplier: found %v; it has no place beside `privacy: none`", m.Noise)
	case m.Noise > 0 && optimal:
		return fmt.Errorf("noise_multiplier: found %v; this method has one for each step, made from the budget", m.Noise)
	}
	return nil
}

func (m P1) sampler(pub oracle.Public) sample.Sampler {
	switch {
	case m.Batch == 0 || m.Batch == pub.Rows:
		return sample.Full{}
	case pub.Adjacency == privacy.ReplaceOne:
		return sample.Fixed{M: m.Batch, N: pub.Rows}
	}
	return sample.Poisson{Rate: float64(m.Batch) / float64(pub.Rows)}
}

// noise is the noise multiplier of step t, counted from 0.
func (m P1) noise(t int) float64 {
	if m.Schedule != nil {
		return m.Schedule[t]
	}
	return m.Noise
}

// query is what step t asks.
func (m P1) query(t int) oracle.Grad {
	switch {
	case m.Off && m.Clip == 0:
		return oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
	case m.Off:
		return oracle.Grad{Clip: clip.Norm{C: m.Clip}, Noise: mech.None{}}
	case m.Laplace:
		return oracle.Grad{Clip: clip.Norm{C: m.Clip, P: 1}, Noise: mech.Laplace{Scale: m.noise(t)}}
	}
	return oracle.Grad{Clip: clip.Norm{C: m.Clip}, Noise: mech.Gaussian{Sigma: m.noise(t)}}
}

func (m P1) plan(pub oracle.Public) privacy.Event {
	cost := func(t int) privacy.Event { return oracle.Cost(m.sampler(pub), []oracle.Query{m.query(t)}) }
	if m.Schedule == nil {
		return privacy.Repeated{Count: m.Steps, Of: cost(0)}
	}
	all := make(privacy.Composed, m.Steps)
	for t := range all {
		all[t] = cost(t)
	}
	return all
}

// Plan is one noisy gradient a step.
func (m P1) Plan(pub oracle.Public) (privacy.Event, error) {
	p := m.plan(pub)
	return p, p.Validate()
}

// MaxSteps is T.
func (m P1) MaxSteps() int { return m.Steps }

// NoiseMultiplier is that of every step, or 0 where steps differ.
func (m P1) NoiseMultiplier() float64 { return m.Noise }

// gradient sets g to the noisy mean gradient of step t at z, ∇F_B(z) + η_t, with the
// regulariser's, and returns the norm of what was released.
func (m P1) gradient(ctx context.Context, o oracle.Oracle, obj Objective, t int, g, z []float64) (float64, error) {
	q := m.query(t)
	b, err := o.Batch(ctx, m.sampler(o.Public()), q)
	if err != nil {
		return 0, err
	}
	released, err := b.Grad(q, z)
	if err != nil {
		return 0, err
	}
	copy(g, released)
	obj.addGrad(g, z)
	return norm2(released), nil
}

// distance is ‖x − y‖₂.
func distance(x, y []float64) float64 {
	s := 0.0
	for j := range x {
		s += (x[j] - y[j]) * (x[j] - y[j])
	}
	return math.Sqrt(s)
}
