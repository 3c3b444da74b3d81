package method

import (
	"cmp"
	"context"
	"iter"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// Momentum is DP-SGD with momentum: a step along the mean of the noisy gradients so far, in which
// older ones weigh less. All that follows a gradient is post-processing, so it costs what SGD costs.
//
//	g̃_t       SGD's noisy mean gradient at w_t, with the regularizer's
//	β         Beta
//	η_t       Rate, times the schedule's factor of step t
//	u_{t+1}   = β u_t + (1−β) g̃_t,  u_0 = 0                 (1)
//	w_{t+1}   = w_t − η_t u_{t+1}                           (2) Polyak's heavy ball
//	w_{t+1}   = w_t − η_t (β u_{t+1} + (1−β) g̃_t)           (3) Nesterov's, as Sutskever et al. (2013) write it
//
// Gradients have the weight 1−β, so that a step size takes the run as far as it takes SGD; where they have the
// weight 1, as in other programs, η is that times 1−β.
type Momentum struct {
	Steps    int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Rate     float64 `yaml:"rate" json:"rate" doc:"step size η (default 80/R², R the bound on a row's norm; 1.5/L for the squared loss, L its curvature bound; for a network with classes 8/C, less where noise is large; 60/(R²+1) for another)"`
	Gradient Gradient
	Schedule string  `yaml:"schedule" json:"schedule,omitempty" doc:"how the step size changes: constant (default), cosine, linear, sqrt or inverse, optionally after a warm-up, as in warmup 20 cosine (see Schedules)"`
	Beta     float64 `yaml:"momentum" json:"momentum" doc:"weight β of the past in the mean of the gradients (default 0.9)"`
	Nesterov bool    `yaml:"nesterov" json:"nesterov,omitempty" doc:"look ahead by a step of the mean, as Nesterov's method does"`
}

const momentumBeta = 0.9

// Configure sets what is zero: all but momentum as SGD does.
func (m Momentum) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.Gradient.ConfigureSteps(pub, terms, &m.Steps,
		Number{"momentum", &m.Beta, Fraction, momentumBeta},
		Number{"rate", &m.Rate, Positive, sgdFreeRate(pub, obj)},
		rateWords{&m.Schedule, &m.Steps},
	)
	m.Rate = cmp.Or(m.Rate, m.Gradient.netRate(pub))
	return m, err
}

// Plan is T times one sampled Gaussian.
func (m Momentum) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.Gradient.Plan(pub, m.Steps)
}

// Run steps along the mean of SGD's gradients.
func (m Momentum) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w and u.
func (m Momentum) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective,
	from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := o.Public().Start()
		u := make([]float64, len(w)) // u_0 = 0
		rates, st, err := begin(m.Schedule, m.Steps, from, w, u)
		if err != nil {
			return st, err
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
			for j, v := range g {
				u[j] = m.Beta*u[j] + (1-m.Beta)*v // (1)
				g[j] = u[j]                       // (2)
				if m.Nesterov {
					g[j] = m.Beta*u[j] + (1-m.Beta)*v // (3)
				}
				w[j] -= eta * g[j]
			}
			st.T, st.Rate, st.Moved = t+1, eta, eta*norm2(g)
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
