package secondorder

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// Miss is the probability with which a Claim or the analysis of a line search may fail.
const Miss = 0.01

// A Phase is a number of steps with the same noise.
type Phase struct {
	Steps    int
	Noise    float64 // σ_g = σ_H = λ_SVT (14)
	Hessians int     // most Hessians, unless each step is charged for one
}

// Queries are what a method of P4 asks, by public numbers alone.
type Queries struct {
	Public         oracle.Public
	Sampler        sample.Sampler
	Clip, HessClip float64 // B_g and B_H
	Plan           bool    // each step is charged for a gradient and a Hessian, asked or not
	MaxBacktracks  int     // most step sizes of a line search; 0: there is none
	Off            bool    // no noise: lab
}

func (q Queries) grad(noise float64) oracle.Grad {
	switch {
	case q.Off && q.Clip == 0:
		return oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
	case q.Off:
		return oracle.Grad{Clip: clip.Norm{C: q.Clip}, Noise: mech.None{}}
	}
	return oracle.Grad{Clip: clip.Norm{C: q.Clip}, Noise: mech.Gaussian{Sigma: noise}}
}

func (q Queries) hess(noise float64) oracle.Hess {
	if q.Off {
		return oracle.Hess{Clip: q.HessClip, Off: true}
	}
	return oracle.Hess{Clip: q.HessClip, Noise: mech.SymmetricGaussian{Sigma: noise}}
}

// search has pure ε = 1/λ with λ = σ: ξ ~ Lap(2λΔ), ν ~ Lap(4λΔ) (P4 Algorithm 2). Its bound does not
// enter its cost.
func (q Queries) search(noise, bound float64) oracle.Search {
	if q.Off {
		return oracle.Search{Off: true, Noise: mech.AboveThreshold{Max: q.MaxBacktracks}}
	}
	return oracle.Search{Bound: bound,
		Noise: mech.AboveThreshold{Threshold: 2 * noise, Query: 4 * noise, Max: q.MaxBacktracks}}
}

// step is what each step is charged for before its Hessian is asked.
func (q Queries) step(noise float64) []oracle.Query {
	if q.Plan {
		return []oracle.Query{q.grad(noise), q.hess(noise)}
	}
	return []oracle.Query{q.grad(noise)}
}

// Cost is the most that the phases ask.
func (q Queries) Cost(phases ...Phase) privacy.Event {
	var all privacy.Composed
	for _, p := range phases {
		step := q.Public.Cost(q.Sampler, q.step(p.Noise))
		if q.MaxBacktracks > 0 {
			step = privacy.Composed{step, q.Public.Cost(q.Sampler, []oracle.Query{q.search(p.Noise, 1)})}
		}
		var cost privacy.Event = privacy.Repeated{Count: p.Steps, Of: step}
		if !q.Plan {
			cost = privacy.Composed{cost,
				privacy.Repeated{Count: p.Hessians, Of: q.Public.Cost(q.Sampler, []oracle.Query{q.hess(p.Noise)})}}
		}
		all = append(all, cost)
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// GradientNoise bounds the norm of the noise in a mean gradient, but for a probability of miss.
func (q Queries) GradientNoise(noise, miss float64) float64 {
	s, err := clip.Sensitivity(q.Clip, q.Public.Adjacency)
	if err != nil {
		s = 0
	}
	return VectorNoise(q.Public.Dim, noise*(s/q.Sampler.Size(q.Public.Rows)), miss)
}

// HessianNoise bounds the spectral norm of the noise in a mean Hessian likewise.
func (q Queries) HessianNoise(noise, miss float64) float64 {
	s := q.HessClip
	if q.Public.Adjacency == privacy.ReplaceOne {
		s *= math.Sqrt2 // R16
	}
	return MatrixNoise(q.Public.Dim, noise*(s/q.Sampler.Size(q.Public.Rows)), miss)
}

// A Run asks the queries of a run, phase after phase. A method calls Next before each step; where an
// answer is not ok, it continues with Next, which ends the phase or the run, and Err says why.
type Run struct {
	Queries
	Constants

	oracle  oracle.Oracle
	reg     reg.Regularizer
	filter  *privacy.Filtered
	phases  []Phase // this one and those to come
	tests   int     // most points tested in all phases: a Claim shares its miss among them
	batch   oracle.Batch
	g       []float64
	begun   int // steps of the phase
	asked   int // Hessians of the phase
	charged []privacy.Repeated
	refused error // a phase of a plan ended early
	err     error
}

// Run prepares a run of the phases on o, with those tolerances ε_g and ε_H. r is nil for none; filter is nil where the
// cost is a plan.
func (q Queries) Run(o oracle.Oracle, r reg.Regularizer, gradient, curvature float64, filter *privacy.Filtered,
	phases ...Phase) *Run {
	run := &Run{Queries: q, oracle: o, reg: r, filter: filter, phases: phases, g: make([]float64, q.Public.Dim)}
	run.Constants, run.err = Analysis(q.Public, r, gradient, curvature)
	for _, p := range phases {
		run.tests += p.Steps
	}
	return run
}

// Next begins a step, in the next phase where this one is over.
func (r *Run) Next() bool {
	r.begun++
	for r.err == nil && r.begun > r.phases[0].Steps {
		if len(r.phases) == 1 {
			return false
		}
		r.phases, r.begun, r.asked = r.phases[1:], 1, 0
		r.phases[0].Noise = r.least(r.phases[0])
	}
	return r.err == nil
}

// Err is why the run ended before its last step, or nil.
func (r *Run) Err() error {
	if r.err == nil {
		return r.refused
	}
	return r.err
}

// ok ends the run on an error. A phase ends without one where its Hessians are used up, and where its part
// of a plan is, as in a resumed run that lost batches in a crash.
func (r *Run) ok(err error) bool {
	switch {
	case err == nil:
		return true
	case r.Plan && errors.Is(err, privacy.ErrExhausted):
		r.refused, r.begun = err, r.phases[0].Steps
	default:
		r.err = err
	}
	return false
}

// open charges for queries of a fresh sample, and counts equal events as one.
func (r *Run) open(ctx context.Context, q ...oracle.Query) error {
	b, err := r.oracle.Batch(ctx, r.Sampler, q...)
	if err != nil {
		return err
	}
	r.batch = b
	e := r.Public.Cost(r.Sampler, q)
	for i, c := range r.charged {
		if privacy.Equal(c.Of, e) {
			r.charged[i].Count++
			return nil
		}
	}
	r.charged = append(r.charged, privacy.Repeated{Count: 1, Of: e})
	return nil
}

// least is the smallest noise, to 1e-6, with which the filter still admits all of p: a function of what
// was charged, so that a phase may spend what those before it left (P4 §3.4).
func (r *Run) least(p Phase) float64 {
	if r.filter == nil {
		return p.Noise
	}
	f := *r.filter
	admits := func(noise float64) bool {
		p.Noise = noise
		all := privacy.Composed{r.Cost(p)}
		for _, c := range r.charged {
			all = append(all, c)
		}
		meter, err := account.NewMeter(f, nil,
			privacy.Budget{Epsilon: f.Epsilon, Delta: f.Delta, Adjacency: r.Public.Adjacency})
		return err == nil && meter.Charge(all) == nil
	}
	low, high := p.Noise/4, p.Noise
	for high/low > 1+1e-6 {
		if mid := math.Sqrt(low * high); admits(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// Grad is g̃, the noisy gradient of F at w, until the next one.
func (r *Run) Grad(ctx context.Context, w []float64) (g []float64, ok bool) {
	q := r.grad(r.phases[0].Noise)
	err := r.open(ctx, r.step(r.phases[0].Noise)...)
	if err == nil {
		g, err = r.batch.Grad(q, w)
	}
	if !r.ok(err) {
		return nil, false
	}
	copy(r.g, g)
	if r.reg != nil {
		r.reg.AddGrad(r.g, w)
	}
	return r.g, true
}

// Hess is H̃, the noisy Hessian of F at w, with its smallest eigenvalue λ̃ and p̃, for which p̃'g̃ ≤ 0 (5).
func (r *Run) Hess(ctx context.Context, w, g []float64) (h *mat.SymDense, p Pair, ok bool) {
	if !r.Plan && r.asked == r.phases[0].Hessians {
		r.begun = r.phases[0].Steps // Next begins the next phase
		return nil, p, false
	}
	h, err := r.hessian(ctx, w)
	if err == nil {
		p, err = Smallest(h, r.Curvature/4, Miss/float64(10*r.tests))
	}
	if !r.ok(err) {
		return nil, p, false
	}
	if floats.Dot(p.Vector, g) > 0 {
		floats.Scale(-1, p.Vector)
	}
	return h, p, true
}

func (r *Run) hessian(ctx context.Context, w []float64) (*mat.SymDense, error) {
	q := r.hess(r.phases[0].Noise)
	if !r.Plan {
		if err := r.open(ctx, q); err != nil {
			return nil, err
		}
	}
	r.asked++
	released, err := r.batch.Hess(q, w)
	if err != nil {
		return nil, err
	}
	full, err := oracle.Symmetric(released, len(w))
	if err != nil {
		return nil, err
	}
	h := mat.NewSymDense(len(w), full)
	if c, ok := r.reg.(reg.Curved); ok {
		diagonal := make([]float64, len(w))
		c.AddHess(diagonal, w)
		for j, v := range diagonal {
			h.SetSym(j, j, h.At(j, j)+v)
		}
	}
	return h, nil
}

// Along is P4 Algorithm 2: of long·sure, shrink·long·sure, … down to sure, it is the first step size
// against s, of that norm, that a noisy comparison finds to lower F by least, and sure where it finds none.
func (r *Run) Along(ctx context.Context, w, s []float64, norm, sure, long, shrink float64,
	least func(step float64) float64) (step float64, ok bool) {
	step = long * sure
	q := r.search(r.phases[0].Noise, math.Min(math.Max(step*r.Clip*norm, 1e-100), 1e100))
	line := oracle.Line{From: w, Along: s}
	for range r.MaxBacktracks {
		line.Steps, line.Least = append(line.Steps, step), append(line.Least, least(step)+reg.Rise(r.reg, w, s, step))
		step *= shrink
	}
	k, err := -1, r.open(ctx, q)
	if err == nil {
		k, err = r.batch.Search(q, line)
	}
	if !r.ok(err) || k < 0 {
		return sure, err == nil
	}
	return line.Steps[k], true
}

// A Claim is the statement of a converged method about its last iterate: with at least that Probability over the
// noise, the samples and the start of Lanczos's method, ‖∇F‖ ≤ Gradient and λ_min(∇²F) ≥ −Curvature.
// F is the mean over the nominal number of rows plus the regularizer. The bounds hold at once for all
// points that a run may test.
type Claim struct {
	Gradient    float64 `json:"gradient"`
	Curvature   float64 `json:"curvature"`
	Probability float64 `json:"probability"`
}

// Claim is what follows from the norm of a noisy gradient and the smallest eigenvalue of a noisy Hessian; nil where
// rows may have been clipped, or were sampled in a way that has no theorem here.
func (r *Run) Claim(norm float64, p Pair) *Claim {
	if !(r.Off && r.Clip == 0) && r.Clip < float64(r.Public.Lipschitz) || r.HessClip < float64(r.Public.Smooth) {
		return nil
	}
	c := &Claim{Gradient: norm, Curvature: math.Max(0, p.Slack-p.Value), Probability: 1}
	if p.Slack > 0 {
		c.Probability -= Miss / 10
	}
	// The private oracle truncates what it sums: of a record's gradient up to 2⁻¹⁸ of its clip norm, of its
	// Hessian 2⁻¹⁹√d. From 2²¹ rows on the grid of gradients grows in proportion to the rows (ADR 1).
	slack := 0x1p-15 * math.Sqrt(float64(r.Public.Dim)) * math.Max(1, 0x1p-23*float64(r.Public.Rows))
	c.Gradient += slack * r.Clip
	c.Curvature += slack * r.HessClip
	if r.Off {
		return c
	}
	each := Miss / float64(4*r.tests)
	c.Gradient += r.GradientNoise(r.phases[0].Noise, each)
	c.Curvature += r.HessianNoise(r.phases[0].Noise, each)
	switch s := r.Sampler.(type) {
	case sample.Full:
	case sample.Fixed:
		c.Gradient += SampleError(s.M, r.Clip, each)
		c.Curvature += SampleError(s.M, r.HessClip, each)
	default:
		return nil
	}
	c.Probability -= Miss
	return c
}

// Exact computes ‖∇F‖ and λ_min(∇²F) at w without noise, of an oracle that allows it: for lab runs and
// experiments.
func Exact(ctx context.Context, o oracle.Oracle, r reg.Regularizer, w []float64) (gradient, least float64, err error) {
	pub := o.Public()
	run := Queries{Public: pub, Sampler: sample.Full{}, HessClip: float64(pub.Smooth), Plan: true, Off: true}.Run(o, r, 0,
		0, nil, Phase{Steps: 1})
	if !run.Next() {
		return 0, 0, run.Err()
	}
	g, ok := run.Grad(ctx, w)
	if !ok {
		return 0, 0, run.Err()
	}
	h, err := run.hessian(ctx, w)
	if err != nil {
		return 0, 0, err
	}
	p, err := Smallest(h, 1e-9*run.Smooth, 1e-9)
	return floats.Norm(g, 2), p.Value - p.Slack, err
}
