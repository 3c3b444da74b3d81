package main

import (
	"cmp"

	"github.com/sottodp/sotto/model"
)

// Rare is logistic regression in which the second class counts more. Its bounds are those of the model that it is.
type Rare struct {
	Times float64 `yaml:"times" json:"times,omitempty" type:"number above 0" default:"5" doc:"how much more a record of the second class counts"`
}

func (c Rare) New(o model.Options) (model.Model, error) {
	o.Config, o.Weights = nil, []float64{1, cmp.Or(c.Times, 5)}
	m, err := model.New("logistic", o)
	return rare{m}, err
}

type rare struct{ model.Model }

func (rare) Name() string { return "rare" }
