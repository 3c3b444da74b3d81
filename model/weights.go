package model

import (
	"fmt"
	"math"
)

// Class weights: the loss of a record of class k is a_k·ℓ, a_k its weight over the largest one. So 0 < a_k ≤ 1, and as
// the factor depends on the record alone, every bound on ℓ, its gradient or its Hessian over all records is one on
// a_k·ℓ: no bound of Facts changes (oracle/private/PROOFS.md#class-weights). Only the ratios of weights matter.

// leastWeight is how much smaller than the largest a weight may be.
const leastWeight = 1e-8

// weigh is the model m whose losses have these weights, one for each class.
func weigh(m Model, name string, weights []float64) (Model, error) {
	facts := m.Facts()
	least, most := math.Inf(1), 0.0
	for _, v := range weights {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("model: %s: a class weight is %v; write finite numbers above 0", name, v)
		}
		least, most = min(least, v), max(most, v)
	}
	if least/most < leastWeight { // both: one of them may be the 1 of a class that was not named
		return nil, fmt.Errorf("model: %s: class weights are from %v to %v; the largest can be at most %g times the least, which is 1 for a class without one", name, least, most, 1/leastWeight)
	}
	a := make([]float64, len(weights))
	for k, v := range weights {
		a[k] = v / most
	}
	facts.Start = math.Inf(1) // depends on the label
	switch m := m.(type) {
	case *glm:
		if m.classes != len(a) {
			break
		}
		with := *m
		with.link, with.facts = weightedLink{m.link, [2]float64(a)}, facts
		return &with, nil
	case *softmax:
		if m.classes != len(a) {
			break
		}
		with := *m
		with.weights, with.facts = a, facts
		return &with, nil
	case *network:
		if m.classes != len(a) {
			break
		}
		with := *m
		with.weights, with.facts = a, facts
		return &with, nil
	default:
		return nil, fmt.Errorf("model: %s has no class weights", name)
	}
	return nil, fmt.Errorf("model: %s: found %d class weights; write one for each class of the label", name, len(a))
}

// A weightedLink is the link of two classes with weights.
type weightedLink struct {
	link
	a [2]float64
}

func (l weightedLink) loss(dst, z, y []float64)  { l.link.loss(dst, z, y); l.times(dst, y) }
func (l weightedLink) slope(dst, z, y []float64) { l.link.slope(dst, z, y); l.times(dst, y) }
func (l weightedLink) curve(dst, z, y []float64) { l.link.curve(dst, z, y); l.times(dst, y) }

func (l weightedLink) times(dst, y []float64) {
	for i, sign := range y {
		if sign > 0 {
			dst[i] *= l.a[1]
		} else {
			dst[i] *= l.a[0]
		}
	}
}

// weight is that of class y of a model with these weights; 1 where it has none.
func weight(weights []float64, y int) float64 {
	if weights == nil {
		return 1
	}
	return weights[y]
}
