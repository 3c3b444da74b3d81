package method

import (
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// AdaGrad is DP-AdaGrad: the step of AdaGrad with a diagonal matrix (Duchi, Hazan and Singer 2011,
// Figure 1) along the noisy gradients of SGD. All that follows a gradient is post-processing, so it costs
// what SGD costs.
//
//	g̃_t       SGD's noisy mean gradient at w_{t−1}, with the regularizer's
//	η         Rate
//	δ         Regularization
//	s_t       = s_{t−1} + g̃_t²,  s_0 = 0                    (1)
//	w_t       = w_{t−1} − η g̃_t / (√s_t + δ)                (2)
//
// Deviations: Asi, Duchi, Fallah, Javidbakht and Talwar (Private Adaptive Gradient Methods for Convex
// Optimization, ICML 2021) clip and add noise in a norm that adapts to the gradients, which asks for
// more than gradients. Here clipping and noise are SGD's, and only the step adapts. Duchi, Hazan and Singer
// average the iterates; which are averaged is the caller's choice (Output).
type AdaGrad struct {
	Steps          int     `yaml:"steps" json:"steps" doc:"number of steps T (default 100; 200 for a network)"`
	Rate           float64 `yaml:"rate" json:"rate" doc:"step size η, about how far a parameter moves in the first step (default 1/R, R the bound on a row's norm; 0.1·√(2/(R²+1)) for a network)"`
	Gradient       Gradient
	Regularization float64 `yaml:"damping" json:"damping" doc:"constant δ added to the root of the sum of squares (default 1e-8)"`
}

// Defaults of what Configure may choose.
const (
	adagradRate           = 1.0 // × 1/R
	adagradNetRate        = 0.1
	adagradRegularization = 1e-8
)

// Configure sets what is zero: steps, clip norm and noise as SGD does.
func (m AdaGrad) Configure(pub oracle.Public, _ Objective, terms Terms) (Method, error) {
	rate := adagradRate / known(pub.NormBound)
	if len(pub.Initial) > 0 {
		rate = adagradNetRate * math.Sqrt(2/(pub.NormBound*pub.NormBound+1))
	}
	err := m.Gradient.ConfigureSteps(pub, terms, &m.Steps,
		Number{"rate", &m.Rate, Positive, rate},
		Number{"damping", &m.Regularization, Positive, adagradRegularization},
	)
	return m, err
}

// Plan is T times one sampled Gaussian.
func (m AdaGrad) Plan(pub oracle.Public) (privacy.Event, error) { return m.Gradient.Plan(pub, m.Steps) }

// Run is Figure 1 of Duchi, Hazan and Singer along SGD's gradients.
func (m AdaGrad) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

// RunFrom implements Checkpointer: the state is w and s.
func (m AdaGrad) RunFrom(ctx context.Context, o oracle.Oracle, obj Objective, from *Checkpoint) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := o.Public().Start()
		s := make([]float64, len(w)) // s_0 = 0
		st := Step{W: w, Rate: m.Rate, Kept: [][]float64{w, s}}
		var err error
		if st.T, err = from.Into(w, s); err != nil {
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
			moved := 0.0
			for j, v := range g {
				s[j] += v * v                                           // (1)
				by := m.Rate * v / (math.Sqrt(s[j]) + m.Regularization) // (2)
				w[j] -= by
				moved += by * by
			}
			st.T, st.Moved = t+1, math.Sqrt(moved)
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
