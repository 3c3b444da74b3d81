package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
)

// GD2NS is the DP-GD of Wang, Chen and Xu (2019), a baseline of P4: T noisy gradient steps of size 1/G, and then,
// among the iterates, the first whose noisy gradient and noisy Hessian pass the test of a 2NS. It makes no step along
// negative curvature. Half of the budget is for the steps, half for up to T tests.
type GD2NS struct{ P4 }

// keptNumbers are the most parameters of iterates that wait for their test: half a gigabyte, and as much for
// their gradients.
const keptNumbers = 1 << 26

// Configure sets what is zero.
func (m GD2NS) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	_, err := m.fit(pub, obj, terms, func(c secondorder.Constants) (gradient, curvature float64) {
		gradient, _ = c.Short()
		return gradient, gradient
	}, 2)
	if err != nil {
		return nil, err
	}
	if m.Steps > keptNumbers/pub.Dim {
		return nil, fmt.Errorf("steps: found %d; this method keeps its iterates: allowed are up to %d with %d parameters", m.Steps, keptNumbers/pub.Dim, pub.Dim)
	}
	if m.Noise == 0 {
		m.Noise, _, err = m.calibrate(terms, true, func(noise float64) privacy.Event { return m.plan(pub, noise) })
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *GD2NS) lens(pub oracle.Public) *lens {
	return &lens{P4: &m.P4, pub: pub, sample: sample.Full{}, tests: m.Steps, phase: phase{m.Steps, m.Noise, m.Steps}}
}

func (m *GD2NS) plan(pub oracle.Public, noise float64) privacy.Event {
	return m.lens(pub).cost(phase{m.Steps, noise, m.Steps})
}

// Plan is T gradients and T Hessians.
func (m GD2NS) Plan(pub oracle.Public) (privacy.Event, error) {
	p := m.plan(pub, m.Noise)
	return p, p.Validate()
}

// MaxSteps is T steps and T tests.
func (m GD2NS) MaxSteps() int { return 2 * m.Steps }

// Run is the algorithm. In the steps of the second half W is the iterate that was tested.
func (m GD2NS) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		pub := o.Public()
		w, g := make([]float64, pub.Dim), make([]float64, pub.Dim) // w_0 = 0
		st := Step{W: w}
		l := m.lens(pub)
		if err := l.start(ctx, o, obj); err != nil {
			yield(st, err)
			return
		}
		type point struct{ w, g []float64 }
		var small []point // iterates with ‖g̃‖ ≤ ε_g
		var refused error // a step that a run cannot take any more that lost batches in a crash: its tests are paid still
		for l.next() {
			err := l.gradient(g, w)
			if errors.Is(err, privacy.ErrExhausted) {
				refused = err
				break
			}
			if err != nil {
				yield(st.End(err))
				return
			}
			norm := norm2(g)
			if norm <= m.Gradient {
				small = append(small, point{slices.Clone(w), slices.Clone(g)})
			}
			st.move(w, g, -1/l.c.Smooth, norm)
			if !yield(st, nil) {
				return
			}
		}
		last := slices.Clone(w)
		for _, at := range small {
			p, err := l.smallest(at.w, at.g)
			if err != nil {
				copy(w, last)
				yield(st.End(err))
				return
			}
			copy(w, at.w)
			st.T, st.Rate, st.Moved, st.GradNorm = st.T+1, 0, 0, norm2(at.g)
			if p.Value >= -m.Curvature {
				st.Status, st.Claim = Converged, l.claim(at.g, p)
				yield(st, nil)
				return
			}
			if !yield(st, nil) {
				return
			}
		}
		copy(w, last)
		st.Rate, st.Moved, st.GradNorm = 0, 0, math.Max(0, st.GradNorm)
		yield(st.End(refused))
	}
}
