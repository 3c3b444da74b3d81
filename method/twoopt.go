package method

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Phases are those of P4 §3.4: a first one of few steps and little noise, and a second one for as
// many steps as the analysis needs, which goes on from where the first ended.
type Phases struct {
	First int     `yaml:"first" json:"first" doc:"steps T₁ of the first phase (default a tenth of steps; P4 gives no value)"`
	Share float64 `yaml:"share" json:"share" doc:"share of the budget that the first phase may spend (default 0.75)"`

	Early     int     `yaml:"-" json:"early"`      // most Hessians of the first phase
	LateNoise float64 `yaml:"-" json:"late_noise"` // noise multiplier of the second, where the first leaves nothing over
}

const p4Share = 0.75

// fit sets what was left free, after the method's other fields.
func (p *Phases) fit(l *lens, c *Costs, terms Terms, bends float64) error {
	m := l.P4
	switch {
	case p.First < 0 || p.First > m.Steps:
		return fmt.Errorf("first: found %d; allowed is 1 to %d, the steps of the second phase", p.First, m.Steps)
	case !(p.Share >= 0 && p.Share < 1):
		return fmt.Errorf("share: found %v; allowed is any number above 0 and below 1", p.Share)
	case m.Noise != 0:
		return fmt.Errorf("noise_multiplier: found %v; the two phases have one each: allowed is to leave it out", m.Noise)
	}
	if p.First == 0 {
		p.First = (m.Steps + 9) / 10
	}
	if p.Share == 0 {
		p.Share = p4Share
	}
	p.Early = p.First
	if c.Pay == ByFilter {
		p.Early = int(math.Min(bends+1, float64(p.First)))
	}
	if m.Off {
		return nil
	}
	// Gaussian noise and searches cost 1/σ² each, so all of the budget but a share is noise over √share.
	noise, _, err := m.calibrate(terms, l.plan, func(noise float64) privacy.Event { return l.cost(phase{p.First, noise, p.Early}) })
	if err != nil {
		return err
	}
	m.Noise = noise / math.Sqrt(p.Share)
	p.LateNoise, c.Filter, err = m.calibrate(terms, l.plan, func(noise float64) privacy.Event {
		return privacy.Composed{l.cost(p.early(m)), l.cost(p.late(m, c, noise))}
	})
	return err
}

func (p Phases) early(m *P4) phase { return phase{p.First, m.Noise, p.Early} }

func (p Phases) late(m *P4, c *Costs, noise float64) phase { return phase{m.Steps, noise, c.Hessians} }

// phases are the two: what the first leaves in the filter lowers the noise of the second.
func (p Phases) phases(c *Costs) phasing {
	return func(l *lens) (phase, bool) {
		switch l.opened {
		case 0:
			l.tests = p.First + l.Steps
			return p.early(l.P4), true
		case 1:
			return p.late(l.P4, c, p.left(l, c)), true
		}
		return phase{}, false
	}
}

// left is the smallest noise with which the filter still admits all of the second phase, to 1e-6: a
// function of what was charged.
func (p Phases) left(l *lens, c *Costs) float64 {
	if c.Filter == nil {
		return p.LateNoise
	}
	f := *c.Filter
	admits := func(noise float64) bool {
		all := privacy.Composed{l.cost(p.late(l.P4, c, noise))}
		for _, r := range l.charged {
			all = append(all, r)
		}
		meter, err := account.NewMeter(f, nil, privacy.Budget{Epsilon: f.Epsilon, Delta: f.Delta, Adjacency: l.pub.Adjacency})
		return err == nil && meter.Charge(all) == nil
	}
	low, high := p.LateNoise/4, p.LateNoise
	for high/low > 1+1e-6 {
		if mid := math.Sqrt(low * high); admits(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// TwoOPT is 2OPT (P4 §3.4): OPT in two phases; with a batch it is 2OPT-B.
//
// Deviations. What the first phase does not ask for is spent in the second, whose noise is set when it begins, from what was
// charged. The second phase's number of steps counts on the first not having raised F; P4 leaves open what it counts on (S-4g).
type TwoOPT struct {
	OPT
	Phases
}

// Configure sets what is zero.
func (m TwoOPT) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	bends, err := m.OPT.fit(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	if err := m.Phases.fit(m.lens(pub), &m.Costs, terms, bends); err != nil {
		return nil, err
	}
	return m, nil
}

// Plan is the two phases, or the filter.
func (m TwoOPT) Plan(pub oracle.Public) (privacy.Event, error) {
	l := m.lens(pub)
	return m.planned(privacy.Composed{l.cost(m.early(&m.P4)), l.cost(m.late(&m.P4, &m.Costs, m.LateNoise))})
}

// MaxSteps is T₁ + T₂.
func (m TwoOPT) MaxSteps() int { return m.First + m.Steps }

// Run is P4 Algorithm 1 in two phases.
func (m TwoOPT) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, m.phases(&m.Costs))
}

// TwoOPTLS is 2OPT-LS (P4 §3.4): OPTLS in two phases, as TwoOPT is of OPT.
type TwoOPTLS struct {
	OPTLS
	Phases
}

// Configure sets what is zero.
func (m TwoOPTLS) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	bends, err := m.OPTLS.fit(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	if err := m.Phases.fit(m.lens(pub), &m.Costs, terms, bends); err != nil {
		return nil, err
	}
	return m, nil
}

// Plan is the two phases, or the filter.
func (m TwoOPTLS) Plan(pub oracle.Public) (privacy.Event, error) {
	l := m.lens(pub)
	return m.planned(privacy.Composed{l.cost(m.early(&m.P4)), l.cost(m.late(&m.P4, &m.Costs, m.LateNoise))})
}

// MaxSteps is T₁ + T₂.
func (m TwoOPTLS) MaxSteps() int { return m.First + m.Steps }

// Run is P4 Algorithm 3 in two phases.
func (m TwoOPTLS) Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error] {
	return m.run(ctx, o, obj, m.phases(&m.Costs))
}
