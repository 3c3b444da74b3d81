// Package canary holds made-up records for audits: records that are nobody's, each with a known gradient in a fresh direction
// at every look. They go through the door with the rows of a table: drawn by the same sampler, clipped by the same
// rule, truncated to the same unit, summed before the same noise. How well one can tell afterwards which of them
// took part says how much the door gives away.
//
// Only package oracle/private and audits may know of it; a run that trains for use cannot hold one.
package canary

import (
	"math"

	"github.com/sottodp/sotto/privacy/clip"
)

// Excess is how far a canary's gradient is above the clip bound, so that a rule that does not clip is seen.
const Excess = 16

// widest is the most coordinates that a canary's gradient has; so many canaries cost little in a large model.
const widest = 64

// A Set is the canaries of one run. The zero value has none.
type Set struct {
	In   []bool // which of them take part
	Pull bool   // those that do not take part pull the other way, as where a record is replaced, in place of adding nothing
	Key  uint64 // of the directions
	Dim  int    // of the gradients

	looks  int // so far
	others []float64

	// Of the last look.
	unit, length float64
	sum          []int64
}

// Len is the number of canaries, those that do not take part included.
func (s *Set) Len() int { return len(s.In) }

// A Direction is a vector of ±1 on some coordinates from At on, and 0 elsewhere.
type Direction struct {
	At, Width int
	signs     uint64 // a bit for each coordinate: 1 for −1
}

// Dot is its product with v.
func (d *Direction) Dot(v []float64) float64 {
	sum := 0.0
	for k, x := range v[d.At : d.At+d.Width] {
		sum += math.Float64frombits(math.Float64bits(x) ^ d.signs>>k<<63)
	}
	return sum
}

// Direction of the i-th canary at the last look, for a sum whose sensitivity is of that norm: in the ℓ1 norm one coordinate is the worst
// that a record can do.
func (s *Set) Direction(i, norm int) Direction {
	d := Direction{Width: min(s.Dim, widest)}
	if norm == 1 {
		d.Width = 1
	}
	x := mix(s.Key ^ mix(uint64(s.looks)<<32|uint64(i)))
	d.At = int(x % uint64(s.Dim-d.Width+1))
	d.signs = mix(x + 0x9e3779b97f4a7c15)
	return d
}

// mix is the finaliser of SplitMix64: directions need no secrecy.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Sum is the sum of the clipped gradients of the drawn canaries, in multiples of unit; Add adds it to the counts of the table's rows.
func (s *Set) Sum(unit float64, rule clip.Rule, drawn []int) {
	s.looks++
	s.unit = unit
	s.sum, s.others = grow(s.sum, s.Dim), grow(s.others, s.Dim)
	clear(s.sum)
	parts := 1 // of a gradient that are clipped by themselves; a canary's may be in any of them
	if r, ok := rule.(clip.PerLayer); ok {
		parts = r.Layers
	}
	norm, weight := make([]float64, parts), make([]float64, parts)
	for i := range norm {
		norm[i] = Excess * rule.Bound()
	}
	rule.Weights(weight, norm, nil)
	s.length = weight[0] * norm[0]
	for _, i := range drawn {
		if !s.In[i] && !s.Pull {
			continue
		}
		d := s.Direction(i, rule.Norm())
		each := s.length
		if rule.Norm() == 2 {
			each /= math.Sqrt(float64(d.Width))
		}
		step := int64(each / unit) // toward zero
		if !s.In[i] {
			step = -step
		}
		for k := range d.Width {
			s.sum[d.At+k] += step * (1 - 2*int64(d.signs>>k&1))
		}
	}
}

func grow[T any](s []T, n int) []T {
	if len(s) != n {
		return make([]T, n)
	}
	return s
}

// Add adds what Sum has found to the counts of the table's rows, from coordinate number from on.
func (s *Set) Add(counts []int64, from int) {
	for j, v := range counts {
		s.others[from+j] = float64(v) * s.unit
		counts[j] += s.sum[from+j]
	}
}

// Others is what the table's rows added to the last sum.
func (s *Set) Others() []float64 { return s.others }

// Length is the norm of a canary's clipped gradient at the last look.
func (s *Set) Length() float64 { return s.length }
