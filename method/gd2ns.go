package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
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
	_, err := m.configure(pub, obj, terms, 0, func(c secondorder.Constants) (gradient, curvature float64) {
		gradient, _ = c.Short()
		return gradient, gradient
	}, 2)
	if err == nil && m.Steps > keptNumbers/pub.Dim {
		err = fmt.Errorf("steps: found %d; this method keeps its iterates; choose at most %d with %d parameters", m.Steps,
			keptNumbers/pub.Dim, pub.Dim)
	}
	if err == nil {
		err = calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
			return m.queries(pub, 0).Cost(m.phase(noise, m.Steps))
		})
	}
	return m, err
}

// Plan is T gradients and T Hessians.
func (m GD2NS) Plan(pub oracle.Public) (privacy.Event, error) {
	return valid(m.queries(pub, 0).Cost(m.phase(m.Noise, m.Steps)))
}

// MaxSteps is T steps and T tests.
func (m GD2NS) MaxSteps() int { return 2 * m.Steps }

// Run is the algorithm. In the steps of the second half W is the iterate that was tested.
func (m GD2NS) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := make([]float64, o.Public().Dim) // w_0 = 0
		st := Step{W: w}
		r := m.queries(o.Public(), 0).Run(o, obj.Reg, m.Gradient, m.Curvature, nil, m.phase(m.Noise, m.Steps))
		type point struct{ w, g []float64 }
		var small []point // iterates with ‖g̃‖ ≤ ε_g
		for r.Next() {
			g, ok := r.Grad(ctx, w)
			if !ok {
				continue
			}
			norm := norm2(g)
			if norm <= m.Gradient {
				small = append(small, point{slices.Clone(w), slices.Clone(g)})
			}
			if st.move(g, -1/r.Smooth, norm); !yield(st) {
				return st, nil
			}
		}
		// A resumed run that lost batches in a crash may not take all steps; its tests were charged all the same.
		if err := r.Err(); err != nil && !errors.Is(err, privacy.ErrExhausted) {
			return st, err
		}
		last := slices.Clone(w)
		for _, at := range small {
			_, p, ok := r.Hess(ctx, at.w, at.g)
			if !ok {
				break
			}
			copy(w, at.w)
			st.T, st.Rate, st.Moved, st.GradNorm = st.T+1, 0, 0, norm2(at.g)
			if p.Value >= -m.Curvature {
				return st.converged(st.GradNorm, r.Claim(st.GradNorm, p)), nil
			}
			if !yield(st) {
				return st, nil
			}
		}
		copy(w, last)
		st.Rate, st.Moved = 0, 0
		return st, r.Err()
	})
}
