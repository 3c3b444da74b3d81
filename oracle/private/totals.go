package private

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/schema"
)

// Totals answers a charged first release. The line where private becomes public is in released.
func (b *batch) Totals(q oracle.Totals) ([]float64, error) {
	o := b.o
	if err := b.take(q); err != nil {
		return nil, err
	}
	r, err := o.totals(q)
	if err != nil {
		return nil, err
	}
	a := b.memory(q.Len(o.cfg.Facts))
	o.sum = sum.Sum{Of: sum.CellTotals, Unit: r.unit, Totals: q, Numbers: len(a)}
	if err := o.released(a, q.Noise, r, 1); err != nil {
		return nil, err
	}
	width := len(a) / q.Cells
	products, count := q.Products(o.cfg.Facts), o.scale.count(q, o.cfg.Facts)
	for from := 0; from < len(a); from += width {
		cell := a[from : from+width]
		if count != 0 {
			cell[0] /= float64(count) * o.scale.rowUnit
		}
		for k := width - products; k < width; k++ {
			cell[k] /= q.Pairs
		}
	}
	return a, b.answered(a)
}

var errTotals = errors.New("private: the run says that it answers first releases; those are for linear models over rows of float32 numbers of one owner, each row a record")

// checkTotals refuses facts that say that first releases are answered where they are not, or not of these rows.
func (c *Config) checkTotals() error {
	f := c.Facts
	if !f.Totals {
		return nil
	}
	switch {
	case f.UnitRows > 0 || f.Owners > 0 || c.Pool != nil || c.Model.Facts().Unit > 0:
		return errTotals
	case f.Features() != c.Table.Dim:
		return fmt.Errorf("private: the run says that rows have %d features; the table's have %d", f.Features(), c.Table.Dim)
	case f.Cells && !c.Table.Cells:
		return errors.New("private: the run says that rows are cells of histograms; the table's are not")
	case c.Table.NormBound > f.NormBound:
		return fmt.Errorf("private: the table's rows have norms up to %v, the run says %v", c.Table.NormBound, f.NormBound)
	}
	next := 0
	for _, n := range f.Numeric {
		if n.At < next || n.Bumps < 0 || n.Bumps == 1 || n.Waves < 0 {
			return fmt.Errorf("private: the run says that a numeric column has its line at feature %d and %d bumps, which does not follow the columns before it",
				n.At, n.Bumps)
		}
		next = n.At + 1 + n.Bumps + n.Waves
	}
	if first := f.FirstSlot(); f.Slots < 0 || next > first {
		return fmt.Errorf("private: the run says that numeric columns have the features up to %d, and %d pairs those from %d on",
			next, f.Slots, first)
	}
	return nil
}

// count is the weight of a first release's count, in units of the rows' numbers.
func (c *scale) count(q oracle.Totals, facts oracle.Public) int64 {
	return int64(q.Count * facts.NormBound / c.rowUnit)
}

// totaling adds up the sums of a first release: whole numbers of a row times a whole number of shares for each of its
// cells (PROOFS.md#first-release).
type totaling struct {
	q     oracle.Totals
	facts oracle.Public
	of    []int   // the features that products are of
	inv   float64 // 1 / the unit of rows
	count int64   // the weight of the count, in units of rows
	one   int64   // shares of a whole record
	width int     // numbers of a cell
}

func newTotaling(s *sum.Sum, c *scale, facts oracle.Public) *totaling {
	return &totaling{q: s.Totals, facts: facts, of: facts.Paired(), inv: 1 / c.rowUnit, count: c.count(s.Totals, facts),
		one: int64(c.rowUnit / s.Unit), width: s.Numbers / s.Totals.Cells}
}

func (t *totaling) add(u *worker, v data.View) {
	for i := range v.Len() {
		row := v.Row(i)
		if v.Drop != nil && v.Drop[row] {
			continue // keeps its place, weighs nothing (R9)
		}
		cell, shares, ok := 0, [2]int64{t.one}, true
		if t.q.Cells > 1 {
			cell, shares, ok = t.cells(v.Y[row])
		}
		if !ok {
			continue
		}
		col, val := v.Values(row, &u.row)
		f := t.products(u, col, val)
		for k, share := range shares {
			if share != 0 {
				t.addCell(u, u.fall[(cell+k)*t.width:][:t.width], v.Dim, col, val, f, share)
			}
		}
	}
}

// cells returns the first of the two cells that a label is in, and its shares of both, which are not negative and add
// up to one.
func (t *totaling) cells(label float32) (cell int, shares [2]int64, ok bool) {
	y := float64(label)
	if n := t.facts.Classes; n > 0 {
		return int(y), [2]int64{t.one}, y >= 0 && y < float64(n) && y == math.Trunc(y)
	}
	if y != y {
		return 0, shares, false
	}
	x := min(1, max(-1, 2*((y-t.facts.LabelMin)/t.facts.LabelSpan)-1))
	cell, _, right := schema.Bumps(t.q.Cells, x)
	share := min(t.one, max(0, int64(math.Round(right*float64(t.one)))))
	return cell, [2]int64{t.one - share, share}, true
}

// addCell adds a row to the sums of a cell, with the products of its features in u.lines times f.
func (t *totaling) addCell(u *worker, sums []int64, dim int, col []int32, val []float32, f float64, share int64) {
	counts := t.q.Counts()
	if counts > 0 {
		sums[0] += share * t.count
	}
	x := sums[counts:]
	for k, value := range val {
		j := k
		if col != nil {
			j = int(col[k])
		}
		x[j] += share * int64(float64(value)*t.inv)
	}
	p, n := sums[counts+dim:], len(t.of)
	for i, a := range u.lines {
		first := a.at*(2*n-a.at-1)/2 - a.at - 1 // of all products, less the number of the other feature
		for _, b := range u.lines[i+1:] {
			p[first+b.at] += share * int64(f*(a.value*b.value))
		}
	}
}

// products sets u.lines to the features of a row that are not 0 and that products are of, and returns what their
// products are multiplied by before they are rounded toward zero, so that they are no longer than they are in real
// arithmetic.
func (t *totaling) products(u *worker, col []int32, val []float32) (f float64) {
	u.lines = u.lines[:0]
	if t.q.Pairs == 0 {
		return 0
	}
	square := 0.0 // of whole numbers up to 2²⁰, and of norm up to that: exact
	take := func(at int, value float32) {
		if k := math.Trunc(float64(value) * t.inv); k != 0 {
			u.lines = append(u.lines, line{at, k})
			square += k * k
		}
	}
	k := 0 // of val
	for a, at := range t.of {
		if col == nil {
			take(a, val[at])
			continue
		}
		for k < len(col) && int(col[k]) < at {
			k++
		}
		if k < len(col) && int(col[k]) == at {
			take(a, val[k])
		}
	}
	return t.q.Pairs * (1 - 0x1p-40) / math.Sqrt(square)
}

// A feature of a row that products are of, by its number among those, in units of the row's numbers.
type line struct {
	at    int
	value float64
}
