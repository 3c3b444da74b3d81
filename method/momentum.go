package method

import (
	"context"
	"fmt"
	"iter"

	"github.com/sottodp/sotto/oracle"
)

// Momentum is DP-SGD with momentum: a step along the mean of the noisy gradients so far, in which
// older ones weigh less. All that follows a gradient is post-processing, so it costs what SGD costs.
//
//	g̃_t       SGD's noisy mean gradient at w_t, with the regulariser's
//	β         Beta
//	η_t       Rate, times what the schedule says of step t
//	u_{t+1}   = β u_t + (1−β) g̃_t,  u_0 = 0
//	w_{t+1}   = w_t − η_t u_{t+1}                           Polyak's heavy ball
//	w_{t+1}   = w_t − η_t (β u_{t+1} + (1−β) g̃_t)           Nesterov's, as Sutskever et al. (2013) write it
//
// Gradients have the weight 1−β, so that a step size takes the run as far as it takes SGD; where they have the
// weight 1, as in other programs, η is that times 1−β.
type Momentum struct {
	SGD
	Beta     float64 `yaml:"momentum" json:"momentum" doc:"weight β of the past in the mean of the gradients (default 0.9)"`
	Nesterov bool    `yaml:"nesterov" json:"nesterov,omitempty" doc:"look ahead by a step of the mean, as Nesterov's method does"`
}

const momentumBeta = 0.9

// Configure sets what is zero: all but momentum as SGD does.
func (m Momentum) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	if !(m.Beta >= 0 && m.Beta < 1) {
		return nil, fmt.Errorf("momentum: found %v; allowed is any number above 0 and below 1", m.Beta)
	}
	if m.Beta == 0 {
		m.Beta = momentumBeta
	}
	fitted, err := m.SGD.Configure(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	m.SGD = fitted.(SGD)
	return m, nil
}

// Run steps along the mean of SGD's gradients.
func (m Momentum) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w and u.
func (m Momentum) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error] {
	return m.descend(ctx, o, obj, from, m.Rate, 1, func(_ int, rate float64, w, g []float64, kept [][]float64) float64 {
		u := kept[0]
		for j, v := range g {
			u[j] = m.Beta*u[j] + (1-m.Beta)*v
			g[j] = u[j]
			if m.Nesterov {
				g[j] = m.Beta*u[j] + (1-m.Beta)*v
			}
			w[j] -= rate * g[j]
		}
		return rate * norm2(g)
	})
}
