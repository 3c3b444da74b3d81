// Package plan says what a run would cost, or which noise a budget needs, from public numbers
// alone. It knows no rows and no files: a plan is made of a method and the public description of a
// problem (For), or of numbers (Numbers.Plan), and answers are values that print as JSON.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// A Plan is what a run would release, and what that costs.
type Plan struct {
	Epsilon         float64           `json:"epsilon"`
	Delta           float64           `json:"delta"`
	Adjacency       privacy.Adjacency `json:"adjacency"`
	Accountant      string            `json:"accountant"`
	NoiseMultiplier float64           `json:"noise_multiplier"` // 0: each step has its own
	Sampler         string            `json:"sampler"`
	SamplingRate    float64           `json:"sampling_rate"`
	Batch           int               `json:"batch,omitempty"`     // exact size of a fixed sample
	Rows            int               `json:"rows,omitempty"`      // of a spec: units, where a record is one
	Unit            string            `json:"unit,omitempty"`      // of a spec: as in run.json
	UnitRows        int               `json:"unit_rows,omitempty"` // likewise
	Steps           int               `json:"steps"`
	Solved          string            `json:"solved,omitempty"` // the number that was left out
	Event           json.RawMessage   `json:"event"`
	Budget          *float64          `json:"budget,omitempty"` // ε asked for
	Fits            *bool             `json:"fits,omitempty"`
	WhatIf          []WhatIf          `json:"what_if,omitempty"`
	Dominates       []string          `json:"dominates,omitempty"`
	Parts           []Part            `json:"parts,omitempty"`
	Accountants     []Opinion         `json:"accountants,omitempty"`
	OtherRelation   *Relation         `json:"other_relation,omitempty"`
	Growth          *Growth           `json:"growth,omitempty"`
	Claimed         *Claims           `json:"claimed,omitempty"`
	// of owners who add up masked sums; Epsilon is against the hub and Colluders of them
	Sum      *account.Shares `json:"sum,omitempty"`
	Needs    Needs           `json:"needs,omitzero"` // of a spec whose needs are large
	Warnings []string        `json:"warnings,omitempty"`
	// The bound by Gaussian DP, and the curve of the plan; nil and a reason where no theorem gives one.
	GDP     *account.GaussianBound `json:"gdp,omitempty"`
	Attacks []account.Attack       `json:"attacks,omitempty"`

	event      privacy.Event
	accountant account.Accountant
	noGDP      error
}

// For plans a run of a configured method on a problem of which pub is public.
func For(m method.Method, pub oracle.Public, b privacy.Budget, a account.Accountant) (*Plan, error) {
	e, err := m.Plan(pub)
	if err != nil {
		return nil, err
	}
	return planned(e, m, pub, b, a)
}

// ForSum plans the same run of owners who add up masked sums; e is what they release together.
func ForSum(e privacy.Event, m method.Method, pub oracle.Public, b privacy.Budget,
	a account.Accountant) (*Plan, error) {
	p, err := planned(e, m, pub, b, a)
	if err != nil {
		return nil, err
	}
	p.Sum = account.SharesOf(e, a, b.Adjacency, b.Delta)
	return p, nil
}

func planned(e privacy.Event, m method.Method, pub oracle.Public, b privacy.Budget,
	a account.Accountant) (*Plan, error) {
	p := &Plan{Delta: b.Delta, Adjacency: b.Adjacency, NoiseMultiplier: method.NoiseMultiplier(m),
		Steps: method.MaxSteps(m),
		Rows:  pub.Rows, UnitRows: pub.UnitRows, Budget: &b.Epsilon, event: e, accountant: a}
	p.Sampler, p.SamplingRate, p.Batch = samplerOf(e)
	return p, p.solve()
}

// samplerOf reads the sampler off a plan whose steps all have the same one.
func samplerOf(e privacy.Event) (sampler string, rate float64, batch int) {
	type drawn struct {
		sampler string
		rate    float64
		batch   int
	}
	all := privacy.Fold(e, func(e privacy.Event, inside []drawn) drawn {
		switch e := e.(type) {
		case privacy.Filtered:
			return drawn{"chosen on the way", 1, 0}
		case privacy.PoissonSampled:
			return drawn{"poisson", e.Rate, 0}
		case privacy.FixedSampled:
			return drawn{"fixed", float64(e.M) / float64(e.N), e.M}
		case privacy.Allocated:
			return drawn{"allocation", 1 / float64(e.Batches), 0}
		}
		if len(inside) == 0 {
			return drawn{"full", 1, 0}
		}
		if inside = slices.Compact(inside); len(inside) == 1 {
			return inside[0]
		}
		return drawn{"several", 1, 0}
	})
	return all.sampler, all.rate, all.batch
}

// solve computes ε and what changes it from the event.
func (p *Plan) solve() error {
	p.Accountant = p.accountant.String()
	loss, err := p.accountant.Loss(p.event, p.Adjacency)
	if err != nil {
		return err
	}
	p.Epsilon = loss.Epsilon(p.Delta)
	if math.IsInf(p.Epsilon, 1) {
		return fmt.Errorf("accountant %s proves no finite ε at δ = %v for this plan", p.Accountant, p.Delta)
	}
	if p.Budget != nil {
		fits := p.Epsilon <= *p.Budget
		p.Fits = &fits
	}
	if p.Event, err = privacy.MarshalEvent(p.event); err != nil {
		return err
	}
	var curve *account.TradeOff
	if curve, p.noGDP = account.NewTradeOff(loss, p.Delta); p.noGDP == nil {
		p.GDP, p.Attacks = &curve.GaussianBound, curve.Attacks()
	}
	p.weigh()
	return nil
}

// Unprovable explains the error of an accountant that has no theorem for a plan, nil for other
// errors. Where best finds nothing, RDP's reason stands for all: it has the most theorems.
func Unprovable(err error) error {
	var all, why *account.UnsupportedError
	if !errors.As(err, &all) {
		return nil
	}
	if all.Accountant == (account.Best{}).String() {
		if _, err := (account.RDP{}).Loss(all.Event, all.Adjacency); errors.As(err, &why) {
			return fmt.Errorf("no accountant has a theorem for %v under %v: %s", all.Event, all.Adjacency, why.Why)
		}
	}
	return err
}

// epsilon is the cost of an event at the plan's δ by the plan's accountant.
func (p *Plan) epsilon(e privacy.Event) float64 { return p.epsilonAt(e, p.Delta) }

// epsilonAt is the same at another δ; +Inf where the accountant proves nothing.
func (p *Plan) epsilonAt(e privacy.Event, delta float64) float64 {
	loss, err := p.accountant.Loss(e, p.Adjacency)
	if err != nil {
		return math.Inf(1)
	}
	return loss.Epsilon(delta)
}

// finite is a pointer to a number that JSON can hold, nil for others.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}
