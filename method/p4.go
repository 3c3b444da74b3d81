package method

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/method/curvature"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// P4 is what the methods of P4 have in common: Differentially Private Optimization for Smooth
// Non-Convex ERM. They look for an (ε_g, ε_H)-2NS, a point with ‖∇F‖ ≤ ε_g and
// λ_min(∇²F) ≥ −ε_H, and end with status Converged where the noisy gradient g̃ and the noisy Hessian
// H̃ say that they are there.
//
//	P4            here
//	ε_g, ε_H      Gradient, Curvature
//	G, M          the model's bounds on a row, with the regulariser's
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

// A Claim is what a method that has converged says of its last iterate: with at least that
// Probability over the noise, and over the samples, ‖∇F‖ ≤ Gradient and λ_min(∇²F) ≥ −Curvature. F is the mean over the
// nominal number of rows plus the regulariser. The bounds hold at once for all points that a run may test.
type Claim struct {
	Gradient    float64 `json:"gradient"`
	Curvature   float64 `json:"curvature"`
	Probability float64 `json:"probability"`
}

// A phase is a number of steps under the same noise.
type phase struct {
	steps    int
	noise    float64
	hessians int // most Hessians
}

// A lens is what a method of P4 looks through: its queries, bought as it needs them.
type lens struct {
	*P4
	pub    oracle.Public
	obj    Objective
	c      curvature.Constants
	sample sample.Sampler
	plan   bool // gradients and Hessians are paid together, needed or not
	tries  int  // most step sizes of a line search; 0: there is none

	ctx     context.Context
	oracle  oracle.Oracle
	phase   phase
	batch   oracle.Batch
	opened  int // phases begun
	step    int // of the phase
	bent    int // Hessians of the phase
	tests   int // most tests of a point in the whole run: what a Claim divides its miss by
	charged []privacy.Repeated
}

// errPhase says that a phase has had its Hessians.
var errPhase = errors.New("method: the phase is over")

func (l *lens) grad(noise float64) oracle.Grad {
	q := oracle.Grad{Clip: clip.Norm{C: l.Clip}, Noise: mech.Gaussian{Sigma: noise}}
	if l.Off {
		q.Noise = mech.None{}
		if l.Clip == 0 {
			q.Clip = clip.None{}
		}
	}
	return q
}

func (l *lens) hess(noise float64) oracle.Hess {
	if l.Off {
		return oracle.Hess{Clip: l.HessClip, Off: true}
	}
	return oracle.Hess{Clip: l.HessClip, Noise: mech.SymmetricGaussian{Sigma: noise}}
}

// search is one of pure ε = 1/λ with λ = σ: ξ ~ Lap(2λΔ), ν ~ Lap(4λΔ) (P4 Algorithm 2). Its
// bound does not enter its cost.
func (l *lens) search(noise, bound float64) oracle.Search {
	if l.Off {
		return oracle.Search{Off: true, Noise: mech.AboveThreshold{Max: l.tries}}
	}
	return oracle.Search{Bound: bound, Noise: mech.AboveThreshold{Threshold: 2 * noise, Query: 4 * noise, Max: l.tries}}
}

// cost is the most that a phase asks.
func (l *lens) cost(p phase) privacy.Event {
	one := func(q ...oracle.Query) privacy.Event { return oracle.Cost(l.sample, q) }
	step := one(l.grad(p.noise))
	if l.plan {
		step = one(l.grad(p.noise), l.hess(p.noise))
	}
	if l.tries > 0 {
		step = privacy.Composed{step, one(l.search(p.noise, 1))}
	}
	all := privacy.Repeated{Count: p.steps, Of: step}
	if l.plan {
		return all
	}
	return privacy.Composed{all, privacy.Repeated{Count: p.hessians, Of: one(l.hess(p.noise))}}
}

// buy pays for queries of a sample.
func (l *lens) buy(q ...oracle.Query) error {
	b, err := l.oracle.Batch(l.ctx, l.sample, q...)
	if err == nil {
		l.batch = b
		l.charge(oracle.Cost(l.sample, q))
	}
	return err
}

// charge keeps what was charged, in whatever order: events of equal cost are one entry.
func (l *lens) charge(e privacy.Event) {
	for i, r := range l.charged {
		if privacy.Equal(r.Of, e) {
			l.charged[i].Count++
			return
		}
	}
	l.charged = append(l.charged, privacy.Repeated{Count: 1, Of: e})
}

// start makes the lens ready for a run.
func (l *lens) start(ctx context.Context, o oracle.Oracle, obj Objective) (err error) {
	l.ctx, l.oracle, l.obj = ctx, o, obj
	l.c, err = l.constants(l.pub, obj)
	return err
}

// open begins the next phase, if there is one.
func (l *lens) open(p phase, more bool) bool {
	l.phase, l.step, l.bent = p, 0, 0
	l.opened++
	return more
}

// next begins a step, if the phase has one left.
func (l *lens) next() bool {
	l.step++
	return l.step <= l.phase.steps
}

// gradient sets g to g̃, the noisy gradient of F at w.
func (l *lens) gradient(g, w []float64) error {
	q := l.grad(l.phase.noise)
	pay := []oracle.Query{q}
	if l.plan {
		pay = append(pay, l.hess(l.phase.noise))
	}
	if err := l.buy(pay...); err != nil {
		return err
	}
	released, err := l.batch.Grad(q, w)
	if err != nil {
		return err
	}
	copy(g, released)
	l.obj.addGrad(g, w)
	return nil
}

// hessian is H̃, the noisy Hessian of F at w, or errPhase.
func (l *lens) hessian(w []float64) (*mat.SymDense, error) {
	q := l.hess(l.phase.noise)
	if !l.plan {
		if l.bent == l.phase.hessians {
			return nil, errPhase
		}
		if err := l.buy(q); err != nil {
			return nil, err
		}
	}
	l.bent++
	released, err := l.batch.Hess(q, w)
	if err != nil {
		return nil, err
	}
	full, err := oracle.Symmetric(released, len(w))
	if err != nil {
		return nil, err
	}
	h := mat.NewSymDense(len(w), full)
	if r, ok := l.obj.Reg.(reg.Curved); ok {
		diagonal := make([]float64, len(w))
		r.AddHess(diagonal, w)
		for j, v := range diagonal {
			h.SetSym(j, j, h.At(j, j)+v)
		}
	}
	return h, nil
}

// smallest is the pair (λ̃, p̃) of H̃ at w, with p̃'g̃ ≤ 0 (5).
func (l *lens) smallest(w, g []float64) (curvature.Pair, error) {
	h, err := l.hessian(w)
	if err != nil {
		return curvature.Pair{}, err
	}
	return l.pairOf(h, g)
}

func (l *lens) pairOf(h *mat.SymDense, g []float64) (curvature.Pair, error) {
	p, err := curvature.Smallest(h, l.c.Curvature/4, p4Miss/float64(10*l.tests))
	along := 0.0
	for j, v := range p.Vector {
		along += v * g[j]
	}
	if along > 0 {
		for j := range p.Vector {
			p.Vector[j] = -p.Vector[j]
		}
	}
	return p, err
}

// claim is what follows from a noisy gradient and a noisy smallest eigenvalue, or nil where rows may
// have been clipped, or drawn in a way without a theorem here.
func (l *lens) claim(g []float64, p curvature.Pair) *Claim {
	if !(l.Off && l.Clip == 0) && l.Clip < float64(l.pub.Lipschitz) || l.HessClip < float64(l.pub.Smooth) {
		return nil
	}
	c := &Claim{Gradient: norm2(g), Curvature: math.Max(0, p.Slack-p.Value), Probability: 1}
	if p.Slack > 0 {
		c.Probability -= p4Miss / 10
	}
	if l.Off {
		return c
	}
	d, each := len(g), p4Miss/float64(4*l.tests)
	c.Gradient += curvature.VectorNoise(d, l.phase.noise*l.gradDeviation(), each)
	c.Curvature += curvature.MatrixNoise(d, l.phase.noise*l.hessDeviation(), each)
	switch s := l.sample.(type) {
	case sample.Full:
	case sample.Fixed:
		c.Gradient += curvature.SampleError(s.M, l.Clip, each)
		c.Curvature += curvature.SampleError(s.M, l.HessClip, each)
	default:
		return nil
	}
	// The door truncates what it sums, by far less than this (ADR 1).
	slack := 0x1p-15 * math.Sqrt(float64(d))
	c.Gradient += slack * l.Clip
	c.Curvature += slack * l.HessClip
	c.Probability -= p4Miss
	return c
}

// gradDeviation is the standard deviation of a coordinate's noise in a mean gradient, for a noise
// multiplier of 1; hessDeviation that of an entry on the diagonal of a mean Hessian.
func (l *lens) gradDeviation() float64 {
	s, err := clip.Sensitivity(l.Clip, l.pub.Adjacency)
	if err != nil {
		return 0
	}
	return s / l.sample.Size(l.pub.Rows)
}

func (l *lens) hessDeviation() float64 {
	s := l.HessClip
	if l.pub.Adjacency == privacy.ReplaceOne {
		s *= math.Sqrt2 // R16
	}
	return s / l.sample.Size(l.pub.Rows)
}

// SecondOrder computes ‖∇F‖ and λ_min(∇²F) at w without noise, through a door that lets such looks
// pass: for lab runs and experiments.
func SecondOrder(ctx context.Context, o oracle.Oracle, obj Objective, w []float64) (gradient, least float64, err error) {
	pub := o.Public()
	l := &lens{P4: &P4{HessClip: float64(pub.Smooth), Off: true}, pub: pub, sample: sample.Full{}, plan: true, tests: 1}
	if err := l.start(ctx, o, obj); err != nil {
		return 0, 0, err
	}
	g := make([]float64, len(w))
	if err := l.gradient(g, w); err != nil {
		return 0, 0, err
	}
	h, err := l.hessian(w)
	if err != nil {
		return 0, 0, err
	}
	p, err := curvature.Smallest(h, 1e-9*l.c.Smooth, 1e-9)
	return norm2(g), p.Value - p.Slack, err
}

// constants are those of F, from public facts.
func (m *P4) constants(pub oracle.Public, obj Objective) (curvature.Constants, error) {
	c := curvature.Constants{Smooth: float64(pub.Smooth), HessLipschitz: float64(pub.HessLipschitz), Gradient: m.Gradient, Curvature: m.Curvature,
		C: p4C, C1: p4C, C2: p4C, CG: p4CG, CH: p4CG}
	if obj.Reg != nil {
		r, ok := obj.Reg.(reg.Curved)
		if !ok {
			return c, errors.New("model: found a regulariser with kinks; allowed for this method is one with a Hessian, or none")
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
type decreases func(curvature.Constants) (gradient, curvature float64)

func (d decreases) least(c curvature.Constants) float64 { return math.Min(d(c)) }

// fit sets what may be left free apart from the noise; asked is how many releases a step
// makes, for the default tolerance. It returns how many steps along negative curvature there can be.
func (m *P4) fit(pub oracle.Public, obj Objective, terms Terms, d decreases, asked int) (bends float64, err error) {
	m.Off = terms.Off
	for _, f := range []struct {
		name  string
		value float64
		most  float64
	}{{"gradient", m.Gradient, math.Inf(1)}, {"curvature", m.Curvature, math.Inf(1)}, {"gap", m.Gap, math.Inf(1)}, {"noise_multiplier", m.Noise, maxNoise}} {
		if !(f.value >= 0 && f.value <= f.most) || math.IsInf(f.value, 1) {
			return 0, fmt.Errorf("%s: found %v; allowed is any number above 0", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"clip", m.Clip}, {"hess_clip", m.HessClip}} {
		if f.value != 0 && !(f.value >= minClip && f.value <= maxClip) {
			return 0, fmt.Errorf("%s: found %v; allowed is any number from %g to %g", f.name, f.value, minClip, maxClip)
		}
	}
	if m.Steps < 0 || m.Steps > p4Most {
		return 0, fmt.Errorf("steps: found %d; allowed is 1 to %d", m.Steps, p4Most)
	}
	if m.Noise > 0 && m.Off {
		return 0, fmt.Errorf("noise_multiplier: found %v; it has no place beside `privacy: none`", m.Noise)
	}
	if !m.Off && terms.Budget.Delta == 0 {
		return 0, errors.New("privacy.delta: found 0; Gaussian noise has no guarantee without a δ above 0")
	}
	if m.Clip == 0 && !m.Off {
		m.Clip = float64(pub.Lipschitz)
		if !pub.Lipschitz.Finite() {
			m.Clip = sgdQuadClip * pub.NormBound * pub.LabelSpan
		}
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
		steps := curvature.Steps(m.Gap, d.least(c))
		if m.Off {
			steps = math.Min(steps, p4Long)
		}
		if steps > p4Most {
			return 0, fmt.Errorf("gradient: found %v; by the analysis that takes %.3g steps, allowed are up to %d: set a larger tolerance, or steps", m.Gradient, steps, p4Most)
		}
		m.Steps = max(1, int(steps))
	}
	_, along := d(c)
	return curvature.Steps(m.Gap, along), nil
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
func (m *P4) tolerance(pub oracle.Public, c curvature.Constants, terms Terms, d decreases, asked int) (float64, error) {
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
		steps := math.Max(1, curvature.Steps(m.Gap, d.least(c)))
		if m.Steps > 0 {
			steps = float64(m.Steps)
		}
		noise := one * math.Sqrt(float64(asked)*steps)
		if m.Noise > 0 {
			noise = m.Noise
		}
		each := p4Miss / (4 * steps)
		if 2*curvature.VectorNoise(pub.Dim, noise*l.gradDeviation(), each) <= mid && 2*curvature.MatrixNoise(pub.Dim, noise*l.hessDeviation(), each) <= c.Curvature {
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

// Horizon is T.
func (m P4) Horizon() int { return m.Steps }

// NoiseMultiplier is σ.
func (m P4) NoiseMultiplier() float64 { return m.Noise }

// move adds the step s to w and says so in st.
func (st *Step) move(w, s []float64, rate, gradNorm float64) {
	for j, v := range s {
		w[j] += rate * v
	}
	st.T, st.Rate, st.GradNorm, st.Moved = st.T+1, math.Abs(rate), gradNorm, math.Abs(rate)*norm2(s)
}
