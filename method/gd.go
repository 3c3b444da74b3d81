package method

import (
	"context"
	"iter"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
)

// GD is DP-GD, the baseline of P1: gradient descent (2.4) along noisy gradients. SGD on
// all rows is the same with other defaults; this one also knows Laplace noise.
//
//	x_{t+1} = x_t − α(∇F_B(x_t) + η_t)
//
// The default T has the least bound of package schedule, GradientWeights.
type GD struct{ P1 }

func (GD) bound() bound { return bound{kappa: p1KappaGD, weights: gdWeights} }

func gdWeights(m P1, f schedule.Convex) weights {
	return func(steps int) (float64, []float64) { return f.GradientWeights(steps, m.Rate) }
}

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m GD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, m.bound())
	return m, err
}

// Run is (2.4) with (2.8).
func (m GD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub := o.Public()
		noisy := m.ask(pub, 0).On(o)
		x := make([]float64, pub.Dim) // x_0 = 0
		st := Step{W: x, Rate: m.Rate}
		for t := range m.Steps {
			g, err := noisy.With(m.ask(pub, t)).ask(ctx, x)
			if err != nil {
				return st, err
			}
			st.GradNorm, st.Moved = noisy.descend(x, m.Rate, g, obj)
			st.T = t + 1
			if !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
