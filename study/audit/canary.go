package audit

import (
	"context"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
)

// canaries are synthetic records numbered after the rows of a Summer: the same sampler draws them, and
// the same rule clips their gradients, truncated to the same unit, and the same noise hides them.
type canaries struct {
	sum.Summer
	set       *canarySet
	blank     int      // records after them that have no gradient
	drawing   *drawing // of synthetic tables: what was drawn; nil: is not kept
	fault     fault
	sampling  noise.Source
	own       []int32 // of the sample
	drawn     []int
	silent    bool    // adds up nothing: an owner without records
	gradients bool    // the last sum was of gradients or rows: a canary has those, but no loss
	kept      []int64 // of synthetic tables: other exact sums, of one query
	unit      float64 // of them
}

// Rows implements sum.Summer.
func (c *canaries) Rows() int { return c.Summer.Rows() + len(c.set.In) + c.blank }

// Draw implements sum.Summer.
func (c *canaries) Draw(ctx context.Context, d sum.Draw) error {
	var all bool
	if c.fault.draw != nil {
		c.fault.draw(c, &d)
	}
	if c.drawing != nil {
		c.drawing.note(&d)
	}
	c.own, all = d.Own(c.own, d.From+c.Summer.Rows(), len(c.set.In), &c.sampling)
	c.drawn = c.drawn[:0]
	for i := range len(c.set.In) {
		if all {
			c.drawn = append(c.drawn, i)
		}
	}
	for _, i := range c.own {
		c.drawn = append(c.drawn, int(i))
	}
	if c.fault.twice {
		c.drawn = append(c.drawn, c.drawn...)
	}
	return c.Summer.Draw(ctx, d)
}

// Refine implements oracle.Refiner: directions of canaries have nothing to do with how rows are encoded.
func (c *canaries) Refine(ctx context.Context, choice oracle.Choice) error {
	r, ok := c.Summer.(oracle.Refiner)
	if !ok {
		return oracle.ErrNotRefined
	}
	return r.Refine(ctx, choice)
}

// Sum implements sum.Summer.
func (c *canaries) Sum(ctx context.Context, s *sum.Sum) error {
	if c.silent {
		return nil
	}
	if c.gradients = s.Of == sum.Gradients || s.Of == sum.Rows; c.gradients {
		c.set.Dim = s.Len() // a sum of rows has a number for each feature
		c.set.Sum(s.Unit, s.Clip, c.drawn)
	} else {
		c.unit = s.Unit
	}
	return c.Summer.Sum(ctx, s)
}

// Take implements sum.Summer.
func (c *canaries) Take(dst []int64, from int) {
	if c.silent {
		clear(dst)
		return
	}
	c.Summer.Take(dst, from)
	if c.gradients {
		c.set.Add(dst, from)
	} else if c.drawing != nil {
		c.kept = append(c.kept, dst...)
	}
}

// train trains with the canaries, and returns the number of steps.
func (c *canaries) train(ctx context.Context, t run.Trainer, l *listener) (int, error) {
	if c.fault.train != nil {
		return c.fault.train(ctx, t, c, l)
	}
	_, last, err := t.Train(ctx, func(o *private.Oracle) oracle.Oracle {
		l.Oracle = o
		return l
	})
	return last.T, err
}

// excess is how far a canary's gradient exceeds the clip bound, so that an audit detects a rule that does
// not clip.
const excess = 16

// widest is the largest number of coordinates of a canary's gradient, so that many canaries cost little
// in a large model.
const widest = 64

// A canarySet has the canaries of one run, each with a known gradient in a new direction at every sum.
type canarySet struct {
	In   []bool // which of them take part
	Pull bool   // the others pull the other way, as a replaced record does; otherwise they add nothing
	Key  uint64 // of the directions
	Dim  int    // of the last sum
	// Apart says that no two directions have a coordinate in common; there are at most as many canaries then as each sum
	// has numbers.
	Apart bool

	sums int // so far

	// Of the last sum.
	unit   float64
	length float64 // of a canary's clipped gradient
	whole  float64 // of the same in whole units: what it adds
	sum    []int64
	others []float64 // what the table's rows added
}

// A direction is a vector of ±1 on some coordinates from At on, and 0 elsewhere.
type direction struct {
	At, Width int
	signs     uint64 // a bit for each coordinate: 1 for −1
}

// Dot returns its inner product with v.
func (d *direction) Dot(v []float64) float64 {
	sum := 0.0
	for k, x := range v[d.At : d.At+d.Width] {
		sum += math.Float64frombits(math.Float64bits(x) ^ d.signs>>k<<63)
	}
	return sum
}

// Direction is the direction of the i-th canary at the last sum, given the norm of the sum's sensitivity:
// in the ℓ1 norm one coordinate is the worst case.
func (s *canarySet) Direction(i, norm int) direction {
	d := direction{Width: s.width(norm)}
	x := mix(s.Key ^ mix(uint64(s.sums)<<32|uint64(i)))
	d.At = int(x % uint64(s.Dim-d.Width+1))
	if s.Apart {
		slots := s.Dim / d.Width
		turn := mix(s.Key + uint64(s.sums))
		d.At = int(turn>>32)%(s.Dim-slots*d.Width+1) + (int(turn&0xffffffff)+i)%slots*d.Width
	}
	d.signs = mix(x + 0x9e3779b97f4a7c15)
	return d
}

func (s *canarySet) width(norm int) int {
	switch {
	case norm == 1:
		return 1
	case s.Apart:
		return min(s.Dim/len(s.In), widest)
	}
	return min(s.Dim, widest)
}

// mix is the finalizer of SplitMix64: directions need no secrecy.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Sum sums the clipped gradients of the drawn canaries, in multiples of unit.
func (s *canarySet) Sum(unit float64, rule clip.Rule, drawn []int) {
	s.sums++
	s.unit = unit
	s.sum, s.others = grow(s.sum, s.Dim), grow(s.others, s.Dim)
	clear(s.sum)
	parts := 1 // of a gradient that are clipped by themselves; a canary's may be in any of them
	if r, ok := rule.(clip.PerLayer); ok {
		parts = r.Layers
	}
	norm, weight := make([]float64, parts), make([]float64, parts)
	for i := range norm {
		norm[i] = excess * rule.Bound()
	}
	rule.Weights(weight, norm, nil)
	s.length = weight[0] * norm[0]
	each := s.length
	if rule.Norm() == 2 {
		each /= math.Sqrt(float64(s.width(2)))
	}
	whole := int64(each / unit) // toward zero
	s.whole = s.length / each * float64(whole) * unit
	for _, i := range drawn {
		if !s.In[i] && !s.Pull {
			continue
		}
		d := s.Direction(i, rule.Norm())
		step := whole
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

// exact is a coordinate of the last sum with the table's rows, in multiples of the unit.
func (s *canarySet) exact(j int) int64 { return s.sum[j] + int64(s.others[j]/s.unit) }

// Add adds the last sum, from coordinate from on, to the counts of the table's rows.
func (s *canarySet) Add(counts []int64, from int) {
	for j, v := range counts {
		s.others[from+j] = float64(v) * s.unit
		counts[j] += s.sum[from+j]
	}
}
