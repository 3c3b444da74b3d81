package plan

import (
	"errors"
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// An Opinion is one accountant's result for the plan.
type Opinion struct {
	Accountant string   `json:"accountant"`
	Epsilon    *float64 `json:"epsilon"`
	Why        string   `json:"why,omitempty"` // why it says nothing
}

// Compare asks the other accountants, and about the other neighboring relation.
func (p *Plan) Compare() {
	for _, name := range account.Names() {
		if a, err := account.ByName(name); err == nil {
			p.Accountants = append(p.Accountants, ask(a, p.event, p.Adjacency, p.Delta))
		}
	}
	p.OtherRelation = p.otherRelation()
}

func ask(a account.Accountant, e privacy.Event, adj privacy.Adjacency, delta float64) Opinion {
	o := Opinion{Accountant: a.String()}
	loss, err := a.Loss(e, adj)
	var unsupported *account.UnsupportedError
	switch {
	case errors.As(err, &unsupported) && a == account.Accountant(account.Best{}):
		o.Why = "finds no theorem for it by any accountant"
	case errors.As(err, &unsupported):
		o.Why = fmt.Sprintf("has no theorem for %v: %s", unsupported.Event, unsupported.Why)
	case err != nil:
		o.Why = err.Error()
	default:
		o.Epsilon = finite(loss.Epsilon(delta))
	}
	return o
}

// A Relation is what the plan would cost under the other neighboring relation.
type Relation struct {
	Adjacency       privacy.Adjacency `json:"adjacency"`
	NoiseMultiplier float64           `json:"noise_multiplier,omitempty"` // 0: as the plan's, none or several
	Sampler         string            `json:"sampler,omitempty"`          // what the samples had to become
	Opinion

	Translated bool `json:"-"` // the plan has a counterpart under this relation
}

// otherSampler is e with samples that have a theorem under the other relation: fixed
// samples become Poisson ones of that mean size under add-or-remove. change describes
// the replacement and is empty if there was none. Clipped sums on Poisson samples state both moves under
// replace-one alone.
func otherSampler(e privacy.Event, to privacy.Adjacency) (other privacy.Event, change string) {
	other = privacy.Map(e, func(e privacy.Event) privacy.Event {
		switch e := e.(type) {
		case privacy.FixedSampled:
			if to == privacy.AddRemove {
				change = "Poisson samples of that size on average"
				return privacy.PoissonSampled{Rate: float64(e.M) / float64(e.N), Of: e.Of}
			}
		case privacy.GaussianSum: // with as much more noise as the sensitivity is less
			return privacy.Gaussian{Sigma: e.Presence / 2}
		case privacy.PoissonSampled:
			if to == privacy.ReplaceOne && e.Rate < 1 {
				e.Of = privacy.Map(e.Of, func(e privacy.Event) privacy.Event {
					if g, ok := e.(privacy.Gaussian); ok {
						return privacy.GaussianSum{Presence: 2 * g.Sigma, Replacement: g.Sigma}
					}
					return e
				})
				return e
			}
		}
		return e
	})
	return other, change
}

// otherRelation keeps the noise as it is, in units of the clip norm: the sensitivity of
// a clipped sum is C under add-or-remove and 2C under replace-one (R8).
func (p *Plan) otherRelation() *Relation {
	r := &Relation{Adjacency: privacy.ReplaceOne}
	times := 0.5
	if p.Adjacency == privacy.ReplaceOne {
		r.Adjacency, times = privacy.AddRemove, 2
	}
	if _, ok := p.event.(privacy.Filtered); ok {
		r.Opinion = Opinion{Accountant: p.Accountant,
			Why: "is the budget there, too: a filter admits whatever fits, and the other sensitivity changes only how much that is"}
		return r
	}
	onlySums := true
	privacy.Rebuild(p.event, "", func(_ string, m privacy.Event) privacy.Event {
		switch m.(type) {
		case privacy.Gaussian, privacy.GaussianSum, privacy.Laplace, privacy.AboveThreshold:
		default:
			onlySums = false
		}
		return m
	})
	if !onlySums {
		r.Opinion = Opinion{Accountant: p.Accountant,
			Why: "is not known: the plan has releases other than noisy sums, and does not state their sensitivity under that relation"}
		return r
	}
	e, _ := privacy.WithNoise(p.event, times)
	r.NoiseMultiplier, r.Translated = p.NoiseMultiplier*times, true
	e, r.Sampler = otherSampler(e, r.Adjacency)
	r.Opinion = ask(p.accountant, e, r.Adjacency, p.Delta)
	return r
}
