package method

import (
	"context"
	"iter"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
)

// SHB is DP-SHB, the stochastic heavy ball with privacy, P1 §3.
//
//	x_{t+1} = x_t − α(∇F_B(x_t) + η_t) + β(x_t − x_{t−1})      (3.1)
//	β       = (1−√(αμ))/(1+√(αμ))
//
// It is the same as a step of α/(1−β) along ū_t = β·ū_{t−1} + (1−β)(∇F_B(x_t) + η_t),
// (3.6) and (3.7): the noise is averaged over about 1/(1−β) steps.
//
// Its own bounds (Theorem 3.5, Proposition 3.4) have no closed form, so T comes from
// NAG's at the same α.
type SHB struct{ P1 }

// Fit sets steps, step size, clip norm and noise where they are zero.
func (m SHB) Fit(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.fit("shb", pub, obj, terms, p1Kappa, nagWeights, false)
	return m, err
}

// Run is (3.1).
func (m SHB) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		x := make([]float64, o.Public().Dim) // x_0 = 0
		before := make([]float64, len(x))    // x_{t−1}; x_{−1} = x_0
		g := make([]float64, len(x))
		beta := schedule.Momentum(m.Rate, m.Mu)
		st := Step{W: x, Rate: m.Rate}
		for t := range m.Steps {
			var err error
			if st.GradNorm, err = m.gradient(ctx, o, obj, t, g, x); err != nil {
				stop(yield, st, err)
				return
			}
			for j := range x {
				before[j], x[j] = x[j], x[j]-m.Rate*g[j]+beta*(x[j]-before[j])
			}
			st.T, st.Moved = t+1, distance(x, before)
			if !yield(st, nil) {
				return
			}
		}
		st.Status = Done
		yield(st, nil)
	}
}
