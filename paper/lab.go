package paper

import (
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Free is a meter that everything passes: experiments look at public tables, and protect nobody.
type Free privacy.Adjacency

func (f Free) Adjacency() privacy.Adjacency { return privacy.Adjacency(f) }
func (Free) Charge(privacy.Event) error     { return nil }

// Silent is a journal that keeps nothing: an experiment releases nothing of anybody.
type Silent struct{}

func (Silent) Charge(privacy.Event) error { return nil }
func (Silent) Release([][]float64) error  { return nil }

// Normal is about a standard normal number: a sum of twelve uniform ones.
func Normal(src *noise.Source) float64 {
	z := -6.0
	for range 12 {
		z += src.Float64()
	}
	return z
}
