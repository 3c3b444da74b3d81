package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// Newton is DP-Newton: steps along noisy gradients, scaled by a noisy Hessian whose
// eigenvalues are floored (Ganesh, Haghifam, Steinke and Thakurta, Faster Differentially Private
// Convex Optimization via Second-Order Methods, NeurIPS 2023).
//
//	H̃ + η∇²r(w) = Σ_j λ_j v_j v_jᵀ
//	w_{t+1} = w_t − η Σ_j v_j ⟨v_j, ḡ_t⟩ / max(λ_j, λ₀)
//
//	H̃        the last of K noisy Hessians, Hessians, asked at steps 0, T/K, 2T/K, …
//	r         the regularizer, of which nothing is private
//	λ₀        Floor
//	η         Rate: with 1/η times the curvature H̃ the step is Newton's
//	ḡ_t       the noisy clipped gradient of SGD on all rows, with r's
//
// One Hessian at w = 0 serves all steps by default: for the logistic loss, records have
// their largest curvature there, and for the squared loss the same everywhere, so that it bounds the
// curvature of every later step. The noises of both kinds of query follow from one
// multiplier: a share of the budget, in zCDP, goes to the Hessians.
//
// Deviations: the paper adds noise to each direction H⁻¹g, whose bound it has to derive; here the matrix itself
// is released, as a symmetric Gaussian (S-4d) with the bound of rank-one Hessians (R16), and everything after is free.
// Gradients are clipped.
type Newton struct {
	Steps    int      `yaml:"steps" json:"steps" doc:"number of steps T (default 32)"`
	Hessians int      `yaml:"hessians" json:"hessians" doc:"number of Hessians K, at steps 0, T/K, 2T/K, … (default 1)"`
	Share    float64  `yaml:"share" json:"share" doc:"share of the budget, in zCDP, for the Hessians (default 0.15 under add-or-remove, 0.1 under replace-one)"`
	Floor    float64  `yaml:"floor" json:"floor" doc:"least eigenvalue λ₀ (default the size of the Hessian's noise: its standard deviation × √(2d) for d parameters)"`
	Rate     float64  `yaml:"rate" json:"rate" doc:"step size η; 1 is Newton's step (default 1 with several Hessians and for the squared loss; with one Hessian 1 to 1.75, larger with less noise, because later steps have less curvature)"`
	Gradient Gradient `clip:"clip norm C of one record's gradient (default half the loss's Lipschitz bound; R/8 × the width of the label's bounds for the squared loss)" noise_multiplier:"noise multiplier σ of a gradient (default: the smallest that the budget allows); that of a Hessian is σ·√(K(1−s)/(T·s)), s the share"`
}

// Defaults of what Configure may choose, measured (docs/measurements/methods.md).
const (
	newtonSteps         = 32
	newtonShare         = 0.15
	newtonShareReplaced = 0.1
	newtonClip          = 0.5  // × Lipschitz bound
	newtonLeast         = 1e-9 // floor without noise, × the curvature bound
	newtonMore          = 0.75 // by what the step size is above 1 without noise
	newtonLoud          = 0.02 // the noise of a Hessian, × the curvature bound, that halves this
)

// Configure sets what is zero.
func (m Newton) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	g := &m.Gradient
	share := newtonShare
	if pub.Adjacency == privacy.ReplaceOne { // a gradient's sensitivity doubles, a Hessian's grows by √2
		share = newtonShareReplaced
	}
	if !pub.Curved || !pub.HessLipschitz.Finite() {
		return nil, fmt.Errorf("hessians: found %d; leave it out, as the model lacks smooth Hessians of rank one for at most %d parameters, as logistic and linear have", max(1, m.Hessians), oracle.MaxHess)
	}
	if err := unused(m); err != nil {
		return nil, err
	}
	err := configure(
		Count{"steps", &m.Steps, 0, newtonSteps},
		Count{"hessians", &m.Hessians, 0, 1},
		Number{"share", &m.Share, Fraction, share},
		Number{"floor", &m.Floor, Positive, 0},
		Number{"rate", &m.Rate, Positive, 0},
	)
	if err == nil && m.Hessians > m.Steps {
		err = fmt.Errorf("hessians: found %d; write a whole number from 1 to %d, the number of steps", m.Hessians, m.Steps)
	}
	if err == nil {
		err = g.configure(pub, terms, clipBound(pub, newtonClip))
	}
	if err == nil {
		err = g.Calibrate(terms, func(with Gradient) privacy.Event {
			at := m
			at.Gradient = with
			return at.plan(pub)
		})
	}
	if err == nil {
		err = tooMuch(m.hessNoise())
	}
	if err != nil {
		return nil, err
	}
	if m.Rate == 0 {
		m.Rate = 1
		if m.Hessians == 1 && pub.HessLipschitz > 0 {
			m.Rate += newtonMore / (1 + m.hessError(pub)/(newtonLoud*float64(pub.Smooth)))
		}
	}
	if m.Floor == 0 {
		m.Floor = math.Max(m.hessError(pub), newtonLeast*(float64(pub.Smooth)+obj.smooth()))
	}
	return m, nil
}

// hessNoise is σ_H: K/(2σ_H²) is the share s of what all cost, T/(2σ²) the rest.
func (m Newton) hessNoise() float64 {
	return m.Gradient.Noise * math.Sqrt(float64(m.Hessians)*(1-m.Share)/(float64(m.Steps)*m.Share))
}

// hessError is about the spectral norm of a Hessian's noise.
func (m Newton) hessError(pub oracle.Public) float64 {
	moved := float64(pub.Smooth) // by one record
	if pub.Adjacency == privacy.ReplaceOne {
		moved *= math.Sqrt2
	}
	return m.hessNoise() * moved / float64(pub.Rows) * math.Sqrt(2*float64(pub.Dim))
}

// queries are those of a step, and of a step that begins with a Hessian.
func (m Newton) queries(pub oracle.Public) (oracle.Grad, oracle.Hess) {
	g := m.Gradient.Query(pub)
	h := oracle.Hess{Clip: float64(pub.Smooth), Off: m.Gradient.Off}
	if !m.Gradient.Off {
		h.Noise = mech.SymmetricGaussian{Sigma: m.hessNoise()}
	}
	return g, h
}

// asks says whether step t begins with a Hessian: t is kT/K, rounded up, for a k below K.
func (m Newton) asks(t int) bool { return t*m.Hessians%m.Steps < m.Hessians }

func (m Newton) plan(pub oracle.Public) privacy.Event {
	var p privacy.Composed
	g, h := m.queries(pub)
	plain := 0
	for t := range m.Steps {
		if !m.asks(t) {
			plain++
			continue
		}
		if plain > 0 {
			p = append(p, privacy.Repeated{Count: plain, Of: pub.Cost(sample.Full{}, []oracle.Query{g})})
			plain = 0
		}
		p = append(p, pub.Cost(sample.Full{}, []oracle.Query{h, g}))
	}
	if plain > 0 {
		p = append(p, privacy.Repeated{Count: plain, Of: pub.Cost(sample.Full{}, []oracle.Query{g})})
	}
	return p
}

// Plan is K Hessians and T gradients, each a Gaussian.
func (m Newton) Plan(pub oracle.Public) (privacy.Event, error) {
	return valid(m.plan(pub))
}

// Run takes T steps from w_0 = 0.
func (m Newton) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub := o.Public()
		w, step := make([]float64, pub.Dim), make([]float64, pub.Dim)
		g, h := m.queries(pub)
		var scale scaling
		st := Step{W: w, Rate: m.Rate}
		for t := range m.Steps {
			pay := []oracle.Query{g}
			if m.asks(t) {
				pay = []oracle.Query{h, g}
			}
			b, err := o.Batch(ctx, sample.Full{}, pay...)
			if err != nil {
				return st, err
			}
			if m.asks(t) {
				packed, err := b.Hess(h, w)
				if err == nil {
					scale, err = m.invert(packed, w, obj)
				}
				if err != nil {
					return st, err
				}
			}
			released, err := b.Grad(g, w)
			if err != nil {
				return st, err
			}
			st.GradNorm = norm2(released)
			copy(step, released)
			obj.AddGradient(step, w)
			scale.apply(step)
			for j := range w {
				w[j] -= step[j]
			}
			st.T, st.Moved = t+1, norm2(step)
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}

// A scaling is what a gradient is multiplied by: a symmetric matrix by its eigenvectors, the columns of
// vectors, and their eigenvalues.
type scaling struct {
	vectors *mat.Dense
	values  []float64
}

// invert is the scaling of a released Hessian.
func (m Newton) invert(packed, w []float64, obj Objective) (scaling, error) {
	s, err := spectrum(packed, w, obj, m.Rate)
	for i, v := range s.values {
		s.values[i] = m.Rate / math.Max(v, m.Floor)
	}
	return s, err
}

// spectrum has the eigenvalues of a released Hessian, in ascending order, to which times the curvature of the
// regularizer at w is added.
func spectrum(packed, w []float64, obj Objective, times float64) (scaling, error) {
	dim := len(w)
	full, err := oracle.Symmetric(packed, dim)
	if err != nil {
		return scaling{}, err
	}
	if r, ok := obj.Reg.(reg.Curved); ok {
		diagonal := make([]float64, dim)
		r.AddHess(diagonal, w)
		for j, v := range diagonal {
			full[j*dim+j] += times * v
		}
	}
	for _, v := range full {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return scaling{}, errors.New("a Hessian with an entry that is no finite number")
		}
	}
	var e mat.EigenSym
	if !e.Factorize(mat.NewSymDense(dim, full), true) {
		return scaling{}, errors.New("the eigenvalues of a Hessian were not found")
	}
	s := scaling{vectors: new(mat.Dense), values: e.Values(nil)}
	e.VectorsTo(s.vectors)
	return s, nil
}

// apply multiplies v by the matrix.
func (s scaling) apply(v []float64) {
	along := mat.NewVecDense(len(v), nil)
	along.MulVec(s.vectors.T(), mat.NewVecDense(len(v), v))
	for i, f := range s.values {
		along.SetVec(i, along.AtVec(i)*f)
	}
	mat.NewVecDense(len(v), v).MulVec(s.vectors, along)
}
