package method

import (
	"context"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// TR is DP-TR, the trust-region method of Wang and Xu (2021), a baseline of P4: each step takes a
// noisy gradient g̃ and a noisy Hessian H̃ and goes to the minimum of ⟨g̃, s⟩ + ½s'H̃s over
// ‖s‖ ≤ √(ε_g/M), which is computed exactly.
//
// As in P4 it ends where g̃ and H̃ pass the test of a 2NS, not by the multiplier. T = ⌈6√M·Gap/ε_g^1.5⌉.
type TR struct {
	P4
	Batch int `yaml:"batch" json:"batch" doc:"rows m of a step, drawn without replacement under replace-one, each independently under add-or-remove; 0 means all rows in every step"`
}

// Configure sets what is zero.
func (m TR) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	_, err := m.configure(pub, obj, terms, m.Batch, func(c secondorder.Constants) (gradient, curvature float64) {
		d := math.Pow(c.Gradient, 1.5) / (6 * math.Sqrt(c.HessLipschitz))
		return d, d
	}, 2)
	if err == nil {
		err = calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
			return m.queries(pub).Cost(m.phase(noise, m.Steps))
		})
	}
	return m, err
}

func (m *TR) queries(pub oracle.Public) secondorder.Queries {
	q := m.P4.queries(pub, m.Batch)
	q.Plan = true
	return q
}

// Plan is T times a gradient and a Hessian of one sample.
func (m TR) Plan(pub oracle.Public) (privacy.Event, error) {
	return valid(m.queries(pub).Cost(m.phase(m.Noise, m.Steps)))
}

// Run is the algorithm.
func (m TR) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := make([]float64, o.Public().Dim) // w_0 = 0
		st := Step{W: w}
		r := m.queries(o.Public()).Run(o, obj.Reg, m.Gradient, m.Curvature, nil, m.phase(m.Noise, m.Steps))
		for r.Next() {
			g, ok := r.Grad(ctx, w) // g̃
			if !ok {
				continue
			}
			h, p, ok := r.Hess(ctx, w, g) // H̃ and its smallest eigenvalue
			if !ok {
				continue
			}
			norm := norm2(g)
			if norm <= m.Gradient && p.Value >= -m.Curvature { // a 2NS
				return st.converged(norm, r.Claim(norm, p)), nil
			}
			s, _, err := secondorder.TrustRegion(h, g, math.Sqrt(m.Gradient/r.HessLipschitz))
			if err != nil {
				return st, err
			}
			if st.move(s, 1, norm); !yield(st) {
				return st, nil
			}
		}
		return st, r.Err()
	})
}
