package method

import (
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// QuantileClip is DP-SGD whose clip norm follows a private quantile of the gradients' norms: adaptive clipping of
// Andrew, Thakkar, McMahan and Ramaswamy, Differentially Private Learning with Adaptive Clipping, NeurIPS 2021
// (Algorithm 1), with a record in place of a client.
//
//	the paper    here
//	C^t          bound, at first Clip
//	γ, η_C       Quantile, ClipRate
//	Δ_i          a record's gradient
//	z_Δ          Noise: the noise multiplier of the gradients' sum, whose deviation is z_Δ·C^t under add-or-remove and
//	             2·z_Δ·C^t under replace-one (R8)
//	b_i          1 where ‖Δ_i‖ ≤ C^t, else 0
//	σ_b          CountNoise · ½ under add-or-remove and CountNoise under replace-one: Σ(b_i − ½) moves by ½ and by 1
//	z            (z_Δ^−2 + CountNoise^−2)^−½, which is Theorem 1's z_Δ = (z^−2 − (2σ_b)^−2)^−½
//	m            B, the nominal batch size
//	η_s          Rate/C^t, times Schedule's factor of the step
//
// A step asks two queries of one sample at one point, the clipped sum and the count, and is charged once for both: they
// are one Gaussian release of multiplier z (oracle/private/PROOFS.md#within). C^{t+1} is a function of released counts,
// so it is public when its step is charged, and the event is the same in each step: noise is in units of C^t.
//
// Deviations. m is the number of clients that were drawn; here that is private, so the count is of b_i − ½, its
// divisor the public B, and ½ is added afterward: with Poisson samples the mean is the same. The paper's η_s is a
// constant; here it is in units of 1/C^t, as gradients of most records vanish on their way to a minimum, C with them,
// and then also the steps. C stays within a factor of 1e9 of its start, and one step changes it by at most e^±1, which
// only a count whose noise is as large as B would exceed. The start is the paper's 0.1 times a public scale, that of
// sgd's clip norm.
type QuantileClip struct {
	Steps      int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Rate       float64 `yaml:"rate" json:"rate" doc:"step size η, at most how far a step moves the parameters without noise (default 80/R, R the bound on a row's norm; 8 for a network; 1.5·R/L × the width of the label's bounds for the squared loss, L its curvature bound)"`
	Schedule   string  `yaml:"schedule" json:"schedule,omitempty" doc:"how the step size changes: constant (default), cosine, linear, sqrt or inverse, optionally after a warm-up, as in warmup 20 cosine (see Schedules)"`
	Clip       float64 `yaml:"clip" json:"clip" doc:"clip norm C of the first step (default 0.1 × the loss's Lipschitz bound; R/10 × the width of the label's bounds for the squared loss; for a network 0.1 × √((R²+1)/2), with classes at most 0.6)"`
	Quantile   float64 `yaml:"quantile" json:"quantile" doc:"quantile γ of the norms of gradients that the clip norm follows (default 0.5)"`
	ClipRate   float64 `yaml:"clip_rate" json:"clip_rate" doc:"rate η_C at which the logarithm of the clip norm follows it (default 0.2)"`
	CountNoise float64 `yaml:"count_noise" json:"count_noise" doc:"noise multiplier of the number of gradients within the clip norm (default a tenth of the batch size, at least 5 × noise_multiplier)"`
	Batch      int     `yaml:"batch" json:"batch" doc:"batch size B: the expected size with Poisson sampling, the exact size with fixed; 0 means all rows in every step"`
	Sampling   string  `yaml:"sampling" json:"sampling,omitempty" doc:"how a batch is drawn: poisson (each row independently; default) or fixed (B rows without replacement; needs replace-one)"`
	Noise      float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier of the gradients (default: the smallest that the budget allows beside count_noise)"`

	Off bool `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// Defaults of what Configure may choose.
const (
	quantileGamma    = 0.5
	quantileClipRate = 0.2
	quantileStart    = 0.1 // × public scale
	quantileCount    = 0.1 // × B: the paper's σ_b = m/20 is this multiplier of the sensitivity ½
	quantileApart    = 5   // × Noise at least: the count takes at most 4 % of 1/z²
	quantileReach    = 1e9
)

// gradient is what each step asks beside the count, at a clip norm.
func (m QuantileClip) gradient(bound float64) Gradient {
	return Gradient{Clip: bound, Batch: m.Batch, Sampling: m.Sampling, Noise: m.Noise, Off: m.Off}
}

// count asks how many gradients of the sample are within the clip norm, less a half of the sample's size.
func (m QuantileClip) count() oracle.Loss {
	q := oracle.Loss{Bound: 0.5, Within: true, Signed: true, Noise: mech.Gaussian{Sigma: m.CountNoise}}
	if m.Off {
		q.Noise = mech.None{}
	}
	return q
}

// step is the cost of one step. Without a clip norm, in the lab, there is nothing to count.
func (m QuantileClip) step(pub oracle.Public) privacy.Event {
	g := m.gradient(m.Clip)
	if m.Clip == 0 {
		return g.Cost(pub)
	}
	return pub.Cost(g.Sampler(pub), []oracle.Query{g.Query(pub), m.count()})
}

// counting is m with the noise of its count, where that is free.
func (m QuantileClip) counting(pub oracle.Public) QuantileClip {
	if m.CountNoise == 0 && !m.Off {
		size := m.gradient(m.Clip).Sampler(pub).Size(pub.Rows)
		m.CountNoise = math.Min(maxNoise, math.Max(quantileCount*size, quantileApart*m.Noise))
	}
	return m
}

// Configure sets what is zero. Without noise nothing is clipped, unless Clip is set.
func (m QuantileClip) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	rate, bound, steps := autoClipRate/known(pub.NormBound), float64(pub.Lipschitz), sgdSteps
	switch {
	case len(pub.Initial) > 0:
		rate, bound, steps = autoClipNetRate, netClipFree(pub), netSteps
	case inLabelUnits(pub):
		bound = pub.NormBound * known(pub.LabelSpan)
		rate = sgdQuadRate / known(float64(pub.Smooth)+obj.smooth()) * bound
	}
	g := m.gradient(m.Clip)
	g.Off = terms.Off
	if terms.Off && m.Clip == 0 {
		bound, rate = 0, freeRate(pub, obj)
	}
	err := configure(Number{"clip", &m.Clip, clipping, quantileStart * bound})
	if err == nil {
		err = g.Configure(pub, terms)
	}
	m.Batch, m.Sampling, m.Off = g.Batch, g.Sampling, g.Off
	if err == nil {
		err = configure(Count{"steps", &m.Steps, 0, steps},
			Number{"rate", &m.Rate, Positive, rate}, rateWords{&m.Schedule, &m.Steps},
			Number{"quantile", &m.Quantile, Fraction, quantileGamma},
			Number{"clip_rate", &m.ClipRate, Fraction, quantileClipRate})
	}
	if err == nil {
		err = check(Number{"count_noise", &m.CountNoise, noises, 0})
	}
	if err == nil {
		err = calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
			with := m
			with.Noise = noise
			return repeat(m.Steps, with.counting(pub).step(pub))
		})
	}
	return m.counting(pub), err
}

// Plan is T times one sampled pair of Gaussians.
func (m QuantileClip) Plan(pub oracle.Public) (privacy.Event, error) {
	return valid(repeat(m.Steps, m.step(pub)))
}

// Run is Algorithm 1 of Andrew and others.
func (m QuantileClip) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w and the clip norm.
func (m QuantileClip) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective,
	from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w, bound := o.Public().Start(), []float64{m.Clip}
		rates, st, err := begin(m.Schedule, m.Steps, from, w, bound)
		if err != nil {
			return st, err
		}
		at, count := make([]float64, len(w)+1), m.count()
		noisy := m.gradient(m.Clip).On(o)
		for t := st.T; t < m.Steps; t++ {
			noisy.With(m.gradient(bound[0]))
			g, share, err := m.ask(ctx, noisy, count, append(append(at[:0], w...), bound[0])) // Δ̃, b̃
			if err != nil {
				return st, err
			}
			eta := m.Rate * rates.part(t)
			if m.Clip > 0 {
				eta /= bound[0]
			}
			st.GradNorm, st.Moved = noisy.descend(w, eta, g, obj) // θ^{t+1}
			bound[0] = m.follow(bound[0], share)
			st.T, st.Rate = t+1, eta
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}

// ask charges one sample, and returns its noisy mean gradient, Δ̃, and the noisy share of its gradients within the clip
// norm, b̃. Behind the parameters, at holds that norm.
func (m QuantileClip) ask(ctx context.Context, noisy *Noisy, count oracle.Loss,
	at []float64) (g []float64, share float64, err error) {
	w := at[:len(at)-1]
	if m.Clip == 0 {
		g, err = noisy.ask(ctx, w)
		return g, m.Quantile, err
	}
	b, err := noisy.o.Batch(ctx, noisy.sampler, noisy.query, count)
	if err != nil {
		return nil, 0, err
	}
	if g, err = b.Grad(noisy.query, w); err != nil {
		return nil, 0, err
	}
	share, err = b.Loss(count, at)
	return g, share + 0.5, err
}

// follow is C·exp(−η_C(b̃ − γ)); C where an oracle answers with no number.
func (m QuantileClip) follow(bound, share float64) float64 {
	if math.IsNaN(share) {
		return bound
	}
	by := math.Max(-1, math.Min(1, -m.ClipRate*(share-m.Quantile)))
	return math.Max(m.Clip/quantileReach, math.Min(m.Clip*quantileReach, bound*math.Exp(by)))
}
