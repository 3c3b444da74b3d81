package method

import (
	"context"
	"iter"

	"github.com/sottodp/sotto/method/schedule"
	"github.com/sottodp/sotto/oracle"
)

// MASG is DP-MASG, multistage accelerated gradient with privacy, P1 §4.2: NAG whose step
// size falls from stage to stage, and the momentum restarts at each.
//
//	n_1     = ⌈2√κ·ln √κ⌉, n_k = 2^k⌈√κ·ln 2^{p+2}⌉ for k ≥ 2   (4.7)
//	α^(k)   = α/4^k for k ≥ 2, α^(1) = α
//	β^(k)   = (1−√(α^(k)μ))/(1+√(α^(k)μ))
//	κ       = L/μ;  p = 1
//
// P1 asks for n_1 ≥ 1; the length is that of its experiments. The last stage ends with
// T. The default T has the least bound (4.8), with the factor 2 that P1 lost (S-1a).
type MASG struct{ P1 }

// MASGOpt is DP-MASG-opt: MASG whose noise changes from step to step, so that the
// bound (4.8) is least for the budget. See NAGOpt.
type MASGOpt struct{ MASG }

// stages are those of that many steps.
func (m P1) stages(steps int) []schedule.Stage {
	f := m.convex()
	return schedule.MASG(steps, f, m.Rate, schedule.MASGFirst(f), 1)
}

func masgWeights(m P1, f schedule.Convex) weights {
	return func(steps int) (float64, []float64) { return f.Weights(m.stages(steps)) }
}

func (MASG) bound() bound { return bound{kappa: p1Kappa, weights: masgWeights, momentum: true} }
func (MASGOpt) bound() bound {
	return bound{kappa: p1Kappa, weights: masgWeights, momentum: true, optimal: true}
}

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m MASG) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, m.bound())
	return m, err
}

// Configure sets steps, step size and clip norm where they are zero, and the schedule.
func (m MASGOpt) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, m.bound())
	return m, err
}

// Run is (4.1), stage after stage.
func (m MASG) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.accelerate(ctx, o, obj, m.stages(m.Steps)...)
}
