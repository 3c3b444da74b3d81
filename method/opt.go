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
	return m.lens(o.Public()).descend(ctx, o, obj, one(phase{m.Steps, m.Noise, m.Hessians}), short)
}

// short are the step sizes (7).
func short(l *lens, _ []float64, d direction) (float64, error) {
	if d.bend > 0 {
		return 2 * d.bend / l.c.HessLipschitz, nil
	}
	return 1 / l.c.Smooth, nil
}

// phasing is the next phase of a run, if there is one.
type phasing func(l *lens) (p phase, more bool)

// one is a run of one phase.
func one(p phase) phasing {
	return func(l *lens) (phase, bool) { return p, l.opened == 0 }
}

// A direction is what a step goes against: the noisy gradient, or minus the vector of the smallest
// eigenvalue.
type direction struct {
	s    []float64
	norm float64 // ‖g̃‖
	bend float64 // |λ̃|; 0 along the gradient
}

// descend is P4 Algorithm 1, with whatever phases and step sizes.
func (l *lens) descend(ctx context.Context, o oracle.Oracle, obj Objective, phases phasing, rate func(l *lens, w []float64, d direction) (float64, error)) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		w, g := make([]float64, l.pub.Dim), make([]float64, l.pub.Dim) // w_0 = 0
		st := Step{W: w}
		if err := l.start(ctx, o, obj); err != nil {
			yield(st, err)
			return
		}
		var refused error // of a phase whose part of the plan is used up: a run that lost batches in a crash
		for l.open(phases(l)) {
			for l.next() {
				err := l.gradient(g, w)
				if l.plan && errors.Is(err, privacy.ErrExhausted) {
					refused = err
					break
				}
				if err != nil {
					yield(st.End(err))
					return
				}
				d := direction{s: g, norm: norm2(g)}
				if d.norm <= l.Gradient {
					p, err := l.smallest(w, g)
					if errors.Is(err, errPhase) {
						break
					}
					if err != nil {
						yield(st.End(err))
						return
					}
					if p.Value >= -l.Curvature {
						st.GradNorm, st.Status, st.Claim = d.norm, Converged, l.claim(g, p)
						yield(st, nil)
						return
					}
					d.bend, d.s = -p.Value, p.Vector
					floats.Scale(-1, d.s)
				}
				step, err := rate(l, w, d)
				if l.plan && errors.Is(err, privacy.ErrExhausted) {
					refused = err
					break
				}
				if err != nil {
					yield(st.End(err))
					return
				}
				st.move(w, d.s, -step, d.norm)
				if !yield(st, nil) {
					return
				}
			}
		}
		yield(st.End(refused))
	}
}
