package gossip

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// DGD is distributed gradient descent with noisy gradients, a baseline of P3: x_i ← Σ_j w_ij x_j −
// η/√t · (ζ_i + ∇r(x_i)), ζ_i as in [DDA]. Owners share only what follows from noisy gradients.
// Owners with fewer activations take larger steps, as in DDA. The output is the mean over the
// node's activations in the last half of the rounds.
type DGD struct {
	Rows
	Rate float64 `yaml:"rate" json:"rate" doc:"η of the step size η/√t (default 20/R², R the bound on a row's norm)"`
}

// Configure is Method's.
func (m DGD) Configure(pub oracle.Public, obj method.Objective, _ *Schedule, activations int,
	terms method.Terms) (Method, error) {
	if err := positive("rate", m.Rate); err != nil {
		return nil, err
	}
	if m.Rate == 0 {
		m.Rate = stepBound / (pub.NormBound * pub.NormBound)
	}
	if err := m.fit(pub, obj, activations, terms); err != nil {
		return nil, err
	}
	return m, nil
}

// Run is Method's.
func (m DGD) Run(ctx context.Context, at Node, o oracle.Oracle, obj method.Objective, watch Watch) ([]float64, error) {
	x := make([]float64, o.Public().Dim)
	step := make([]float64, len(x))
	tail, even := newTail(at.Schedule, x), at.even()
	for act := range at.Schedule.Activations(at.Index) {
		zeta, err := m.grad(ctx, o, x)
		if err != nil {
			return nil, err
		}
		copy(step, zeta)
		if obj.Reg != nil {
			obj.Reg.AddGrad(step, x)
		}
		if err := at.Mixer.Mix(ctx, at.Index, act, x); err != nil {
			return nil, err
		}
		floats.AddScaled(x, -even*m.Rate/math.Sqrt(float64(act.T+1)), step)
		tail.add(act.T, watch)
	}
	tail.out(x)
	return x, nil
}

// LaplaceDGD is distributed gradient descent with geometric steps, whose shared states carry
// Laplace noise (Huang, Mitra and Vaidya 2015), a baseline of P3. In a node's k-th activation, from 0,
//
//	x_i ← y_i − η·d^k (g_i(y_i) + ∇r(y_i)) + Laplace noise,  y_i ← Σ_j w_ij x_j
//
// with g_i the mean over all rows of subgradients clipped in the ℓ1 norm: y is public, so this is a
// query for g_i with Laplace noise that is 1/(η·d^k) times as large. The noise on x falls like n^k
// with d < n < 1, so the costs of the activations, (d/n)^k each up to a factor, sum to at most ε
// for any number of them. The output is the last state.
type LaplaceDGD struct {
	Rate       float64 `yaml:"rate" json:"rate" doc:"η, the first step size (default 20/R², R the bound on a row's norm)"`
	Decay      float64 `yaml:"decay" json:"decay" doc:"d, by which steps fall (default 0.9)"`
	NoiseDecay float64 `yaml:"noise_decay" json:"noise_decay" doc:"n, by which the noise on what is shared falls (default √d)"`
	Clip       float64 `yaml:"clip" json:"clip" doc:"clip norm, in ℓ1, of one row's subgradient (default the loss's Lipschitz bound × √dimension)"`
	Noise      float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier of the first activation (default: the smallest that the budget allows)"`
	Off        bool    `yaml:"-" json:"off,omitempty"`
}

// Configure is Method's. The costs add up as pure ε.
func (m LaplaceDGD) Configure(pub oracle.Public, _ method.Objective, _ *Schedule, activations int,
	terms method.Terms) (Method, error) {
	m.Off = terms.Off
	for field, v := range map[string]float64{"rate": m.Rate, "decay": m.Decay, "noise_decay": m.NoiseDecay, "clip": m.Clip,
		"noise_multiplier": m.Noise} {
		if err := positive(field, v); err != nil {
			return nil, err
		}
	}
	if m.Rate == 0 {
		m.Rate = stepBound / (pub.NormBound * pub.NormBound)
	}
	if m.Decay == 0 {
		m.Decay = 0.9
	}
	if m.NoiseDecay == 0 {
		m.NoiseDecay = math.Sqrt(m.Decay)
	}
	switch {
	case activations < 1 || activations > maxGeometric:
		return nil, fmt.Errorf("rounds: found %d activations of an owner; choose rounds that make 1 to %d, as steps fall geometrically", activations, maxGeometric)
	case m.Decay >= 1:
		return nil, fmt.Errorf("decay: found %v; choose a number above 0 and below 1", m.Decay)
	case !(m.NoiseDecay > m.Decay && m.NoiseDecay <= 1):
		return nil, fmt.Errorf("noise_decay: found %v; choose a number above decay, %v, and up to 1", m.NoiseDecay, m.Decay)
	case m.Clip == 0 && !m.Off && !pub.Lipschitz.Finite():
		return nil, errors.New("clip: found none; this loss has no bound on its gradient to clip at")
	case m.Clip == 0 && !m.Off:
		m.Clip = float64(pub.Lipschitz) * math.Sqrt(float64(pub.Dim))
	}
	if m.Noise == 0 && !m.Off {
		sum := 0.0
		for k := range activations {
			sum += m.ratio(k)
		}
		m.Noise = sum / terms.Budget.Epsilon * (1 + 1e-12)
	}
	return m, nil
}

// maxGeometric is the largest number of activations: further steps would be almost 0.
const maxGeometric = 1000

// ratio returns the noise multiplier of the first activation over that of activation k.
func (m LaplaceDGD) ratio(k int) float64 { return math.Pow(m.Decay/m.NoiseDecay, float64(k)) }

func (m LaplaceDGD) query(k int) oracle.Grad {
	if m.Off {
		return oracle.Grad{Clip: clip.None{}, Noise: mech.None{}}
	}
	return oracle.Grad{Clip: clip.Norm{C: m.Clip, P: 1}, Noise: mech.Laplace{Scale: m.Noise / m.ratio(k)}}
}

// Plan is a Laplace release of all rows in each activation.
func (m LaplaceDGD) Plan(_ oracle.Public, activations int) (privacy.Event, error) {
	var plan privacy.Composed
	for k := range activations {
		plan = append(plan, oracle.Public{}.Cost(sample.Full{}, []oracle.Query{m.query(k)}))
	}
	return plan, plan.Validate()
}

// NoiseMultiplier is 0: each activation has its own.
func (m LaplaceDGD) NoiseMultiplier() float64 { return 0 }

// Run is Method's.
func (m LaplaceDGD) Run(ctx context.Context, at Node, o oracle.Oracle, obj method.Objective,
	watch Watch) ([]float64, error) {
	y := make([]float64, o.Public().Dim)
	step := make([]float64, len(y))
	k := 0
	for act := range at.Schedule.Activations(at.Index) {
		q := m.query(k)
		b, err := o.Batch(ctx, sample.Full{}, q)
		if err != nil {
			return nil, err
		}
		g, err := b.Grad(q, y)
		if err != nil {
			return nil, err
		}
		copy(step, g)
		if obj.Reg != nil {
			obj.Reg.AddGrad(step, y)
		}
		floats.AddScaled(y, -m.Rate*math.Pow(m.Decay, float64(k)), step)
		if err := at.Mixer.Mix(ctx, at.Index, act, y); err != nil {
			return nil, err
		}
		k++
		if watch != nil {
			watch(act.T, func(dst []float64) { copy(dst, y) })
		}
	}
	return y, nil
}

// A tail is the mean of a node's vectors in the last half of the rounds.
type tail struct {
	from  int
	x     []float64
	sum   []float64
	count int
}

func newTail(s *Schedule, x []float64) *tail {
	return &tail{from: s.Rounds / 2, x: x, sum: make([]float64, len(x))}
}

func (m *tail) add(t int, watch Watch) {
	if t >= m.from {
		floats.AddScaled(m.sum, 1, m.x)
		m.count++
	}
	if watch != nil {
		watch(t, m.out)
	}
}

// out returns the mean, or the last vector if there is no mean yet.
func (m *tail) out(dst []float64) {
	if m.count == 0 {
		copy(dst, m.x)
		return
	}
	for j, v := range m.sum {
		dst[j] = v / float64(m.count)
	}
}
