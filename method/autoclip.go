package method

import (
	"context"
	"iter"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// AutoClip is DP-SGD with automatic clipping, AUTO-S of Bu, Wang, Zha and Karypis, Automatic Clipping: Differentially
// Private Deep Learning Made Easier and Stronger, NeurIPS 2023: each record's gradient is brought to about the same
// length, so that no clip norm is to be chosen.
//
//	the paper        here
//	g_i              a record's gradient
//	C(g_i) = 1/(‖g_i‖+γ)   weights of the sum, times γ (clip.Automatic)
//	R                1: it is a factor of the step size
//	γ                Stability
//	σ                Noise: ξ ~ N(0, σ²I), times 2 under replace-one (R8)
//	η                Rate, times Schedule's factor of the step
//
// One record moves Σ g_i/(‖g_i‖+γ) by less than 1, and by less than 2 where it is replaced: ‖g_i‖/(‖g_i‖+γ) < 1. So it
// costs what SGD costs (oracle/private/PROOFS.md, automatic clipping).
//
// Deviations: the paper divides by the realized batch size or leaves the sum; here the divisor is the public B. Its
// default γ = 0.01 is for networks; here it is that share of the loss's Lipschitz bound, where there is one.
type AutoClip struct {
	Steps     int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Rate      float64 `yaml:"rate" json:"rate" doc:"step size η, at most how far a step moves the parameters without noise (default 80/R, R the bound on a row's norm; 8 for a network; 1.5·R/L × the width of the label's bounds for the squared loss, L its curvature bound)"`
	Schedule  string  `yaml:"schedule" json:"schedule,omitempty" doc:"how the step size changes: constant (default), cosine, linear, sqrt or inverse, optionally after a warm-up, as in warmup 20 cosine (see Schedules)"`
	Stability float64 `yaml:"stability" json:"stability" doc:"stability constant γ: gradients shorter than it count less (default 0.01 × the loss's Lipschitz bound; R/100 × the width of the label's bounds for the squared loss; 0.01 for a network)"`
	Batch     int     `yaml:"batch" json:"batch" doc:"batch size B: the expected size with Poisson sampling, the exact size with fixed; 0 means all rows in every step"`
	Sampling  string  `yaml:"sampling" json:"sampling,omitempty" doc:"how a batch is drawn: poisson (each row independently; default) or fixed (B rows without replacement; needs replace-one)"`
	Noise     float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier σ (default: the smallest that the budget allows)"`

	Off bool `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// Defaults of what Configure may choose.
const (
	autoClipRate    = 80   // × 1/R: measured on a9a, where 15 to 25 are best and R = 3.875
	autoClipNetRate = 8    // that of sgd times its clip norm
	autoClipGamma   = 0.01 // the paper's
)

// gradient is what each step asks.
func (m AutoClip) gradient() Gradient {
	return Gradient{Clip: m.Stability, Batch: m.Batch, Sampling: m.Sampling, Noise: m.Noise, Off: m.Off,
		automatic: m.Stability > 0}
}

// Configure sets steps, step size, stability and noise where they are zero. Without noise gradients stay as they are,
// unless Stability is set.
func (m AutoClip) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	rate, gamma := autoClipRate/known(pub.NormBound), autoClipGamma*float64(pub.Lipschitz)
	switch {
	case len(pub.Initial) > 0:
		rate, gamma = autoClipNetRate, autoClipGamma
	case inLabelUnits(pub):
		gamma = autoClipGamma * pub.NormBound * known(pub.LabelSpan)
		rate = sgdQuadRate / known(float64(pub.Smooth)+obj.smooth()) * gamma / autoClipGamma
	}
	if terms.Off && m.Stability == 0 {
		gamma, rate = 0, freeRate(pub, obj)
	}
	err := configure(Number{"stability", &m.Stability, clipping, gamma})
	if err != nil {
		return nil, err
	}
	g := m.gradient()
	err = g.ConfigureSteps(pub, terms, &m.Steps, Number{"rate", &m.Rate, Positive, rate},
		rateWords{&m.Schedule, &m.Steps})
	m.Batch, m.Sampling, m.Noise, m.Off = g.Batch, g.Sampling, g.Noise, g.Off
	return m, err
}

// freeRate is the default step size along gradients that nothing clips.
func freeRate(pub oracle.Public, obj Objective) float64 {
	if len(pub.Initial) > 0 {
		return netRate / (pub.NormBound*pub.NormBound + 1)
	}
	return sgdFreeRate(pub, obj)
}

// Plan is T times one sampled Gaussian.
func (m AutoClip) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.gradient().Plan(pub, m.Steps)
}

// Run is DP-SGD on normalized gradients.
func (m AutoClip) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w.
func (m AutoClip) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective,
	from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := o.Public().Start()
		rates, st, err := begin(m.Schedule, m.Steps, from, w)
		if err != nil {
			return st, err
		}
		noisy, unit := m.gradient().On(o), 1.0
		if m.Stability > 0 {
			unit = m.Stability // of the sum: weights are γ/(‖g‖+γ)
		}
		g := make([]float64, len(w))
		for t := st.T; t < m.Steps; t++ {
			released, err := noisy.ask(ctx, w)
			if err != nil {
				return st, err
			}
			for j, v := range released {
				g[j] = v / unit
			}
			eta := m.Rate * rates.part(t)
			st.GradNorm, st.Moved = noisy.descend(w, eta, g, obj)
			st.T, st.Rate = t+1, eta
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
