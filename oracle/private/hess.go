package private

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// rootBits are the binary digits of a record's vector v below √C: its Hessian is v·vᵀ. Two
// of them, and data.BlockRows rows, fit the 53 of a float64.
const rootBits = 20

// hessTile is the least rows that are evaluated at once for a Hessian.
const hessTile = 64

// curvature is what a Hessian query sums.
type curvature struct {
	w    []float64
	clip clip.Rule
	unit float64 // of a record's vector; its square is that of the sum
}

// bend is a worker's part of it.
type bend struct {
	acc    []float64 // exact sum of up to data.BlockRows rows, as kern.Gram leaves it
	filled int       // rows in acc
	counts []int64   // the sum so far: the upper triangle row after row
	norm   []float64
	c      []float64
}

// rootUnit is the public power of two to which a record's vector is rounded: √C is
// from 2²⁰ to 2²¹ of them. For very many rows they are fewer, so that the count of an entry
// stays below 2⁶³ even for eight times the nominal rows, each with all its norm there. Above that counts wrap
// around, as those of gradients do: see coefUnit.
func rootUnit(bound float64, rows int) float64 {
	_, exp := math.Frexp(math.Sqrt(bound))
	bits := rootBits - max(0, (int(math.Ceil(math.Log2(float64(rows))))-18+1)/2)
	return math.Ldexp(1, exp-1-bits)
}

// hessUnit is the unit of the sum and the grid of its release.
func (o *Oracle) hessUnit(q oracle.Hess) (unit, grid float64) {
	unit = rootUnit(q.Clip, o.cfg.Facts.Rows)
	return unit, gridOf(unit*unit, q.Clip, o.cfg.Facts.Dim*o.cfg.Facts.Dim, 2)
}

// hessSensitivity is that of the sum in the Frobenius norm, rounded to the grid: the one
// place where R16 is applied. Records' Hessians are v·vᵀ, positive semidefinite and of norm C at most,
// so one more or less moves the sum by C. For one replaced, ‖A − B‖² = ‖A‖² + ‖B‖² −
// 2·tr(AB) ≤ 2C², since tr(AB) ≥ 0 for such A and B.
func (o *Oracle) hessSensitivity(q oracle.Hess, grid float64) (float64, error) {
	s, err := clip.Sensitivity(q.Clip, o.cfg.Facts.Adjacency)
	if err == nil && o.cfg.Facts.Adjacency == privacy.ReplaceOne {
		s = math.Nextafter(q.Clip*math.Sqrt2, math.Inf(1)) // math.Sqrt2 as a float64 is above √2
	}
	dim := o.cfg.Facts.Dim
	return s + mech.Slack(grid, dim*dim, 2), err
}

// fitsHess checks, from public values alone, that the model has such Hessians and that units and noise
// are numbers that a float64 and an int64 hold.
func (o *Oracle) fitsHess(q oracle.Hess) error {
	if !o.cfg.Model.Facts().Curved {
		return fmt.Errorf("private: the model %s has no Hessians of rank one and without kinks, which is what a Hessian query needs", o.cfg.Model.Name())
	}
	if dim := o.cfg.Facts.Dim; dim > oracle.MaxHess {
		return fmt.Errorf("private: a Hessian of %d parameters; allowed are at most %d", dim, oracle.MaxHess)
	}
	unit, grid := o.hessUnit(q)
	if !(unit >= 0x1p-450 && unit <= 0x1p450) {
		return fmt.Errorf("private: the clip bound %v of a Hessian is out of range", q.Clip)
	}
	if q.Off {
		return nil
	}
	sens, err := o.hessSensitivity(q, grid)
	if err != nil {
		return err
	}
	return q.Noise.Check(grid, sens)
}

// Hess answers a paid Hessian query. The line where private becomes public is the call of
// q.Noise.Add.
func (b *batch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	o := b.o
	if len(w) != o.cfg.Facts.Dim {
		return nil, fmt.Errorf("private: %d parameters given, the model has %d", len(w), o.cfg.Facts.Dim)
	}
	if err := b.take(q); err != nil {
		return nil, err
	}
	unit, grid := o.hessUnit(q)
	o.sum = Sum{Of: Hessians, Unit: unit, Clip: clip.Lipschitz{L: q.Clip}, W: w}
	counts, err := o.take(&o.sum)
	if err != nil {
		return nil, err
	}
	var shift uint
	if q.Off {
		grid = unit * unit
	} else {
		sens, err := o.hessSensitivity(q, grid)
		if err != nil {
			return nil, err
		}
		shift = shiftOf(unit*unit, grid)
		mech.RoundShift(counts, shift)
		if err := q.Noise.Add(counts, grid, sens, &o.noise); err != nil {
			return nil, err
		}
	}
	h := b.memory(len(counts))
	for j, v := range counts {
		h[j] = float64(v<<shift>>shift) * grid / b.size // modulo: see noisySum
	}
	return h, b.answered(h)
}

// hessian returns the exact sum over the named rows as counts of the squared unit, the
// upper triangle row after row. The slice belongs to a worker.
func (s *Local) hessian(c *curvature, rows []int32, all bool) []int64 {
	dim := s.model.Dim()
	side := kern.Padded(dim)
	tile := s.tile
	s.tile = min(data.BlockRows, max(tile, hessTile))
	s.tally, s.rows, s.all = c, rows, all
	for _, u := range s.workers {
		if u.bend.acc == nil {
			u.bend.acc, u.bend.counts = kern.Aligned(side*side), make([]int64, oracle.HessLen(dim))
			u.bend.norm, u.bend.c = make([]float64, s.tile), make([]float64, s.tile)
		}
		u.bend.filled = 0
		clear(u.bend.acc)
		clear(u.bend.counts)
	}
	users := s.run()
	s.tile, s.tally = tile, nil
	counts := users[0].bend.counts
	users[0].flushHess()
	for _, u := range users[1:] {
		u.flushHess()
		for j, v := range u.bend.counts {
			counts[j] += v
		}
	}
	return counts
}

func (q *curvature) add(u *worker, v data.View) {
	n, b := v.Len(), &u.bend
	if b.filled+n > data.BlockRows {
		u.flushHess()
	}
	b.filled += n
	norm, c := b.norm[:n], b.c[:n]
	pass := u.s.model.Eval(q.w, v, &u.ws).(model.CurvedPass)
	pass.HessNorm(norm)
	q.clip.Weights(c, norm, nil)
	if v.Drop != nil {
		for i := range c {
			if v.Drop[v.Row(i)] {
				c[i] = 0 // keeps its place, weighs nothing (R9)
			}
		}
	}
	u.scale(c, v)
	pass.AddHess(b.acc, c, q.unit)
}

// flushHess moves the exact partial sum from acc to counts.
func (u *worker) flushHess() {
	b, dim := &u.bend, u.s.model.Dim()
	if b.filled == 0 {
		return
	}
	side, at := kern.Padded(dim), 0
	for i := range dim {
		for _, v := range b.acc[i*side+i : i*side+dim] {
			b.counts[at] += int64(v) // wraps: see noisySum
			at++
		}
	}
	clear(b.acc)
	b.filled = 0
}
