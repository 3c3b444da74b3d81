package private

import (
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// hessTile is the least rows that are evaluated at once for a Hessian.
const hessTile = 64

// curvature is what a Hessian query sums.
type curvature struct {
	w    []float64
	clip clip.Rule
	unit float64 // of a record's vector; its square is that of the sum
}

// hessSum is a worker's part of it.
type hessSum struct {
	acc    []float64 // exact sum of up to data.BlockRows rows, as kern.Gram leaves it
	filled int       // rows in acc
	counts []int64   // the sum so far: the upper triangle row after row
	norm   []float64
	c      []float64
}

// Hess answers a charged Hessian query. The line where private becomes public is the call of q.Noise.Add.
func (b *batch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	o := b.o
	if err := b.takeAt(q, w); err != nil {
		return nil, err
	}
	r, err := o.hessians(q.Clip, b.both)
	if err != nil {
		return nil, err
	}
	o.sum = sum.Sum{Of: sum.Hessians, Unit: r.unit, Clip: clip.Lipschitz{L: q.Clip}, W: w}
	if q.Off {
		r.grid, r.shift = r.unit*r.unit, 0
	}
	part := func() ([]int64, error) {
		counts, err := o.take(&o.sum)
		if err == nil {
			mech.RoundShift(counts, r.shift)
		}
		return counts, err
	}
	var counts []int64
	if o.cfg.Pool != nil {
		counts, err = b.total(q, r, o.sum.Len(), part)
	} else if counts, err = part(); err == nil && !q.Off {
		err = q.Noise.Add(counts, r.grid, r.sens, &o.noise)
	}
	if err != nil {
		return nil, err
	}
	h := b.memory(len(counts))
	for j, v := range counts {
		h[j] = float64(v<<r.shift>>r.shift) * r.grid / b.size // modulo: see noisySum
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
		if u.hess.acc == nil {
			u.hess.acc, u.hess.counts = kern.Aligned(side*side), make([]int64, oracle.HessLen(dim))
			u.hess.norm, u.hess.c = make([]float64, s.tile), make([]float64, s.tile)
		}
		u.hess.filled = 0
		clear(u.hess.acc)
		clear(u.hess.counts)
	}
	users := s.run()
	s.tile, s.tally = tile, nil
	counts := users[0].hess.counts
	users[0].flushHess()
	for _, u := range users[1:] {
		u.flushHess()
		for j, v := range u.hess.counts {
			counts[j] += v
		}
	}
	return counts
}

func (q *curvature) add(u *worker, v data.View) {
	n, b := v.Len(), &u.hess
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
	b, dim := &u.hess, u.s.model.Dim()
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
