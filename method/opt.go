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

// Costs says how Hessians are charged.
type Costs struct {
	Pay      string `yaml:"costs" json:"costs" doc:"filter: charge a Hessian when the method asks for it (default); plan: charge one in each step, so that the cost is a plan, which any accountant certifies"`
	Hessians int    `yaml:"hessians" json:"hessians,omitempty" doc:"maximum number of Hessians with costs: filter (default: that of the analysis, from the decrease of a step along negative curvature)"`

	Filter *privacy.Filtered `yaml:"-" json:"filter,omitempty"` // the plan with costs: filter
}

// The ways to charge for Hessians.
const (
	ByFilter = "filter"
	ByPlan   = "plan"
)

// configure sets what is free, after m. Of steps along negative curvature there are bends at most.
func (c *Costs) configure(m *P4, bends float64) error {
	if err := configure(Word{"costs", &c.Pay, []string{ByFilter, ByPlan}}); err != nil {
		return err
	}
	switch {
	case c.Pay == ByPlan && c.Hessians != 0:
		return fmt.Errorf("hessians: found %d beside costs: %s; leave it out, as each step is charged for one", c.Hessians,
			ByPlan)
	case c.Hessians < 0 || c.Hessians > m.Steps:
		return fmt.Errorf("hessians: found %d; write a whole number from 1 to %d, the steps", c.Hessians, m.Steps)
	case c.Pay == ByFilter && c.Hessians == 0:
		c.Hessians = int(math.Min(bends+1, float64(m.Steps))) // one ends the run
	}
	return nil
}

// calibrate sets a free noise to the least with which plan fits the budget, and the filter where Hessians
// are charged when they are asked.
func (c *Costs) calibrate(noise *float64, terms Terms, plan func(noise float64) privacy.Event) error {
	if terms.Off || c.Pay == ByPlan {
		return calibrate(noise, terms, plan)
	}
	f, err := calibrateFilter(noise, terms, plan)
	c.Filter = &f
	return err
}

// plan is the cost of a run that asks p at most.
func (c *Costs) plan(p privacy.Event) (privacy.Event, error) {
	if c.Filter != nil {
		p = *c.Filter
	}
	return valid(p)
}

// OPT is P4 Algorithm 1 with short steps; with a batch it is OPT-B.
//
//	P4              here
//	γ_g, γ_H        1/G, 2|λ̃|/M (7)
//	MIN_DEC         (10), with c = c₁ = c₂ = 0.1
//	S_k             Batch rows, without replacement under replace-one
//
// P4 asks the gradient and the Hessian of one sample and amplifies each by itself, which is not what they cost (S-4e).
// Here costs: plan composes them on the sample before it is amplified, and costs: filter draws a sample for each.
type OPT struct {
	P4
	Costs
	Batch int `yaml:"batch" json:"batch" doc:"rows m of a step, drawn without replacement under replace-one, each independently under add-or-remove; 0 means all rows in every step"`
}

// Configure sets what is zero.
func (m OPT) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	_, err := m.configure(pub, obj, terms)
	if err == nil {
		err = m.calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
			return m.queries(pub).Cost(m.phase(noise, m.Hessians))
		})
	}
	return m, err
}

// configure sets all but the noise.
func (m *OPT) configure(pub oracle.Public, obj Objective, terms Terms) (bends float64, err error) {
	if bends, err = m.P4.configure(pub, obj, terms, m.Batch, secondorder.Constants.Short, 2); err != nil {
		return 0, err
	}
	return bends, m.Costs.configure(&m.P4, bends)
}

func (m *OPT) queries(pub oracle.Public) secondorder.Queries {
	q := m.P4.queries(pub, m.Batch)
	q.Plan = m.Off || m.Pay == ByPlan
	return q
}

// Plan is T steps, or the filter.
func (m OPT) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.plan(m.queries(pub).Cost(m.phase(m.Noise, m.Hessians)))
}

// Run is P4 Algorithm 1 with short steps.
func (m OPT) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, m.phase(m.Noise, m.Hessians))
}

func (m OPT) run(ctx context.Context, o oracle.Oracle, obj Objective,
	phases ...secondorder.Phase) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		w := make([]float64, o.Public().Dim) // w_0 = 0
		st := Step{W: w}
		r := m.queries(o.Public()).Run(o, obj.Reg, m.Gradient, m.Curvature, m.Filter, phases...)
		for r.Next() { // k = 0, 1, …
			g, ok := r.Grad(ctx, w) // g̃_k, of the sample S_k
			if !ok {
				continue
			}
			norm := norm2(g)
			s, gamma := g, -1/r.Smooth // −γ_g (7)
			if norm <= m.Gradient {
				_, p, ok := r.Hess(ctx, w, g) // λ̃_k and p̃_k of H̃_k, p̃'g̃ ≤ 0 (5)
				if !ok {
					continue
				}
				if p.Value >= -m.Curvature { // a 2NS
					return st.converged(norm, r.Claim(norm, p)), nil
				}
				s, gamma = p.Vector, 2*-p.Value/r.HessLipschitz // γ_H (7)
			}
			if st.move(s, gamma, norm); !yield(st) { // w_{k+1} = w_k + γ s
				return st, nil
			}
		}
		return st, r.Err()
	})
}
