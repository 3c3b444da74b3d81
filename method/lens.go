package method

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Claim is what a method that has converged says of its last iterate: with at least that
// Probability over the noise, the samples and the start of Lanczos's method, ‖∇F‖ ≤ Gradient and λ_min(∇²F) ≥ −Curvature. F is the mean over the
// nominal number of rows plus the regularizer. The bounds hold at once for all points that a run may test.
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
	c      secondorder.Constants
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
	refused error // of a phase whose part of the plan was used up
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

// lookAlong is a search of pure ε = 1/λ with λ = σ: ξ ~ Lap(2λΔ), ν ~ Lap(4λΔ) (P4 Algorithm 2). Its
// bound does not enter its cost.
func (l *lens) lookAlong(noise, bound float64) oracle.Search {
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
		step = privacy.Composed{step, one(l.lookAlong(p.noise, 1))}
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
	l.obj.AddGradient(g, w)
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
func (l *lens) smallest(w, g []float64) (secondorder.Pair, error) {
	h, err := l.hessian(w)
	if err != nil {
		return secondorder.Pair{}, err
	}
	return l.pairOf(h, g)
}

func (l *lens) pairOf(h *mat.SymDense, g []float64) (secondorder.Pair, error) {
	p, err := secondorder.Smallest(h, l.c.Curvature/4, p4Miss/float64(10*l.tests))
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
func (l *lens) claim(g []float64, p secondorder.Pair) *Claim {
	if !(l.Off && l.Clip == 0) && l.Clip < float64(l.pub.Lipschitz) || l.HessClip < float64(l.pub.Smooth) {
		return nil
	}
	c := &Claim{Gradient: norm2(g), Curvature: math.Max(0, p.Slack-p.Value), Probability: 1}
	if p.Slack > 0 {
		c.Probability -= p4Miss / 10
	}
	d := len(g)
	// The door truncates what it sums: of a record's gradient up to 2⁻¹⁸ of its clip norm, of its Hessian 2⁻¹⁹√d; with the
	// number of rows the units grow, of gradients from 2²¹ rows on in proportion (ADR 1).
	slack := 0x1p-15 * math.Sqrt(float64(d)) * math.Max(1, 0x1p-23*float64(l.pub.Rows))
	c.Gradient += slack * l.Clip
	c.Curvature += slack * l.HessClip
	if l.Off {
		return c
	}
	each := p4Miss / float64(4*l.tests)
	c.Gradient += secondorder.VectorNoise(d, l.phase.noise*l.gradDeviation(), each)
	c.Curvature += secondorder.MatrixNoise(d, l.phase.noise*l.hessDeviation(), each)
	switch s := l.sample.(type) {
	case sample.Full:
	case sample.Fixed:
		c.Gradient += secondorder.SampleError(s.M, l.Clip, each)
		c.Curvature += secondorder.SampleError(s.M, l.HessClip, each)
	default:
		return nil
	}
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
	p, err := secondorder.Smallest(h, 1e-9*l.c.Smooth, 1e-9)
	return norm2(g), p.Value - p.Slack, err
}

// move adds the step s to w and says so in st.
func (st *Step) move(w, s []float64, rate, gradNorm float64) {
	for j, v := range s {
		w[j] += rate * v
	}
	st.T, st.Rate, st.GradNorm, st.Moved = st.T+1, math.Abs(rate), gradNorm, math.Abs(rate)*norm2(s)
}
