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

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m GD) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, p1KappaGD, gdWeights, false)
	return m, err
}

func gdWeights(m P1, f schedule.Convex) weights {
	return func(steps int) (float64, []float64) { return f.GradientWeights(steps, m.Rate) }
}

func (m GD) predict(pub oracle.Public, obj Objective, terms Terms) (*Forecast, error) {
	out, err := m.forecast(pub, obj, terms, gdWeights, false)
	if err != nil {
		return nil, err
	}
	out.Best.Momentum = 0
	for i := range out.Curve {
		out.Curve[i].Momentum = 0
	}
	return out, nil
}

// Run is (2.4) with (2.8).
func (m GD) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		pub := o.Public()
		noisy := m.ask(pub, 0).On(o)
		x := make([]float64, pub.Dim) // x_0 = 0
		st := Step{W: x, Rate: m.Rate}
		for t := range m.Steps {
			g, err := noisy.With(m.ask(pub, t)).At(ctx, x)
			if err != nil {
				yield(st.End(err))
				return
			}
			st.GradNorm = norm2(g)
			obj.AddGradient(g, x)
			for j := range x {
				x[j] -= m.Rate * g[j]
			}
			st.T, st.Moved = t+1, m.Rate*norm2(g)
			if !yield(st, nil) {
				return
			}
		}
		yield(st.End(nil))
	}
}
