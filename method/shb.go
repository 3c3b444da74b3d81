package method

import (
	"context"
	"iter"
	"slices"

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

func (SHB) bound() bound { return bound{kappa: p1Kappa, weights: nagWeights, momentum: true} }

// Configure sets steps, step size, clip norm and noise where they are zero.
func (m SHB) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	err := m.configure(pub, obj, terms, m.bound())
	return m, err
}

// forecast uses Proposition 3.4 instead of the bound: a certificate holds for every function of the class, and for
// any number of steps. It searches for the momentum too, since heavy ball has no certificate near NAG's.
func (m SHB) forecast(pub oracle.Public, obj Objective, terms Terms, of bound) (*Forecast, error) {
	out, price, err := m.prepare(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	e0 := startError(pub)
	for _, rate := range m.rates(out.L, 5) {
		m.Rate = rate
		// The even noise of each number of steps, from bounds whose weights are 1 in all.
		even := m.predictions(pub, price, func(steps int) (float64, []float64) {
			return 0, slices.Repeat([]float64{1}, steps)
		}, of)
		for _, beta := range []float64{0, 0.2, 0.4, 0.6, 0.8} {
			h := schedule.HeavyBall{Convex: schedule.Convex{Mu: out.Mu, L: out.L}, Rate: rate, Beta: beta}
			curve := make([]Prediction, 0, len(even))
			for _, steps := range []int{20, 200} {
				noise := func(p Prediction) float64 { return 2 * p.Noise / float64(p.Steps) } // E‖noise‖² of a step
				typical := even[min(len(even)-1, steps/5)]
				c, err := h.Certify(steps, e0, 2*e0/out.Mu, noise(typical))
				if err != nil {
					continue
				}
				for i, p := range even {
					p.Momentum, p.Start = beta, h.Error(c, p.Steps, e0, 2*e0/out.Mu, 0)
					p.Error = h.Error(c, p.Steps, e0, 2*e0/out.Mu, noise(p))
					p.Noise = p.Error - p.Start
					if len(curve) <= i {
						curve = append(curve, p)
					} else if p.Error < curve[i].Error { // each certificate holds for all numbers of steps
						curve[i] = p
					}
				}
			}
			out.offer(curve)
		}
	}
	return out, nil
}

// Run is (3.1).
func (m SHB) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		return m.ball(ctx, o, obj, schedule.Momentum(m.Rate, m.Mu), course{}, yield)
	})
}

// A course is where a heavy ball starts and how it goes. What is nil or 0 is that of (3.1).
type course struct {
	center []float64 // rows are less it
	shift  float64   // is added to all margins
	width  float64   // of labels, Step.Width
	metric *metric
}

// ball is the loop of (3.1) with momentum beta, on a course.
func (m P1) ball(ctx context.Context, o oracle.Oracle, obj Objective, beta float64, on course,
	yield func(Step) bool) (Step, error) {
	pub := o.Public()
	noisy := m.ask(pub, 0).On(o)
	noisy.Around(on.center, on.shift)
	x := make([]float64, pub.Dim)     // x_0 = 0
	before := make([]float64, len(x)) // x_{t−1}; x_{−1} = x_0
	along := make([]float64, len(x))
	st := Step{W: x, Rate: m.Rate, Center: on.center, Shift: on.shift, Width: on.width}
	for t := range m.Steps {
		g, err := noisy.With(m.ask(pub, t)).At(ctx, x)
		if err != nil {
			return st, err
		}
		st.Gradient, st.GradNorm = g, norm2(g)
		copy(along, g)
		obj.AddGradient(along, x)
		st.Rate = on.metric.turn(st.Rate, along, x, before)
		b := on.metric.momentum(beta, t)
		for j := range x {
			before[j], x[j] = x[j], x[j]-st.Rate*along[j]+b*(x[j]-before[j])
		}
		st.T, st.Moved = t+1, distance(x, before)
		if !yield(st) {
			return st, nil
		}
	}
	return st, nil
}
