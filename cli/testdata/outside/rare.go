package main

import "github.com/sottodp/sotto/model"

// rare is logistic regression in which the second class counts five times. Its bounds are those of the model that it is.
type rare struct{ model.Model }

func newRare(o model.Options) (model.Model, error) {
	o.Weights = []float64{1, 5}
	m, err := model.New("logistic", o)
	return rare{m}, err
}

func (rare) Name() string { return "rare" }
