package method

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
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
	Steps    int      `yaml:"steps" json:"steps" doc:"number of steps T (default: the one with the least bound on the error, see below)"`
	Rate     float64  `yaml:"rate" json:"rate" doc:"step size α, in the masg methods that of the first stage (default 12/R² or 120/R₁², whichever is larger, R and R₁ the bounds on a row's L2 and L1 norm; 1/L for the squared loss, L its curvature bound)"`
	Mu       float64  `yaml:"mu" json:"mu" doc:"strong convexity μ that momentum, stages and number of steps assume (default: that of the regularizer or 1/(100α), whichever is larger; 1/(10α) in gd)"`
	Smooth   float64  `yaml:"smooth" json:"smooth,omitempty" doc:"smoothness L that stages and number of steps assume (default 1/α)"`
	Gradient Gradient `clip:"clip norm C of one record's gradient, in the L1 norm if δ is 0, otherwise in the L2 norm (default half the loss's Lipschitz bound in that norm; an eighth of the bound on a row's norm × the width of the label's bounds for the squared loss)" batch:"rows m of a step, drawn without replacement under replace-one, each independently under add-or-remove; 0 means all rows in every step" noise_multiplier:"scale of Laplace noise, or standard deviation of Gaussian noise, over the sensitivity of the sum (default: the smallest that the budget allows; the opt methods have one for each step and take none)"`

	Schedule []float64 `yaml:"-" json:"schedule,omitempty"` // noise multiplier of each step, replacing that of Gradient
}

// Defaults of what Configure may choose, from public facts only (docs/measurements/methods.md).
const (
	p1Rate    = 12.  // × 1/R²
	p1RateL1  = 120. // × 1/R₁²
	p1Clip    = 0.5  // × Lipschitz bound
	p1Kappa   = 100. // least strong convexity that momentum counts on: 1/(κα)
	p1KappaGD = 10.  // and that DP-GD's number of steps does
	p1Steps   = 1000 // the most steps that Configure picks
)

// The factors of a method's bound after that many steps, and how they follow from
// the method's numbers and the constants of the objective.
type (
	weights  func(steps int) (a0 float64, a []float64)
	weighing func(m P1, f schedule.Convex) weights
)

// A bound is what distinguishes the methods before a run.
type bound struct {
	kappa    float64 // 1/(κα) is the least strong convexity to count on
	weights  weighing
	optimal  bool // the noise changes from step to step, so that the bound is least
	momentum bool
}

// convex is what a method counts on.
func (m P1) convex() schedule.Convex {
	if m.Smooth > 0 {
		return schedule.Convex{Mu: m.Mu, L: m.Smooth}
	}
	return schedule.Convex{Mu: m.Mu, L: 1 / m.Rate}
}

// configure sets what was left free.
func (m *P1) configure(pub oracle.Public, obj Objective, terms Terms, of bound) error {
	g := &m.Gradient
	g.Off, g.Laplace, m.Schedule = terms.Off, !terms.Off && terms.Budget.Delta == 0, nil
	if err := m.check(pub, of.optimal); err != nil {
		return err
	}
	if err := (Number{"rate", &m.Rate, Positive, p1FreeRate(pub, obj)}).fill(); err != nil {
		return err
	}
	if m.Mu == 0 {
		m.Mu = math.Min(math.Max(obj.convex(), 1/(of.kappa*m.Rate)), 1/m.Rate)
	}
	if m.Mu > 1/m.Rate {
		return fmt.Errorf("mu: found %v; choose at most 1/rate, which is %v here", m.Mu, 1/m.Rate)
	}
	if f := m.convex(); f.Mu > f.L {
		return fmt.Errorf("smooth: found %v; choose a number from mu, which is %v here, up", f.L, f.Mu)
	}
	if err := g.freeClip(m.freeClip(pub)); err != nil {
		return err
	}
	if g.Off {
		return configure(Count{"steps", &m.Steps, 0, sgdSteps})
	}
	if err := m.spend(pub, terms, of.weights(*m, m.convex()), of); err != nil {
		return g.refusal(err)
	}
	for t := range m.Steps {
		if err := tooMuch(m.ask(pub, t).Noise); err != nil {
			return err
		}
	}
	return nil
}

func p1FreeRate(pub oracle.Public, obj Objective) float64 {
	if inLabelUnits(pub) {
		return 1 / known(float64(pub.Smooth)+obj.smooth()) // NAG diverges from 1.38/L on
	}
	rate := p1Rate / known(pub.NormBound*pub.NormBound)
	if pub.L1Bound > 0 {
		rate = math.Max(rate, p1RateL1/(pub.L1Bound*pub.L1Bound))
	}
	return rate
}

// freeClip is part of the loss's Lipschitz bound, in the norm of the noise.
func (m *P1) freeClip(pub oracle.Public) float64 {
	c := clipBound(pub, p1Clip)
	if m.Gradient.Laplace && pub.L1Bound > 0 {
		c *= pub.L1Bound / pub.NormBound
	}
	return c
}

// spend sets Steps and the noise, by what the budget allows.
func (m *P1) spend(pub oracle.Public, terms Terms, w weights, of bound) error {
	if m.Gradient.Noise > 0 && m.Steps > 0 {
		return nil
	}
	price, err := m.price(pub, terms)
	if err != nil {
		return err
	}
	if m.Steps == 0 {
		// T′ of Remark 4.1 with the factor 2 that P1 lost (S-1a).
		m.Steps = least(m.predictions(pub, price, w, of)).Steps
	}
	if m.Gradient.Noise > 0 {
		return nil
	}
	shape := make([]float64, m.Steps)
	for t := range shape {
		shape[t] = 1
	}
	if of.optimal {
		_, a := w(m.Steps)
		if shape, err = price.optimal(a); err != nil {
			return err
		}
	}
	// The shape is what the theory says, the scale what the accountant grants.
	with := *m
	scale, err := account.Calibrate(terms.Accountant, terms.Budget, func(x float64) privacy.Event {
		if !of.optimal {
			with.Gradient.Noise = x
			return with.plan(pub)
		}
		with.Schedule = make([]float64, len(shape))
		for t := range shape {
			with.Schedule[t] = x * shape[t]
		}
		return with.plan(pub)
	})
	if err != nil {
		return err
	}
	if !of.optimal {
		m.Gradient.Noise = scale
		return nil
	}
	for t := range shape {
		shape[t] *= scale
	}
	m.Schedule = shape
	return nil
}

// least is the prediction of the least error, the first of several; the zero Prediction of none.
func least(all []Prediction) (best Prediction) {
	for i, p := range all {
		if i == 0 || p.Error < best.Error {
			best = p
		}
	}
	return best
}

// predictions are the bounds for 1, 2, 3, … steps, and then for numbers some 5% apart;
// for Steps alone where it is set. For samples of the rows they count on the same
// noise in all steps.
func (m *P1) predictions(pub oracle.Public, price *price, w weights, of bound) []Prediction {
	delta, err := clip.Sensitivity(m.Gradient.Clip, pub.Adjacency)
	if err != nil {
		return nil
	}
	size := m.ask(pub, 0).Sampler(pub).Size(pub.Rows)
	unit := delta / size * delta / size // variance of Gaussian noise of multiplier 1
	if m.Gradient.Laplace {
		unit *= 2
	}
	sampling := schedule.SampleVariance(2*m.Gradient.Clip, int(size), pub.Rows)
	optimal := of.optimal && int(size) == pub.Rows
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
		p := Prediction{Steps: steps, Rate: m.Rate, Start: a0 * startError(pub)}
		if of.momentum {
			p.Momentum = schedule.Momentum(m.Rate, m.Mu)
		}
		p.Noise = schedule.Error(0, 0, a, variance, pub.Dim, sampling)
		p.Error = p.Start + p.Noise
		all = append(all, p)
	}
	return all
}

// startError is E_0, a bound on F(0) − F* of the losses with classes, which are 0 or more
// (a width of huber-svm above 1 apart), and a guess for the squared loss.
func startError(pub oracle.Public) float64 {
	if inLabelUnits(pub) {
		return pub.LabelSpan * pub.LabelSpan / 2
	}
	return math.Max(1, math.Log(float64(pub.Classes)))
}

// check says what is wrong with the fields, which are public numbers.
func (m *P1) check(pub oracle.Public, optimal bool) error {
	if m.Gradient.Noise > 0 && optimal {
		return fmt.Errorf("noise_multiplier: found %v; this method has one for each step, made from the budget",
			m.Gradient.Noise)
	}
	err := unused(*m)
	if err == nil {
		err = check(
			Count{"steps", &m.Steps, 0, 0},
			Number{"rate", &m.Rate, Positive, 0},
			Number{"mu", &m.Mu, Positive, 0},
			Number{"smooth", &m.Smooth, Positive, 0},
		)
	}
	if err == nil {
		err = m.Gradient.check(pub)
	}
	return err
}

// ask is the gradient of step t, counted from 0, with the sampling of P1, which follows from the adjacency and is no
// field.
func (m P1) ask(pub oracle.Public, t int) Gradient {
	g := m.Gradient
	if m.Schedule != nil {
		g.Noise = m.Schedule[t]
	}
	if drawsFixed(pub) {
		g.Sampling = Fixed
	}
	return g
}

func (m P1) plan(pub oracle.Public) privacy.Event {
	if m.Schedule == nil {
		return repeat(m.Steps, m.ask(pub, 0).Cost(pub))
	}
	all := make(privacy.Composed, m.Steps)
	for t := range all {
		all[t] = m.ask(pub, t).Cost(pub)
	}
	return all
}

// Plan is one noisy gradient a step.
func (m P1) Plan(pub oracle.Public) (privacy.Event, error) { return valid(m.plan(pub)) }

// distance is ‖x − y‖₂.
func distance(x, y []float64) float64 {
	s := 0.0
	for j := range x {
		s += (x[j] - y[j]) * (x[j] - y[j])
	}
	return math.Sqrt(s)
}
