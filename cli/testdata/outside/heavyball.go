package main

import (
	"cmp"
	"context"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// HeavyBall is distributed gradient descent with momentum: v ← βv + ζ, x ← Σ_j w_ij x_j − ηv.
type HeavyBall struct {
	method.Gradient
	Rate     float64 `yaml:"rate" json:"rate" doc:"step size η (default 0.1)"`
	Momentum float64 `yaml:"momentum" json:"momentum" doc:"β (default 0.5)"`
}

// as is a method with the same queries in that many activations.
func (m HeavyBall) as(activations int) method.SGD {
	return method.SGD{Steps: activations, Rate: 1, Gradient: m.Gradient}
}

func (m HeavyBall) Configure(pub oracle.Public, obj method.Objective, _ *gossip.Schedule, activations int, terms method.Terms) (gossip.Method, error) {
	m.Rate, m.Momentum = cmp.Or(m.Rate, 0.1), cmp.Or(m.Momentum, 0.5)
	set, err := m.as(activations).Configure(pub, obj, terms)
	if err != nil {
		return nil, err
	}
	m.Gradient = set.(method.SGD).Gradient
	return m, nil
}

func (m HeavyBall) Plan(pub oracle.Public, activations int) (privacy.Event, error) {
	return m.as(activations).Plan(pub)
}

func (m HeavyBall) NoiseMultiplier() float64 { return m.Noise }

func (m HeavyBall) Run(ctx context.Context, at gossip.Node, o oracle.Oracle, obj method.Objective, watch gossip.Watch) ([]float64, error) {
	x := make([]float64, o.Public().Dim)
	v := make([]float64, len(x))
	noisy := m.Gradient.On(o)
	for act := range at.Schedule.Activations(at.Index) {
		g, err := noisy.At(ctx, x)
		if err != nil {
			return nil, err
		}
		obj.AddGradient(g, x)
		if err := at.Mixer.Mix(ctx, at.Index, act, x); err != nil {
			return nil, err
		}
		for j := range x {
			v[j] = m.Momentum*v[j] + g[j]
			x[j] -= m.Rate * v[j]
		}
		if watch != nil {
			watch(act.T, func(dst []float64) { copy(dst, x) })
		}
	}
	return x, nil
}
