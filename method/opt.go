package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Costs says how Hessians are paid.
type Costs struct {
	Pay      string `yaml:"costs" json:"costs" doc:"filter: a Hessian is paid when it is asked (default); plan: each step pays for one, so that the cost is a plan and any accountant certifies it"`
	Hessians int    `yaml:"hessians" json:"hessians,omitempty" doc:"most Hessians of a run with costs: filter (default: as many as the analysis says, by the decrease of a step along negative curvature)"`

	Filter *privacy.Filtered `yaml:"-" json:"filter,omitempty"` // the plan with costs: filter
}

// The ways to pay for Hessians.
const (
	ByFilter = "filter"
	ByPlan   = "plan"
)

// fit sets what was left free, after m. Of steps along negative curvature there are bends at most.
func (c *Costs) fit(m *P4, bends float64) error {
	switch c.Pay {
	case "":
		c.Pay = ByFilter
	case ByFilter, ByPlan:
	default:
		return fmt.Errorf("costs: found %q; allowed are %s, %s", c.Pay, ByFilter, ByPlan)
	}
	switch {
	case c.Pay == ByPlan && c.Hessians != 0:
		return fmt.Errorf("hessians: found %d beside costs: %s; allowed is to leave it out: each step pays for one", c.Hessians, ByPlan)
	case c.Hessians < 0 || c.Hessians > m.Steps:
		return fmt.Errorf("hessians: found %d; allowed is 1 to %d, the steps", c.Hessians, m.Steps)
	case c.Pay == ByFilter && c.Hessians == 0:
		c.Hessians = int(math.Min(bends+1, float64(m.Steps))) // one ends the run
	}
	return nil
}

// spend sets the noise of a run of one phase, and its filter.
func (c *Costs) spend(l *lens, terms Terms) (err error) {
	cost := func(noise float64) privacy.Event { return l.cost(phase{l.Steps, noise, c.Hessians}) }
	switch {
	case l.Noise == 0:
		l.Noise, c.Filter, err = l.calibrate(terms, l.plan, cost)
	case !l.plan:
		var f privacy.Filtered
		if f, _, err = account.ChooseFilter(cost(l.Noise), terms.Budget); err != nil {
			return fmt.Errorf("noise_multiplier: %w", err)
		}
		c.Filter = &f
	}
	return err
}

// planned is the plan of a run that asks p at most.
func (c *Costs) planned(p privacy.Event) (privacy.Event, error) {
	if c.Filter != nil {
		p = *c.Filter
	}
	return p, p.Validate()
}

// OPT is P4 Algorithm 1 with short steps; with a batch it is OPT-B.
//
//	P4              here
//	γ_g, γ_H        1/G, 2|λ̃|/M (7)
//	MIN_DEC         (10), with c = c₁ = c₂ = 0.1
//	S_k             Batch rows, without replacement under replace-one
//
// P4 asks the gradient and the Hessian of one sample and amplifies each by itself, which is not what they cost (S-4e). Here
// costs: plan composes them on the sample before it is amplified, and costs: filter draws a sample for each.
type OPT struct {
	P4
	Costs
	Batch int `yaml:"batch" json:"batch" doc:"rows m of a step, drawn without replacement under replace-one and each by itself under add-or-remove; 0 means all rows in every step"`
}

// Configure sets what is zero.
func (m OPT) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	if _, err := m.fit(pub, obj, terms); err != nil {
		return nil, err
	}
	if err := m.spend(m.lens(pub), terms); err != nil {
		return nil, err
	}
	return m, nil
}

// fit sets all but the noise.
func (m *OPT) fit(pub oracle.Public, obj Objective, terms Terms) (bends float64, err error) {
	if m.Batch < 0 || m.Batch > pub.Rows {
		return 0, fmt.Errorf("batch: found %d; allowed is 0 (all rows) to %d, the nominal row count", m.Batch, pub.Rows)
	}
	if bends, err = m.P4.fit(pub, obj, terms, secondorder.Constants.Short, 2); err != nil {
		return 0, err
	}
	return bends, m.Costs.fit(&m.P4, bends)
}

func (m *OPT) lens(pub oracle.Public) *lens {
	return &lens{P4: &m.P4, pub: pub, sample: batches(pub, m.Batch), plan: m.Off || m.Pay == ByPlan, tests: m.Steps}
}

// Plan is T steps, or the filter.
func (m OPT) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.planned(m.lens(pub).cost(phase{m.Steps, m.Noise, m.Hessians}))
}

// Run is P4 Algorithm 1 with short steps.
func (m OPT) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, one(phase{m.Steps, m.Noise, m.Hessians}))
}

func (m OPT) run(ctx context.Context, o oracle.Oracle, obj Objective, phases phasing) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		l := m.lens(o.Public())
		w, g := make([]float64, l.pub.Dim), make([]float64, l.pub.Dim) // w_0 = 0
		st := Step{W: w}
		err := l.start(ctx, o, obj)
		for err == nil && l.open(phases(l)) {
			for l.next() { // k = 0, 1, …
				if err = l.gradient(g, w); err != nil { // g̃_k, of the sample S_k
					break
				}
				norm := norm2(g)
				s, step := g, 1/l.c.Smooth // γ_g of (7)
				if norm <= m.Gradient {
					var p secondorder.Pair
					if p, err = l.smallest(w, g); err != nil { // (λ̃_k, p̃_k) of H̃_k, p̃'g̃ ≤ 0 (5)
						break
					}
					if p.Value >= -m.Curvature { // a 2NS
						st.GradNorm = norm
						yield(st.converged(l.claim(g, p)), nil)
						return
					}
					s, step = negated(p.Vector), 2*-p.Value/l.c.HessLipschitz // γ_H of (7)
				}
				st.move(w, s, -step, norm)
				if !yield(st, nil) {
					return
				}
			}
			err = l.ended(err)
		}
		if err == nil {
			err = l.refused
		}
		yield(st.End(err))
	}
}

// phasing is the next phase of a run, if there is one.
type phasing func(l *lens) (p phase, more bool)

// one is a run of one phase.
func one(p phase) phasing {
	return func(l *lens) (phase, bool) { return p, l.opened == 0 }
}

// ended is the error that ends the run, nil where err only ends its phase: the Hessians are used up, or
// the part of the plan is, in a run that lost batches in a crash.
func (l *lens) ended(err error) error {
	switch {
	case errors.Is(err, errPhase):
		return nil
	case l.plan && errors.Is(err, privacy.ErrExhausted):
		l.refused = err
		return nil
	}
	return err
}

// converged is the last step of a run whose point passed the test of a 2NS.
func (st Step) converged(c *Claim) Step {
	st.Status, st.Claim = Converged, c
	return st
}

func negated(v []float64) []float64 {
	floats.Scale(-1, v)
	return v
}
