package method

import (
	"context"
	"iter"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
)

// NAG is DP-NAG, Nesterov's accelerated gradient with privacy, P1 §4.
//
//	z_t     = (1+β)x_t − βx_{t−1}                              (4.1)
//	x_{t+1} = z_t − α(∇F_B(z_t) + η_t)
//	β       = (1−√(αμ))/(1+√(αμ))
//
// The default T has the least bound (4.3) for the same noise in all steps, with the
// factor 2 that P1 lost (S-1a).
type NAG struct{ P1 }

// NAGOpt is DP-NAG-opt: NAG whose noise falls from step to step, so that the bound
// (4.3) is least for the budget: (4.5) on all rows, its Gaussian twin where the
// budget has a δ, and the exact optimum on samples, where P1 has a rule of thumb
// (Remark 4.2; S-1b). The default T is T′ of Remark 4.1.
type NAGOpt struct{ NAG }

func nagWeights(m P1, f schedule.Convex) weights {
	return func(steps int) (float64, []float64) {
		return f.Weights([]schedule.Stage{{Steps: steps, Rate: m.Rate}})
	}
}

func (NAG) bound() bound { return bound{kappa: p1Kappa, weights: nagWeights, momentum: true} }
func (NAGOpt) bound() bound {
	return bound{kappa: p1Kappa, weights: nagWeights, momentum: true, optimal: true}
}

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m NAG) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, m.bound())
	return m, err
}

// Configure sets steps, step size and clip norm where they are zero, and the schedule.
func (m NAGOpt) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, m.bound())
	return m, err
}

// Run is (4.1).
func (m NAG) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.accelerate(ctx, o, obj, schedule.Stage{Steps: m.Steps, Rate: m.Rate})
}

// accelerate is (4.1), stage after stage, each from rest.
func (m P1) accelerate(ctx context.Context, o oracle.Oracle, obj Objective,
	stages ...schedule.Stage) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub := o.Public()
		noisy := m.ask(pub, 0).On(o)
		x := make([]float64, pub.Dim)     // x_0 = 0
		before := make([]float64, len(x)) // x_{t−1}
		z := make([]float64, len(x))
		st := Step{W: x}
		for _, stage := range stages {
			alpha, beta := stage.Rate, schedule.Momentum(stage.Rate, m.Mu)
			copy(before, x) // x_{−1} = x_0
			st.Rate = alpha
			for range stage.Steps {
				for j := range z {
					z[j] = (1+beta)*x[j] - beta*before[j]
				}
				g, err := noisy.With(m.ask(pub, st.T)).At(ctx, z)
				if err != nil {
					return st, err
				}
				st.GradNorm = norm2(g)
				obj.AddGradient(g, z)
				for j := range x {
					before[j], x[j] = x[j], z[j]-alpha*g[j]
				}
				st.T, st.Moved = st.T+1, distance(x, before)
				if !yield(st) {
					return st, nil
				}
			}
		}
		return st, nil
	})
}
