package method

import (
	"cmp"
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// Adam is DP-Adam, a baseline of P2: the step of Adam (Kingma and Ba 2015, Algorithm 1) along the
// noisy gradients of SGD. All that follows a gradient is post-processing, so it costs what
// SGD costs.
//
//	g̃_t           SGD's noisy mean gradient at w_{t−1}, with the regularizer's
//	β₁, β₂        Beta1, Beta2
//	ϵ             Regularization
//	Φ             the variance of the noise in a coordinate of g̃_t, a public number
//	η             Rate
//	m_t           = β₁ m_{t−1} + (1−β₁) g̃_t
//	v_t           = β₂ v_{t−1} + (1−β₂) g̃_t²
//	w_t           = w_{t−1} − η m̂_t / (√v̂_t + ϵ),  m̂_t = m_t/(1−β₁ᵗ), v̂_t = v_t/(1−β₂ᵗ)
//
// With the correction max(v̂_t − Φ, κ²Φ) replaces v̂_t, κ = adamFloor: the squares of noisy gradients are too large by
// Φ on average (DP-AdamBC: Tang, Shpilevskiy and Lécuyer 2024). Without it, and with noise far above the gradients, all
// parameters move by about the same amount, those that no gradient moves with the others.
//
// Deviations: the default step size is for the few steps that a budget allows, the
// literature's 0.001 is for thousands. By default η falls as 1/t after 100 steps: where gradients vanish,
// Adam of a constant η never comes to rest.
type Adam struct {
	Steps          int `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Gradient       Gradient
	Schedule       string  `yaml:"schedule" json:"schedule,omitempty" doc:"how the step size changes: constant (default), cosine, linear, sqrt or inverse, optionally after a warm-up, as in warmup 20 cosine (see Schedules)"`
	Rate           float64 `yaml:"rate" json:"rate" doc:"step size η, about how far a parameter moves in a step (default 0.3/R, R the bound on a row's norm; 0.02·√(2/(R²+1)) for a network)"`
	Beta1          float64 `yaml:"beta1" json:"beta1" doc:"weight β₁ of the past in the mean of the gradients (default 0.9)"`
	Beta2          float64 `yaml:"beta2" json:"beta2" doc:"weight β₂ of the past in the mean of their squares (default 0.999)"`
	Regularization float64 `yaml:"damping" json:"damping" doc:"constant ϵ added to the root of that mean (default 1e-8)"`
	Correction     string  `yaml:"correction" json:"correction,omitempty" doc:"what is subtracted from the mean of the squares: none (nothing) or noise (the variance of the noise; default for a network)"`
}

// What Adam may be corrected for.
const (
	correctNothing = "none"
	correctNoise   = "noise"
)

// Defaults of what Configure may choose; the rate is measured (docs/measurements/methods.md).
const (
	adamRate           = 0.3 // × 1/R
	adamNetRate        = 0.02
	adamFloor          = 0.3 // κ
	adamSchedule       = "inverse 100"
	adamBeta1          = 0.9
	adamBeta2          = 0.999
	adamRegularization = 1e-8
)

// Configure sets what is zero: steps, clip norm and noise as SGD does.
func (m Adam) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	rate, schedule, corrections := adamRate/known(pub.NormBound), adamSchedule, []string{correctNothing, correctNoise}
	if len(pub.Initial) > 0 {
		rate, schedule, corrections = adamNetRate*math.Sqrt(2/(pub.NormBound*pub.NormBound+1)), "constant",
			[]string{correctNoise, correctNothing}
	}
	m.Schedule = cmp.Or(m.Schedule, schedule)
	err := m.Gradient.ConfigureSteps(pub, terms, &m.Steps,
		Number{"rate", &m.Rate, Positive, rate},
		Number{"beta1", &m.Beta1, Fraction, adamBeta1},
		Number{"beta2", &m.Beta2, Fraction, adamBeta2},
		Number{"damping", &m.Regularization, Positive, adamRegularization},
		Word{"correction", &m.Correction, corrections},
		rateWords{&m.Schedule, &m.Steps},
	)
	return m, err
}

// Plan is T times one sampled Gaussian.
func (m Adam) Plan(pub oracle.Public) (privacy.Event, error) { return m.Gradient.Plan(pub, m.Steps) }

// Run is Algorithm 1 of Kingma and Ba along SGD's gradients.
func (m Adam) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w, the mean of the gradients and that of their squares.
func (m Adam) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := o.Public().Start()
		mean, square := make([]float64, len(w)), make([]float64, len(w)) // m_0 = v_0 = 0
		// Runs written before there was a choice have no schedule.
		rates, st, err := begin(cmp.Or(m.Schedule, adamSchedule), m.Steps, from, w, mean, square)
		if err != nil {
			return st, err
		}
		noise := 0.0 // Φ
		if m.Correction == correctNoise {
			noise = m.Gradient.Variance(o.Public())
		}
		noisy := m.Gradient.On(o)
		for t := st.T; t < m.Steps; t++ {
			g, err := noisy.At(ctx, w)
			if err != nil {
				return st, err
			}
			st.GradNorm = norm2(g)
			obj.AddGradient(g, w)
			eta := m.Rate * rates.part(t)
			left1, left2 := math.Pow(m.Beta1, float64(t+1)), math.Pow(m.Beta2, float64(t+1))
			moved := 0.0
			for j, v := range g {
				mean[j] = m.Beta1*mean[j] + (1-m.Beta1)*v       // m_t
				square[j] = m.Beta2*square[j] + (1-m.Beta2)*v*v // v_t
				size := math.Sqrt(math.Max(square[j]/(1-left2)-noise, adamFloor*adamFloor*noise)) + m.Regularization
				by := eta * mean[j] / (1 - left1) / size
				w[j] -= by // w_t
				moved += by * by
			}
			st.T, st.Rate, st.Moved = t+1, eta, math.Sqrt(moved)
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
