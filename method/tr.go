package method

import (
	"context"
	"fmt"
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
	Batch int `yaml:"batch" json:"batch" doc:"rows m of a step, drawn without replacement under replace-one and each by itself under add-or-remove; 0 means all rows in every step"`
}

// Configure sets what is zero.
func (m TR) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	if m.Batch < 0 || m.Batch > pub.Rows {
		return nil, fmt.Errorf("batch: found %d; allowed is 0 (all rows) to %d, the nominal row count", m.Batch, pub.Rows)
	}
	_, err := m.fit(pub, obj, terms, func(c secondorder.Constants) (gradient, curvature float64) {
		d := math.Pow(c.Gradient, 1.5) / (6 * math.Sqrt(c.HessLipschitz))
		return d, d
	}, 2)
	if err != nil {
		return nil, err
	}
	if m.Noise == 0 {
		l := m.lens(pub)
		m.Noise, _, err = m.calibrate(terms, true, func(noise float64) privacy.Event { return l.cost(m.phase(noise)) })
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *TR) phase(noise float64) phase { return phase{m.Steps, noise, m.Steps} }

func (m *TR) lens(pub oracle.Public) *lens {
	return &lens{P4: &m.P4, pub: pub, sample: batches(pub, m.Batch), plan: true, tests: m.Steps}
}

// Plan is T times a gradient and a Hessian of one sample.
func (m TR) Plan(pub oracle.Public) (privacy.Event, error) {
	p := m.lens(pub).cost(m.phase(m.Noise))
	return p, p.Validate()
}

// Run is the algorithm.
func (m TR) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		pub := o.Public()
		w, g := make([]float64, pub.Dim), make([]float64, pub.Dim) // w_0 = 0
		st := Step{W: w}
		l := m.lens(pub)
		l.open(m.phase(m.Noise), true)
		if err := l.start(ctx, o, obj); err != nil {
			yield(st, err)
			return
		}
		radius := math.Sqrt(m.Gradient / l.c.HessLipschitz)
		for l.next() {
			if err := l.gradient(g, w); err != nil {
				yield(st.End(err))
				return
			}
			h, err := l.hessian(w)
			if err != nil {
				yield(st.End(err))
				return
			}
			p, err := l.pairOf(h, g)
			if err != nil {
				yield(st, err)
				return
			}
			norm := norm2(g)
			if norm <= m.Gradient && p.Value >= -m.Curvature {
				st.GradNorm, st.Status, st.Claim = norm, Converged, l.claim(g, p)
				yield(st, nil)
				return
			}
			s, _, err := secondorder.TrustRegion(h, g, radius)
			if err != nil {
				yield(st, err)
				return
			}
			st.move(w, s, 1, norm)
			if !yield(st, nil) {
				return
			}
		}
		yield(st.End(nil))
	}
}
