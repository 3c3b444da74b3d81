package private

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
)

var errNotShifted = errors.New("private: means of labels, and gradients at shifted margins, are for models with one margin over rows of numbers")

var errNotCentered = errors.New("private: means of rows, and gradients of rows less a center, are for linear models over rows of numbers")

// Mean answers a charged query of the mean row. The line where private becomes public is in released.
func (b *batch) Mean(q oracle.Mean) ([]float64, error) {
	o := b.o
	if err := b.take(q); err != nil {
		return nil, err
	}
	m := b.memory(o.cfg.Facts.Features())
	o.sum = sum.Sum{Of: sum.Rows, Clip: q.Grad().Clip, W: m}
	if err := o.noisySum(m, q.Grad(), b.size); err != nil {
		return nil, err
	}
	return m, b.answered(m)
}

// splitCenter splits what a gradient is asked at into the parameters and the center, which is nil where q has none.
func (o *Oracle) splitCenter(q oracle.Grad, at []float64) (w, center []float64, err error) {
	if !q.Centered {
		return at, nil, nil
	}
	dim, features := o.cfg.Facts.Dim, o.cfg.Facts.Features()
	if len(at) != dim+features {
		return nil, nil,
			fmt.Errorf("private: found %d parameters and numbers of the center; the model has %d parameters, and rows have %d features", len(at), dim, features)
	}
	return at[:dim], at[dim:], nil
}

// setCenter prepares the workers for gradients at w of rows less m; nil: of rows as they are. It checks that m is as
// the proof of exact sums needs it: whole numbers of the rows' unit, with a norm of at most the bound on rows
// (PROOFS.md#center).
func (s *Local) setCenter(m, w []float64) error {
	s.centered = m != nil
	if m == nil {
		return nil
	}
	t := s.table
	c := model.Center{X: m, Bound: t.NormBound, Margins: s.center.Margins[:0]}
	limit := t.NormBound / t.Unit
	var square float64 // of whole numbers up to 2²⁰: exact
	for _, v := range m {
		k := v / t.Unit
		if !(k >= -limit && k <= limit) || k != math.Trunc(k) {
			return fmt.Errorf("private: a number of the center is no multiple of %v, the unit of rows, within %v", t.Unit,
				t.NormBound)
		}
		if square += k * k; square > limit*limit {
			return fmt.Errorf("private: the center's norm is above %v, the bound on rows", t.NormBound)
		}
	}
	for k := range slices.Chunk(w, len(m)) {
		margin := 0.0
		for j, v := range m {
			margin += v * k[j]
		}
		c.Margins = append(c.Margins, margin)
	}
	if !(t.NormBound >= 0x1p-400 && t.NormBound <= 0x1p400) {
		return fmt.Errorf("private: rows of norm up to %v are not centered", t.NormBound)
	}
	c.Square = square * t.Unit * t.Unit
	s.center = c
	if s.apart != nil && !slices.Equal(s.apartFrom, m) {
		clear(s.apart)
	}
	if s.whole && s.apart == nil && s.table.Dim >= apartDim && s.table.Rows() <= mostApart {
		s.apart = make([]float64, s.table.Rows())
	}
	s.apartFrom = append(s.apartFrom[:0], m...)
	return nil
}

// Norms of rows less a center are kept from pass to pass over all rows: 8 bytes beside the numbers of a row, if those
// are so many, of tables of so many rows at most.
const (
	apartDim  = 16
	mostApart = 1 << 22
)

// lessCenter takes the center, times the sum of all coefficients of a margin, from numbers from number from on: one
// whole number from another, modulo 2⁶⁴ as all sums.
func (s *Local) lessCenter(dst []int64, from int) {
	if !s.centered {
		return
	}
	k, j := from/len(s.center.X), from%len(s.center.X)
	for i := range dst {
		dst[i] -= int64(s.center.X[j]/s.rowUnit) * s.taken[k]
		if j++; j == len(s.center.X) {
			k, j = k+1, 0
		}
	}
}

// addRow adds the rows of v, each scaled down to the clip bound.
func (u *worker) addRow(v data.View) {
	n := v.Len()
	u.norm, u.c = grow(u.norm, n), grow(u.c, n)
	model.RowNorms(u.norm, v, u.s.rule.Norm())
	u.weigh(v)
	model.AddRows(u.acc[:v.Block.Dim], u.c, u.s.unit, v, &u.ws)
}
