package main

import (
	"cmp"
	"context"
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
	m.Steps = cmp.Or(m.Steps, 50)
	err := m.Gradient.ConfigureSteps(pub, terms, &m.Steps,
		method.Number{Name: "rate", Value: &m.Rate, In: method.Positive, Free: 0.1})
	return m, err
}

func (m Sign) Plan(pub oracle.Public) (privacy.Event, error) { return m.Gradient.Plan(pub, m.Steps) }

func (m Sign) Run(ctx context.Context, o oracle.Oracle, obj method.Objective) iter.Seq2[method.Step, error] {
	return m.RunFrom(ctx, o, obj, nil)
}

func (m Sign) RunFrom(ctx context.Context, o oracle.Oracle, obj method.Objective, from *method.Checkpoint) iter.Seq2[method.Step, error] {
	return method.Loop(func(yield func(method.Step) bool) (method.Step, error) {
		w := o.Public().Start()
		st := method.Step{W: w, Rate: m.Rate, Kept: [][]float64{w}}
		var err error
		if st.T, err = from.Into(w); err != nil {
			return st, err
		}
		noisy := m.Gradient.On(o)
		for st.T < m.Steps {
			g, err := noisy.At(ctx, w)
			if err != nil {
				return st, err
			}
			obj.AddGradient(g, w)
			for j, v := range g {
				w[j] -= m.Rate * math.Copysign(1, v)
			}
			if st.T++; !yield(st) {
				return st, nil
			}
		}
		return st, nil
	})
}
