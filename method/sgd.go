package method

import (
	"cmp"
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// SGD is DP-SGD with gradient clipping, P0 Algorithm 1, or with value clipping, Algorithm 3; with a
// full batch it is DP-GD.
//
//	P0        here
//	B_t, C, σ Gradient
//	T         Steps
//	η         Rate, times Schedule's factor of the step
//	ḡ_t       g
//
// Deviations: P0's proof (App. B.3) divides by the realized |B_t|, which is not private (S-2b); here
// the divisor is B, as in the algorithm box. P0 returns a uniformly random iterate; which iterate is
// returned is the caller's choice (Output), all of them are covered. σ comes from an accountant, not
// from Theorem 3.4, whose constants are unspecified (S-0e).
type SGD struct {
	Steps    int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Rate     float64 `yaml:"rate" json:"rate" doc:"step size η (default 80/R², R the bound on a row's norm; 1.5/L for the squared loss, L its curvature bound; for a network with classes 8/C, less where noise is large; 60/(R²+1) for another)"`
	Gradient Gradient
	Schedule string `yaml:"schedule" json:"schedule,omitempty" doc:"how the step size changes: constant (default), cosine, linear, sqrt or inverse, optionally after a warm-up, as in warmup 20 cosine (see Schedules)"`
}

// Defaults of what Configure may choose, measured on Adult, Bank, ijcnn1 and synthetic tables
// (docs/measurements/methods.md). They depend on public facts only: R is the bound on a row's norm, L that on the
// curvature of one record's loss.
const (
	sgdSteps    = 100
	sgdRate     = 80  // × 1/R², for a loss with a Lipschitz bound
	sgdQuadRate = 1.5 // × 1/L, for one without
	netSteps    = 200 // of a network
	netRate     = 60  // of a network with a numeric label, × 1/(R²+1)
	// Of a network with classes: the longest step, η·C, where the noise of a mean gradient, νC, has νR up to netCalm;
	// beyond it the step shrinks with (netCalm/νR)^(2/3). Measured on covtype-sample, ijcnn1 and MNIST with R = √d.
	netStep = 8
	netCalm = 0.0125
)

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m SGD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	rates := rateWords{&m.Schedule, &m.Steps}
	m.Gradient.allocates = true
	err := m.Gradient.ConfigureSteps(pub, terms, &m.Steps, Number{"rate", &m.Rate, Positive, sgdFreeRate(pub, obj)}, rates)
	m.Rate = cmp.Or(m.Rate, m.Gradient.netRate(pub))
	return m, err
}

// netRate is the default step size of a network with classes, once the noise is known. Without a clip norm it is that
// of other networks.
func (g Gradient) netRate(pub oracle.Public) float64 {
	if g.Clip == 0 {
		return netRate / (pub.NormBound*pub.NormBound + 1)
	}
	rate := netStep / g.Clip
	if noise := math.Sqrt(g.Variance(pub)) / g.Clip * pub.NormBound; noise > netCalm {
		rate *= math.Cbrt(netCalm * netCalm / (noise * noise))
	}
	return rate
}

// sgdFreeRate is the default step size; NaN where the model has no bound from which it would follow, and 0 where it is
// netRate.
func sgdFreeRate(pub oracle.Public, obj Objective) float64 {
	switch {
	case len(pub.Initial) > 0 && pub.Classes > 0:
		return 0
	case len(pub.Initial) > 0:
		return netRate / known(pub.NormBound*pub.NormBound+1)
	case !inLabelUnits(pub):
		return sgdRate / known(pub.NormBound*pub.NormBound)
	}
	return sgdQuadRate / known(float64(pub.Smooth)+obj.smooth())
}

func repeat(steps int, e privacy.Event) privacy.Repeated {
	return privacy.Repeated{Count: steps, Of: e}
}

// Plan is T times one sampled Gaussian; by random allocation, one event for each epoch.
func (m SGD) Plan(pub oracle.Public) (privacy.Event, error) { return m.Gradient.Plan(pub, m.Steps) }

// Run is P0 Algorithm 1.
func (m SGD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w.
func (m SGD) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := o.Public().Start() // line 1: w_0, the same for every table
		rates, st, err := begin(m.Schedule, m.Steps, from, w)
		if err != nil {
			return st, err
		}
		noisy := m.Gradient.On(o)
		for t := st.T; t < m.Steps; t++ {
			g, err := noisy.ask(ctx, w) // lines 3–6: draw B_t, clip, sum, add ξ, divide by B
			if err != nil {
				return st, err
			}
			eta := m.Rate * rates.part(t)
			st.GradNorm, st.Moved = noisy.descend(w, eta, g, obj) // line 7: w_{t+1} = w_t − η (ḡ_t + ∇r(w_t))
			st.T, st.Rate = t+1, eta
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}

// begin sets the vectors of a run, the first of which is w, to where from left them.
func begin(schedule string, steps int, from *Checkpoint, vectors ...[]float64) (rateSchedule, Step, error) {
	st := Step{W: vectors[0], Kept: vectors}
	rates, err := parseRates(schedule, steps)
	if err == nil {
		st.T, err = from.Into(vectors...)
	}
	return rates, st, err
}
