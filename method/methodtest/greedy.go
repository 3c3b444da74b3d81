package methodtest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// Greedy is an adversary among methods: it asks for one gradient after the other, each time with
// less noise if the last answer points one way, and never has enough. What it spends
// depends on what was released, so its plan is a filter, and only a refusal ends it.
type Greedy struct {
	Steps  int              `yaml:"steps" json:"steps" doc:"most gradients (default 100000)"`
	Batch  int              `yaml:"batch" json:"batch" doc:"expected size of a Poisson sample (default: all rows)"`
	More   float64          `yaml:"more" json:"more" doc:"factor from one noise to the next (default 0.97)"`
	Noise  float64          `yaml:"noise" json:"noise" doc:"first noise multiplier (default: that of 20 equal gradients)"`
	Filter privacy.Filtered `yaml:"-" json:"filter"`
}

// Configure chooses the filter and the first noise.
func (m Greedy) Configure(pub oracle.Public, _ method.Objective, terms method.Terms) (method.Method, error) {
	if m.Steps == 0 {
		m.Steps = 100_000
	}
	if m.More == 0 {
		m.More = 0.97
	}
	if terms.Off {
		return nil, errors.New("privacy: an adversary needs a budget")
	}
	twenty := func(noise float64) privacy.Event {
		return privacy.Repeated{Count: 20,
			Of: pub.Cost(m.sampler(pub), []oracle.Query{m.query(noise, terms.Budget.Delta == 0)})}
	}
	var err error
	if m.Noise == 0 {
		m.Noise, m.Filter, err = account.CalibrateFilter(terms.Budget, twenty)
	} else {
		m.Filter, _, err = account.ChooseFilter(twenty(m.Noise), terms.Budget)
	}
	if err != nil {
		return nil, fmt.Errorf("noise: %w", err)
	}
	return m, nil
}

func (m Greedy) sampler(pub oracle.Public) sample.Sampler {
	if m.Batch == 0 {
		return sample.Full{}
	}
	return sample.Poisson{Rate: float64(m.Batch) / float64(pub.Rows)}
}

func (m Greedy) query(noise float64, pure bool) oracle.Grad {
	if pure {
		return oracle.Grad{Clip: clip.Norm{P: 1, C: 1}, Noise: mech.Laplace{Scale: noise}}
	}
	return oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: noise}}
}

// Plan is the filter.
func (m Greedy) Plan(oracle.Public) (privacy.Event, error) { return m.Filter, m.Filter.Validate() }

// Run asks until it is refused.
func (m Greedy) Run(ctx context.Context, o oracle.Oracle, _ method.Objective) iter.Seq2[method.Step, error] {
	return method.Loop(func(yield func(method.Step) bool) (method.Step, error) {
		w := make([]float64, o.Public().Dim)
		st := method.Step{W: w, Rate: 0.01}
		noise := m.Noise
		for st.T < m.Steps {
			q := m.query(noise, m.Filter.Delta == 0)
			b, err := o.Batch(ctx, m.sampler(o.Public()), q)
			if err != nil {
				return st, err
			}
			g, err := b.Grad(q, w)
			if err != nil {
				return st, err
			}
			for j := range w {
				w[j] -= st.Rate * g[j]
			}
			if g[0] > 0 {
				noise *= m.More
			}
			if st.T++; !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
