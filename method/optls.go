package method

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// OPTLS is OPT-LS, P4 Algorithms 2 and 3: OPT with a private line search along both directions.
//
//	P4              here
//	γ̄_g, γ̄_H       2(1−c₁−c_g)/G, t₂|λ̃|/M: taken where a search finds nothing
//	b_g = b_H       Long
//	β_g = β_H       Shrink
//	i_max           ⌊ln b/ln(1/β)⌋ + 1
//	λ_SVT           Noise, as σ_g and σ_H are (14)
//
// Deviations. Algorithm 2 loses the fallback step, since it shrinks the variable that holds it (S-4h). Its sensitivity
// (2/n)·b·γ̄·B_g·‖g̃‖ is right (S-4b); here it is enforced, by clipping each row's decrease at b·γ̄·B_g·‖g̃‖, so it
// rests on no bound of the loss. There is no search on samples: P4 has no analysis of one.
type OPTLS struct {
	P4
	Costs
	Long   float64 `yaml:"long" json:"long" doc:"first step size of a search, as a multiple b of the one that it falls back to (default 8)"`
	Shrink float64 `yaml:"shrink" json:"shrink" doc:"factor β from one step size to the next (default 0.5)"`
}

// Defaults of OPTLS.
const (
	p4Search = 8.
	p4Shrink = 0.5
)

// Configure sets what is zero.
func (m OPTLS) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	_, err := m.configure(pub, obj, terms)
	if err == nil {
		err = m.calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
			return m.queries(pub).Cost(m.phase(noise, m.Hessians))
		})
	}
	return m, err
}

// configure sets all but the noise.
func (m *OPTLS) configure(pub oracle.Public, obj Objective, terms Terms) (bends float64, err error) {
	err = configure(Number{"long", &m.Long, Interval{1, 1e6, true}, p4Search},
		Number{"shrink", &m.Shrink, Fraction, p4Shrink})
	if err == nil && m.Long == 1 {
		err = errors.New("long: found 1; choose a number above 1")
	}
	if n := m.tries(); err == nil && n > 1000 {
		err = fmt.Errorf("shrink: found %v; with long: %v that is %d step sizes; choose values that make at most 1000",
			m.Shrink, m.Long, n)
	}
	if err == nil {
		bends, err = m.P4.configure(pub, obj, terms, 0, secondorder.Constants.Search, 3)
	}
	if err == nil {
		err = m.Costs.configure(&m.P4, bends)
	}
	return bends, err
}

func (m *OPTLS) tries() int { return secondorder.MaxBacktracks(m.Long, m.Shrink) }

func (m *OPTLS) queries(pub oracle.Public) secondorder.Queries {
	q := m.P4.queries(pub, 0)
	q.Plan, q.MaxBacktracks = m.Off || m.Pay == ByPlan, m.tries()
	return q
}

// Plan is T steps, or the filter.
func (m OPTLS) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.plan(m.queries(pub).Cost(m.phase(m.Noise, m.Hessians)))
}

// Cautions says whether the rows are enough for a search to do what the analysis counts on.
func (m OPTLS) Cautions(pub oracle.Public, obj Objective) []string {
	c, err := secondorder.Analysis(pub, obj.Reg, m.Gradient, m.Curvature)
	if err != nil || m.Off {
		return nil
	}
	if need := c.SearchRows(m.Noise, m.tries(), m.Steps, secondorder.Miss, m.Clip, m.Long,
		m.Long); !(float64(pub.Rows) >= need) {
		return []string{fmt.Sprintf("a line search in every one of %d steps does what the analysis counts on from %.3g rows on, and there are %d: where it fails, a short step is taken", m.Steps, need, pub.Rows)}
	}
	return nil
}

// Run is P4 Algorithm 3.
func (m OPTLS) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, m.phase(m.Noise, m.Hessians))
}

func (m OPTLS) run(ctx context.Context, o oracle.Oracle, obj Objective,
	phases ...secondorder.Phase) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := make([]float64, o.Public().Dim) // w_0 = 0
		st := Step{W: w}
		r := m.queries(o.Public()).Run(o, obj.Reg, m.Gradient, m.Curvature, m.Filter, phases...)
		_, t2 := r.Roots() // (15)
		for r.Next() {     // k = 0, 1, …
			g, ok := r.Grad(ctx, w) // g̃_k
			if !ok {
				continue
			}
			norm := norm2(g)
			s, sure := g, 2*(1-r.C1-r.CG)/r.Smooth                                     // γ̄_g
			least := func(gamma float64) float64 { return r.CG * gamma * norm * norm } // (13a)
			if norm <= m.Gradient {
				_, p, ok := r.Hess(ctx, w, g) // λ̃_k and p̃_k of H̃_k, p̃'g̃ ≤ 0 (5)
				if !ok {
					continue
				}
				if p.Value >= -m.Curvature { // a 2NS
					return st.converged(norm, r.Claim(norm, p)), nil
				}
				floats.Scale(-1, p.Vector)
				s, sure = p.Vector, t2*-p.Value/r.HessLipschitz                                    // γ̄_H
				least = func(gamma float64) float64 { return r.CH / 2 * gamma * gamma * -p.Value } // (13b)
			}
			gamma, ok := r.Along(ctx, w, s, norm2(s), sure, m.Long, m.Shrink, least) // Algorithm 2
			if !ok {
				continue
			}
			if st.move(s, -gamma, norm); !yield(st) { // w_{k+1} = w_k − γ s
				return st, nil
			}
		}
		return st, r.Err()
	})
}
