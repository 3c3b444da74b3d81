package gossip

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
)

// The weights a_t of dual averaging.
const (
	Linear   = "linear"   // a_t = t, where the regularizer is strongly convex (P3 Cor. 3.2, 3.5)
	Constant = "constant" // a_t = 1
)

// DDA is distributed dual averaging, P3 Algorithm 1. With a schedule of all edges it is private
// stochastic dual averaging with all nodes active ([19] of P3); without noise and with all rows it
// is conventional dual averaging (P3 (2)–(3)).
//
//	P3        here
//	ζ_i       a noisy subgradient of a secret sample of the owner's rows, paid
//	a_t, A_t  Weights; A_t = Σ_{s≤t} a_s
//	γ_t       Gamma (linear weights) or Gamma·√t (constant)
//	ι         the schedule's Share
//	h         the objective's regularizer, l2 or l1, or a ball
//	(5)       Mixer.Mix of z + a_t ζ
//	(6)       prox.point
//
// Deviations: an accountant sets the noise, for the owner's activations in the public schedule;
// P3's Theorem 1 does not hold (S-3). On graphs where some nodes are active more often than others,
// which P3 does not have, ζ is weighted by the mean number of activations over the node's own, so
// that all owners count alike. A sample has more than one row, for accuracy. In P3's box x of an
// inactive node does not change, while its proofs recompute it in every round; Refresh follows the
// proofs, at the same cost.
type DDA struct {
	Rows
	Weights string  `yaml:"weights" json:"weights" doc:"linear (a_t = t; default with model.l2) or constant (a_t = 1; default without)"`
	Gamma   float64 `yaml:"gamma" json:"gamma" doc:"γ of γ_t: γ with linear weights, γ√t with constant ones (default: a largest step of 20/R², R the bound on a row's norm)"`
	Ball    float64 `yaml:"ball" json:"ball,omitempty" doc:"radius of the ball that the parameters stay in (default none)"`
	Refresh bool    `yaml:"refresh_inactive" json:"refresh_inactive,omitempty" doc:"compute the parameters of inactive owners again in every round, as the proofs of P3 do"`
}

// stepBound is the largest step size under the default of γ, times the square of the bound on a
// row's norm.
const stepBound = 20

// Configure implements Method.
func (m DDA) Configure(pub oracle.Public, obj method.Objective, s *Schedule, activations int,
	terms method.Terms) (Method, error) {
	p, err := m.prox(obj, s)
	if err != nil {
		return nil, err
	}
	for field, v := range map[string]float64{"gamma": m.Gamma, "ball": m.Ball} {
		if err := positive(field, v); err != nil {
			return nil, err
		}
	}
	if m.Weights == "" {
		m.Weights = Constant
		if p.l2 > 0 {
			m.Weights = Linear
		}
	}
	if m.Weights != Linear && m.Weights != Constant {
		return nil, fmt.Errorf("weights: found %q; choose %s or %s", m.Weights, Linear, Constant)
	}
	step := stepBound / (pub.NormBound * pub.NormBound)
	switch {
	case m.Gamma != 0:
	case m.Weights == Linear && p.l2 > 0:
		m.Gamma = 1 / (2 * p.share * p.l2 * step * step) // the most of t/(ιμt²/2 + γ) over t is 1/√(2ιμγ)
	case m.Weights == Linear:
		return nil, fmt.Errorf("weights: found %s without model.l2; choose %s", Linear, Constant)
	default:
		m.Gamma = 1 / (step * math.Sqrt(float64(s.Rounds)))
	}
	if err := m.fit(pub, obj, activations, terms); err != nil {
		return nil, err
	}
	return m, nil
}

// A prox is step (6): argmin ⟨z, x⟩ + ι A h(x) + γ/2 ‖x‖².
type prox struct {
	share, l2, l1, ball float64
	linear              bool
	gamma               float64
}

func (m DDA) prox(obj method.Objective, s *Schedule) (prox, error) {
	p := prox{share: s.Share(), ball: m.Ball, linear: m.Weights == Linear, gamma: m.Gamma}
	switch r := obj.Reg.(type) {
	case nil:
	case reg.L2:
		p.l2 = r.Lambda
	case reg.L1:
		p.l1 = r.Lambda
	default:
		return p, errors.New("model.nonconvex: dda does not take it; use l2 or l1")
	}
	if p.l1 > 0 && p.ball > 0 {
		return p, errors.New("ball: found it beside model.l1; set one of them")
	}
	return p, nil
}

// weight is A_t.
func (p *prox) weight(t int) float64 {
	if p.linear {
		return float64(t) * float64(t+1) / 2
	}
	return float64(t)
}

// point sets x to x^(t).
func (p *prox) point(x, z []float64, t int) {
	gamma := p.gamma
	if !p.linear {
		gamma *= math.Sqrt(float64(t))
	}
	if p.l1 > 0 {
		cut, scale := p.share*p.weight(t)*p.l1, 1/gamma
		for j, v := range z {
			x[j] = -math.Copysign(max(math.Abs(v)-cut, 0), v) * scale
		}
		return
	}
	scale := -1 / (p.share*p.weight(t)*p.l2 + gamma)
	if p.ball > 0 {
		square := 0.0
		for _, v := range z {
			square += v * v
		}
		if norm := -scale * math.Sqrt(square); norm > p.ball {
			scale *= p.ball / norm
		}
	}
	for j, v := range z {
		x[j] = v * scale
	}
}

// Run is P3 Algorithm 1. Rounds count from 1, as there.
func (m DDA) Run(ctx context.Context, at Node, o oracle.Oracle, obj method.Objective, watch Watch) ([]float64, error) {
	p, err := m.prox(obj, at.Schedule)
	if err != nil {
		return nil, err
	}
	dim, even := o.Public().Dim, at.even()
	z, x, sum := make([]float64, dim), make([]float64, dim), make([]float64, dim)
	done := 0 // sum = Σ_{s≤done} a_s x^(s), x = x^(done+1)
	upTo := func(t int) {
		if !m.Refresh {
			floats.AddScaled(sum, p.weight(t)-p.weight(done), x)
			done = t
			return
		}
		for done < t {
			done++
			floats.AddScaled(sum, p.weight(done)-p.weight(done-1), x)
			p.point(x, z, done+1)
		}
	}
	out := func(dst []float64) {
		for j, v := range sum {
			dst[j] = v / p.weight(done)
		}
	}
	for act := range at.Schedule.Activations(at.Index) {
		t := act.T + 1
		if m.Refresh {
			upTo(act.T)
		}
		zeta, err := m.grad(ctx, o, x)
		if err != nil {
			return nil, err
		}
		floats.AddScaled(z, even*(p.weight(t)-p.weight(t-1)), zeta) // a_t
		if err := at.Mixer.Mix(ctx, at.Index, act, z); err != nil { // (5)
			return nil, err
		}
		upTo(t)
		p.point(x, z, t+1) // (6)
		if watch != nil {
			watch(act.T, out)
		}
	}
	upTo(at.Schedule.Rounds)
	out(x)
	return x, nil
}
