package method

import (
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// HyFree is DP-SGD whose step sizes follow from private probes of the loss: HyFreeDP of Bu and Liu, Towards
// Hyperparameter-Free Optimization with Differential Privacy, ICLR 2025.
//
//	the paper        here
//	m_t              p: the noisy mean of gradients with automatic clipping, and the regularizer's gradient
//	R_g = 1, γ       as in AutoClip: gradients are g_i/(‖g_i‖ + Stability)
//	L̃(w − η_j m)     probes at η_j = −η, 0, η: means of min(ℓ_i, R_l) with noise
//	R_l              LossBound
//	σ_g, σ_l         Noise, ProbeNoise: noise multipliers, of which σ_l is that of one probe
//	K                Every: the steps from one triple of probes to the next
//	b, a             (L̃(−η) − L̃(η))/2η and (L̃(η) − 2L̃(0) + L̃(−η))/η²: the parabola through the probes
//	η_t = b/a        η·(bη + λ)/(aη² + λ), at most hyfreeUp and at least hyfreeDown times η
//	η_0              Rate
//
// A step that probes asks four queries of one sample: the gradient, then three losses at points that follow from the
// gradient released. It is charged once for all, before any is computed: whatever the points are, a record moves a
// probe by at most R_l, so all four together are one Gaussian release (oracle/private/PROOFS.md#probes).
//
// Deviations. Where noise hides the parabola b/a is a quotient of two noises; here λ, hyfreeCalm deviations of the
// noise of aη², is added to both sides, so that η stays where it is until probes say more than their noise does. The
// paper takes the last L̃(0) for R_l, which falls to 0 where most losses are small; here R_l is twice the loss of a
// record at the start, a public number. Divisors are the public B. The direction is the gradient itself, without Adam.
type HyFree struct {
	Steps      int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Rate       float64 `yaml:"rate" json:"rate" doc:"step size of the first step before its probes (default as in autoclip)"`
	Every      int     `yaml:"every" json:"every" doc:"number of steps from one triple of probes to the next (default 5; 1 without noise)"`
	LossBound  float64 `yaml:"loss_bound" json:"loss_bound" doc:"bound on one record's loss in a probe (default twice the loss at the start; a quarter of the square of the width of the label's bounds for the squared loss)"`
	ProbeNoise float64 `yaml:"probe_noise" json:"probe_noise" doc:"noise multiplier of one probe (default that with which all probes raise the noise of the gradients by 1 %)"`
	Stability  float64 `yaml:"stability" json:"stability" doc:"stability constant γ: gradients shorter than it count less (default as in autoclip)"`
	Batch      int     `yaml:"batch" json:"batch" doc:"batch size B: the expected size with Poisson sampling, the exact size with fixed; 0 means all rows in every step"`
	Sampling   string  `yaml:"sampling" json:"sampling,omitempty" doc:"how a batch is drawn: poisson (each row independently; default) or fixed (B rows without replacement; needs replace-one)"`
	Noise      float64 `yaml:"noise_multiplier" json:"noise_multiplier" doc:"noise multiplier of the gradients (default: the smallest that the budget allows beside probe_noise)"`

	Off bool `yaml:"-" json:"off,omitempty"` // no noise: lab
}

// Constants of the rule.
const (
	hyfreeEvery = 5
	hyfreeExtra = 1.01 // the paper's σ_g/σ: what probes raise the gradients' noise by
	hyfreeCalm  = 4
	hyfreeLoss  = 2 // × the loss at the start, where every other bound would clip what a step raises
	hyfreeUp    = 2
	hyfreeDown  = 0.25
)

// auto is the method of its gradients.
func (m HyFree) auto() AutoClip {
	return AutoClip{Steps: m.Steps, Rate: m.Rate, Stability: m.Stability, Batch: m.Batch, Sampling: m.Sampling,
		Noise: m.Noise, Off: m.Off}
}

// probe asks for a loss of the sample.
func (m HyFree) probe() oracle.Loss {
	q := oracle.Loss{Bound: m.LossBound, Noise: mech.Gaussian{Sigma: m.ProbeNoise}}
	if m.Off {
		q.Noise = mech.None{}
	}
	return q
}

// queries are those of a step that probes.
func (m HyFree) queries(g oracle.Grad) []oracle.Query {
	return []oracle.Query{g, m.probe(), m.probe(), m.probe()}
}

// plan is, for each Every steps, one with probes and then those without.
func (m HyFree) plan(pub oracle.Public) privacy.Event {
	g := m.auto().gradient()
	with := pub.Cost(g.Sampler(pub), m.queries(g.Query(pub)))
	if m.Every == 1 {
		return repeat(m.Steps, with)
	}
	all := privacy.Composed{repeat(m.Steps/m.Every, privacy.Composed{with, repeat(m.Every-1, g.Cost(pub))})}
	if rest := m.Steps % m.Every; rest > 0 {
		all = append(all, with, repeat(rest-1, g.Cost(pub)))
	}
	return all
}

// probing is m with the noise of its probes, where that is free: 3/(Every·τ²) = 1/σ² − 1/σ_g², σ_g = 1.01σ.
func (m HyFree) probing() HyFree {
	if m.ProbeNoise == 0 && !m.Off {
		m.ProbeNoise = m.Noise * math.Sqrt(3/(float64(m.Every)*(hyfreeExtra*hyfreeExtra-1)))
	}
	return m
}

// Configure sets what is zero.
func (m HyFree) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	every, bound := hyfreeEvery, hyfreeLoss*float64(pub.StartLoss)
	switch {
	case terms.Off:
		every, bound = 1, 0
	case bound > 0 && pub.StartLoss.Finite():
	case pub.Classes > 0:
		bound = hyfreeLoss * math.Log(float64(pub.Classes))
	default:
		bound = hyfreeLoss * known(pub.LabelSpan) * pub.LabelSpan / 8
	}
	err := configure(Count{"every", &m.Every, 0, every}, Number{"loss_bound", &m.LossBound, clipping, bound})
	if err == nil {
		err = check(Number{"probe_noise", &m.ProbeNoise, noises, 0})
	}
	if err != nil {
		return nil, err
	}
	first := m.auto()
	if first.Noise == 0 && !terms.Off {
		first.Noise = 1 // is calibrated below, with the probes
	}
	set, err := first.Configure(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	a := set.(AutoClip)
	m.Steps, m.Rate, m.Stability, m.Batch, m.Sampling, m.Off = a.Steps, a.Rate, a.Stability, a.Batch, a.Sampling, a.Off
	err = calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
		with := m
		with.Noise = noise
		return with.probing().plan(pub)
	})
	return m.probing(), err
}

// Plan is T sampled Gaussians, some of them with those of three probes.
func (m HyFree) Plan(pub oracle.Public) (privacy.Event, error) { return valid(m.plan(pub)) }

// Run is DP-SGD with step sizes from probes.
func (m HyFree) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w and the step size.
func (m HyFree) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective,
	from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w, eta := o.Public().Start(), []float64{m.Rate}
		_, st, err := begin("", m.Steps, from, w, eta)
		if err != nil {
			return st, err
		}
		noisy := m.auto().gradient().On(o)
		probing := m.queries(noisy.query)
		l := line{w: w, p: make([]float64, len(w)), at: make([]float64, len(w)), obj: obj, scale: 1}
		if m.Stability > 0 {
			l.scale = m.Stability // of the sum, as in AutoClip
		}
		for t := st.T; t < m.Steps; t++ {
			queries := noisy.queries
			if t%m.Every == 0 {
				queries = probing
			}
			b, err := o.Batch(ctx, noisy.sampler, queries...)
			if err != nil {
				return st, err
			}
			g, err := b.Grad(noisy.query, w)
			if err != nil {
				return st, err
			}
			st.GradNorm = l.aim(g)
			if t%m.Every == 0 {
				if eta[0], err = m.fit(b, &l, eta[0], noisy.sampler.Size(o.Public().Rows), o.Public()); err != nil {
					return st, err
				}
			}
			st.T, st.Rate, st.Moved = t+1, eta[0], eta[0]*norm2(l.p)
			l.to(w, eta[0])
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}

// A line is the one along which a step goes.
type line struct {
	w, p, at []float64
	obj      Objective
	scale    float64 // of what the oracle releases
}

// aim sets p, and returns the length of the gradient without the regularizer's.
func (l *line) aim(g []float64) float64 {
	for j, v := range g {
		l.p[j] = v / l.scale
	}
	norm := norm2(l.p)
	l.obj.AddGradient(l.p, l.w)
	return norm
}

// to sets dst to w − ηp.
func (l *line) to(dst []float64, eta float64) {
	for j, v := range l.w {
		dst[j] = v - eta*l.p[j]
	}
}

// fit probes the objective at w + ηp, w and w − ηp, and returns the next step size.
func (m HyFree) fit(b oracle.Batch, l *line, eta, size float64, pub oracle.Public) (float64, error) {
	var f [3]float64
	q := m.probe()
	for k := range f {
		by := eta * float64(k-1)
		l.to(l.at, by)
		loss, err := b.Loss(q, l.at)
		if err != nil {
			return eta, err
		}
		f[k] = loss + reg.Rise(l.obj.Reg, l.w, l.p, by)
	}
	calm := 0.0
	if !m.Off {
		calm = hyfreeCalm * math.Sqrt(6) * m.ProbeNoise * m.LossBound / size
	}
	return eta * ratio((f[0]-f[2])/2, f[2]-2*f[1]+f[0], calm), nil
}

// ratio is by how much a step size changes: (bη + λ)/(aη² + λ) within its limits, and 1 where that is no number.
func ratio(slope, curve, calm float64) float64 {
	switch by := (slope + calm) / (curve + calm); {
	case math.IsNaN(by):
		return 1
	case slope+calm <= 0:
		return hyfreeDown
	case curve+calm <= 0:
		return hyfreeUp
	default:
		return math.Max(hyfreeDown, math.Min(hyfreeUp, by))
	}
}
