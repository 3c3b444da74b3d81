package method

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// Phases are those of P4 §3.4: a first one of few steps and little noise, and a second one for as many steps
// as the analysis needs, which continues where the first ended.
type Phases struct {
	First int     `yaml:"first" json:"first" doc:"steps T₁ of the first phase (default a tenth of steps; P4 gives no value)"`
	Share float64 `yaml:"share" json:"share" doc:"share of the budget that the first phase may spend (default 0.75)"`

	Early     int     `yaml:"-" json:"early"`      // most Hessians of the first phase
	LateNoise float64 `yaml:"-" json:"late_noise"` // noise multiplier of the second, where the first leaves nothing over
}

const p4Share = 0.75

// configure sets what is free, after the method's other fields.
func (p *Phases) configure(m *P4, c *Costs, q secondorder.Queries, terms Terms, bends float64) error {
	switch {
	case p.First < 0 || p.First > m.Steps:
		return fmt.Errorf("first: found %d; write a whole number from 1 to %d, the steps of the second phase", p.First,
			m.Steps)
	case !(p.Share >= 0 && p.Share < 1):
		return fmt.Errorf("share: found %v; choose a number above 0 and below 1", p.Share)
	case m.Noise != 0:
		return fmt.Errorf("noise_multiplier: found %v; leave it out, as the two phases have one each", m.Noise)
	}
	p.First, p.Share = cmp.Or(p.First, (m.Steps+9)/10), cmp.Or(p.Share, p4Share)
	p.Early = p.First
	if c.Pay == ByFilter {
		p.Early = int(math.Min(bends+1, float64(p.First)))
	}
	// Gaussian noise and searches cost 1/σ² each, so all of the budget but a share is noise over √share.
	err := c.calibrate(&m.Noise, terms, func(noise float64) privacy.Event {
		return q.Cost(secondorder.Phase{Steps: p.First, Noise: noise, Hessians: p.Early})
	})
	m.Noise /= math.Sqrt(p.Share)
	if err == nil {
		err = c.calibrate(&p.LateNoise, terms, func(noise float64) privacy.Event {
			with := *p
			with.LateNoise = noise
			return q.Cost(with.phases(m, c)...)
		})
	}
	return err
}

// phases are the two. In a filter the second has less noise: it may spend what the first left.
func (p Phases) phases(m *P4, c *Costs) []secondorder.Phase {
	return []secondorder.Phase{{Steps: p.First, Noise: m.Noise, Hessians: p.Early}, m.phase(p.LateNoise, c.Hessians)}
}

// TwoOPT is 2OPT (P4 §3.4): OPT in two phases; with a batch it is 2OPT-B.
//
// Deviations. The second phase may use the budget that the first left: its noise is set when it begins,
// from what was charged. Its number of steps counts on the first not having raised F; P4 leaves open what
// it counts on (S-4g).
type TwoOPT struct {
	OPT
	Phases
}

// Configure sets what is zero.
func (m TwoOPT) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	bends, err := m.OPT.configure(pub, obj, terms)
	if err == nil {
		err = m.Phases.configure(&m.P4, &m.Costs, m.queries(pub), terms, bends)
	}
	return m, err
}

// Plan is the two phases, or the filter.
func (m TwoOPT) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.plan(m.queries(pub).Cost(m.phases(&m.P4, &m.Costs)...))
}

// MaxSteps is T₁ + T₂.
func (m TwoOPT) MaxSteps() int { return m.First + m.Steps }

// Run is P4 Algorithm 1 in two phases.
func (m TwoOPT) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, m.phases(&m.P4, &m.Costs)...)
}

// TwoOPTLS is 2OPT-LS (P4 §3.4): OPTLS in two phases, as TwoOPT is of OPT.
type TwoOPTLS struct {
	OPTLS
	Phases
}

// Configure sets what is zero.
func (m TwoOPTLS) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	bends, err := m.OPTLS.configure(pub, obj, terms)
	if err == nil {
		err = m.Phases.configure(&m.P4, &m.Costs, m.queries(pub), terms, bends)
	}
	return m, err
}

// Plan is the two phases, or the filter.
func (m TwoOPTLS) Plan(pub oracle.Public) (privacy.Event, error) {
	return m.plan(m.queries(pub).Cost(m.phases(&m.P4, &m.Costs)...))
}

// MaxSteps is T₁ + T₂.
func (m TwoOPTLS) MaxSteps() int { return m.First + m.Steps }

// Run is P4 Algorithm 3 in two phases.
func (m TwoOPTLS) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, m.phases(&m.P4, &m.Costs)...)
}
