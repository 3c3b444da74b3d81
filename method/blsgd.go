package method

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// BLSGD is DP-BLSGD, P2 Algorithms 1 and 2: noisy gradients with a private backtracking line
// search for the step size. With a full batch it is DP-BLGD.
//
//	P2          here
//	B           two fresh samples a step, each drawn by sampler(): B₁ for the gradient,
//	            B₂ for the search; all rows if Batch is 0
//	C_grad      Clip
//	C_obj       Fall
//	ρ_grad      1/(2σ²), σ = Noise
//	ε_BT        Search/σ, half of it for the threshold and half for the answers
//	g̃           p
//	η₀, β       Rate, Shrink: η_i = β^{i−1} η₀
//	max_it      Tries
//	α_A         Armijo
//	τ, ς        every 10 steps η₀ falls to 1.2 times the largest step taken in them
//
// Deviations. P2 asks everything of one sample and charges it as if of many, which is not private; here
// each access has a sample of its own (S-2a), and divisors are public (S-2b). The search is Laplace's;
// P2's Gaussian one does not cost what is claimed (S-2d). What is clipped is a row's decrease, not
// its two losses: same sensitivity, no bias while decreases are small. Armijo's condition is about means, in
// P2 it mixes a sum and a mean (S-2f), and leaves out of ‖p‖² what the noise adds to it on
// average. Budgets do not grow, so the cost is known beforehand and is never more: T gradients and T searches of at most
// Tries steps. Where a search finds nothing, w stays, and the next gradient there is averaged with
// this one, as in P2's CHEB; P2 leaves open what is returned (S-2f): w.
type BLSGD struct {
	SGD
	Rate   float64 `yaml:"rate" json:"rate" doc:"longest step size η₀ that a search tries first (default 80/R², R the bound on a row's norm; 4/L for the squared loss, L its curvature bound)"`
	Shrink float64 `yaml:"shrink" json:"shrink" doc:"factor β from one step size to the next (default 0.5)"`
	Tries  int     `yaml:"tries" json:"tries" doc:"most step sizes of a search (default 10)"`
	Armijo float64 `yaml:"armijo" json:"armijo" doc:"share α of the decrease along a straight line that a step must bring (default 0.1)"`
	Fall   float64 `yaml:"fall" json:"fall" doc:"bound c on the decrease of one row's loss that counts (default half the loss's Lipschitz bound × 1/R; an eighth of the square of the width of the label's bounds for the squared loss)"`
	Search float64 `yaml:"search" json:"search" doc:"ε of one search × noise multiplier (default 0.5)"`
}

// Defaults of what Fit may choose, measured (docs/methods.md).
const (
	blRate     = 80 // × 1/R²
	blQuadRate = 4  // × 1/L
	blShrink   = 0.5
	blTries    = 10
	blArmijo   = 0.1
	blFall     = 0.5 // × Lipschitz bound / R
	blQuadFall = 0.125
	blSearch   = 0.5
	blEvery    = 10  // τ
	blGrowth   = 1.2 // ς
)

// Fit sets what is zero.
func (m BLSGD) Fit(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	bounded := pub.Lipschitz.Finite()
	rate, fall := blRate/(pub.NormBound*pub.NormBound), blFall*float64(pub.Lipschitz)/pub.NormBound
	if !bounded {
		rate, fall = blQuadRate/(float64(pub.Smooth)+obj.smooth()), blQuadFall*pub.LabelSpan*pub.LabelSpan
	}
	if terms.Off {
		fall = 0
	}
	switch {
	case m.Tries < 0 || m.Tries > 1000:
		return nil, fmt.Errorf("tries: found %d; allowed is 1 to 1000", m.Tries)
	case m.Tries == 0:
		m.Tries = blTries
	}
	for _, f := range []struct {
		name  string
		value *float64
		most  float64
		or    float64 // default
	}{
		{"rate", &m.Rate, math.Inf(1), rate},
		{"shrink", &m.Shrink, 1, blShrink},
		{"armijo", &m.Armijo, 1, blArmijo},
		{"fall", &m.Fall, maxClip, fall},
		{"search", &m.Search, 1e6, blSearch},
	} {
		if !(*f.value >= 0 && *f.value < f.most) {
			return nil, fmt.Errorf("%s: found %v; allowed is any number above 0 and below %v", f.name, *f.value, f.most)
		}
		if *f.value == 0 {
			*f.value = f.or
		}
	}
	if m.Fall != 0 && m.Fall < minClip {
		return nil, fmt.Errorf("fall: found %v; allowed is any number from %g", m.Fall, minClip)
	}
	sgd := m.SGD
	sgd.Rate = 0
	err := sgd.fit(pub, obj, terms, func(s SGD) privacy.Event {
		m.SGD = s
		return m.plan(pub)
	})
	if err != nil {
		return nil, err
	}
	m.SGD, m.SGD.Rate = sgd, 0 // not its own
	return m, nil
}

// search is P2 Algorithm 1 of pure ε Search/σ: ε/2 for the threshold, and twice ε/4 for an answer.
func (m BLSGD) search() oracle.Search {
	if m.Off {
		return oracle.Search{Bound: m.Fall, Off: true, Noise: mech.AboveThreshold{Max: m.Tries}}
	}
	scale := m.Noise / m.Search
	return oracle.Search{Bound: m.Fall, Noise: mech.AboveThreshold{Threshold: 2 * scale, Query: 4 * scale, Max: m.Tries}}
}

func (m BLSGD) plan(pub oracle.Public) privacy.Event {
	s := m.sampler(pub)
	return privacy.Repeated{Count: m.Steps, Of: privacy.Composed{
		oracle.Cost(s, []oracle.Query{m.query()}), oracle.Cost(s, []oracle.Query{m.search()}),
	}}
}

// Plan is T times a gradient and a search, each of a sample of its own.
func (m BLSGD) Plan(pub oracle.Public) (privacy.Event, error) {
	p := m.plan(pub)
	return p, p.Validate()
}

// variance is what the noise of one gradient adds to its squared norm, on average.
func (m BLSGD) variance(pub oracle.Public) float64 {
	sens, err := clip.Sensitivity(m.Clip, pub.Adjacency)
	if err != nil || m.Off {
		return 0
	}
	deviation := m.Noise * sens / m.sampler(pub).Size(pub.Rows)
	return float64(pub.Dim) * deviation * deviation
}

// Run is P2 Algorithm 2 with budgets that do not grow.
func (m BLSGD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		pub := o.Public()
		w := make([]float64, pub.Dim) // w_0 = 0
		g := make([]float64, len(w))  // mean of the gradients at w
		p := make([]float64, len(w))
		q, find, s := m.query(), m.search(), m.sampler(pub)
		added := m.variance(pub)
		at := 0.0                     // gradients in g
		first, longest := m.Rate, 0.0 // η₀; the largest step since it was last set
		l := oracle.Line{From: w, Along: p, Steps: make([]float64, m.Tries), Least: make([]float64, m.Tries)}
		lower := math.Pow(m.Shrink, float64(m.Tries))
		st := Step{W: w}
		for t := range m.Steps {
			b, err := o.Batch(ctx, s, q) // line 3: draw B₁, paid
			if err != nil {
				stop(yield, st, err)
				return
			}
			released, err := b.Grad(q, w) // lines 4–5
			if err != nil {
				stop(yield, st, err)
				return
			}
			st.GradNorm = norm2(released)
			at++
			for j, v := range released {
				g[j] += (v - g[j]) / at
			}
			copy(p, g)
			obj.addGrad(p, w)
			m.aim(l, obj, first, added/at)

			if b, err = o.Batch(ctx, s, find); err != nil { // B₂, paid
				stop(yield, st, err)
				return
			}
			k, err := b.Search(find, l) // Algorithm 1
			if err != nil {
				stop(yield, st, err)
				return
			}
			st.T, st.Rate, st.Moved = t+1, 0, 0
			if k >= 0 {
				st.Rate = l.Steps[k]
				st.Moved = st.Rate * norm2(p)
				for j := range w {
					w[j] -= st.Rate * p[j]
				}
				clear(g)
				at, longest = 0, math.Max(longest, st.Rate)
			} else {
				first *= math.Sqrt(lower) // half as far down as the search went
			}
			if st.T%blEvery == 0 && longest > 0 {
				first, longest = math.Min(blGrowth*longest, m.Rate), 0
			}
			if !yield(st, nil) {
				return
			}
		}
		st.Status = Done
		yield(st, nil)
	}
}

// aim sets the step sizes to try and what each must bring:
//
//	(F(w) − F(w−η_i p)) ≥ r(w−η_i p) − r(w) + α_A η_i max(0, ‖p‖² − E‖noise‖²)
func (m BLSGD) aim(l oracle.Line, obj Objective, first, noise float64) {
	norm := norm2(l.Along)
	slope := m.Armijo * math.Max(0, norm*norm-noise)
	eta := first
	for i := range l.Steps {
		l.Steps[i], l.Least[i] = eta, eta*slope
		if obj.Reg != nil {
			l.Least[i] += obj.rise(l.From, l.Along, eta)
		}
		eta *= m.Shrink
	}
}

// rise is by how much the regulariser grows from w to w − η p.
func (o Objective) rise(w, p []float64, eta float64) float64 {
	to := make([]float64, len(w))
	for j := range w {
		to[j] = w[j] - eta*p[j]
	}
	return o.Reg.Value(to) - o.Reg.Value(w)
}
