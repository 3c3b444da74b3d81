package main

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// Sign moves every parameter by η along the sign of the noisy gradient.
type Sign struct {
	Steps    int     `yaml:"steps" json:"steps" doc:"number of steps T (default 50)"`
	Rate     float64 `yaml:"rate" json:"rate" doc:"step size η (default 0.1)"`
	Gradient method.Gradient
}

func (m Sign) Configure(pub oracle.Public, _ method.Objective, terms method.Terms) (method.Method, error) {
	if m.Steps == 0 {
		m.Steps = 50
	}
	if m.Rate == 0 {
		m.Rate = 0.1
	}
	if m.Steps < 1 || !(m.Rate > 0) || math.IsInf(m.Rate, 1) {
		return nil, fmt.Errorf("rate: found %v for %d steps; allowed is a number above 0", m.Rate, m.Steps)
	}
	if err := m.Gradient.Configure(pub, terms); err != nil {
		return nil, err
	}
	err := m.Gradient.Calibrate(terms, func(g method.Gradient) privacy.Event { return m.cost(g, pub) })
	return m, err
}

func (m Sign) cost(g method.Gradient, pub oracle.Public) privacy.Event {
	return privacy.Repeated{Count: m.Steps, Of: g.Cost(pub)}
}

func (m Sign) Plan(pub oracle.Public) (privacy.Event, error) { return m.cost(m.Gradient, pub), nil }
func (m Sign) MaxSteps() int                                 { return m.Steps }
func (m Sign) NoiseMultiplier() float64                      { return m.Gradient.Noise }

func (m Sign) Run(ctx context.Context, o oracle.Oracle, obj method.Objective) iter.Seq2[method.Step, error] {
	return func(yield func(method.Step, error) bool) {
		w := o.Public().Start()
		st := method.Step{W: w, Rate: m.Rate}
		noisy := m.Gradient.On(o)
		for t := range m.Steps {
			g, err := noisy.At(ctx, w)
			if err != nil {
				yield(st.End(err))
				return
			}
			obj.AddGradient(g, w)
			for j, v := range g {
				w[j] -= m.Rate * math.Copysign(1, v)
			}
			st.T = t + 1
			if !yield(st, nil) {
				return
			}
		}
		yield(st.End(nil))
	}
}
