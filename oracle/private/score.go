package private

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
)

// Score answers a charged score. The line where private becomes public is the call of Add.
func (b *batch) Score(q oracle.Score, w []float64) ([]float64, error) {
	o := b.o
	if err := b.takeAt(q, w); err != nil {
		return nil, err
	}
	r := o.cells(q)
	o.sum = sum.Sum{Of: sum.Scores, Unit: r.unit, Score: q, Classes: o.cfg.Facts.Classes, W: w}
	counts, err := o.take(&o.sum)
	if err != nil {
		return nil, err
	}
	if err := q.Noise.Add(counts, r.grid, r.sens, &o.noise); err != nil {
		return nil, err
	}
	a := b.memory(len(counts))
	for k, v := range counts {
		a[k] = float64(v) * r.grid
		if o.cfg.Facts.Classes == 0 {
			a[k] /= oracle.ErrorWeights[k%oracle.ErrorSums] // a power of two
		}
	}
	return a, b.answered(a)
}

// fitsScore checks a score against the model and the table's public facts.
func (o *Oracle) fitsScore(q oracle.Score) (r release, err error) {
	classes, m := o.cfg.Facts.Classes, o.cfg.Model
	switch {
	case max(1, classes) != m.Outputs():
		return r, fmt.Errorf("private: a score of %d classes; the model %s predicts %d", classes, m.Name(), m.Outputs())
	case q.Group.First+q.Group.Count > o.cfg.Table.Dim:
		return r, fmt.Errorf("private: a score by levels of which the last is feature %d; the table has %d",
			q.Group.First+q.Group.Count, o.cfg.Table.Dim)
	case q.Group.Count > 0 && o.cfg.Facts.Coded():
		return r, errors.New("private: a score is split by levels of rows of float32, not of bytes or 16-bit numbers")
	}
	return o.cells(q), q.Fits(classes)
}

// scoring counts records in the cells of a score, or adds up its errors.
type scoring struct {
	q        oracle.Score
	w        []float64
	m        model.Model
	classes  int
	edges    []float64
	decision int
	cells    int   // of a group
	one      int64 // record, in units
}

func newScoring(s *sum.Sum, m model.Model) *scoring {
	t := &scoring{q: s.Score, w: s.W, m: m, classes: s.Classes, cells: s.Score.Cells(s.Classes), one: int64(1 / s.Unit)}
	t.edges, t.decision = s.Score.Edges(s.Classes)
	return t
}

func (t *scoring) add(u *worker, v data.View) {
	k := t.m.Outputs()
	u.classes = grow(u.classes, k*v.Len())
	t.m.Predict(u.classes, t.w, v, &u.ws)
	parts := u.sharesOf(v)
	for i := range v.Len() {
		row := v.Row(i)
		if v.Drop != nil && v.Drop[row] {
			continue // keeps its place, weighs nothing (R9)
		}
		cells, p := u.fall[t.cells*t.group(u, v, row):][:t.cells], u.classes[k*i:k*(i+1)]
		if t.classes == 0 {
			t.errors(cells, p[0], float64(v.Y[row]), parts, i)
		} else if y := v.Y[row]; y >= 0 && y < float32(t.classes) && float32(int(y)) == y {
			cells[t.cell(p, int(y))] += shared(t.one, parts, i)
		}
	}
}

// group is the number of a row's level, or behind the last.
func (t *scoring) group(u *worker, v data.View, row int) int {
	first, n := t.q.Group.First, t.q.Group.Count
	if n == 0 {
		return 0
	}
	col, val := v.Values(row, &u.row)
	if col == nil {
		if g := slices.IndexFunc(val[first:][:n], func(x float32) bool { return x != 0 }); g >= 0 {
			return g
		}
		return n
	}
	for k, j := range col {
		if g := int(j) - first; g >= 0 && g < n && val[k] != 0 {
			return g
		}
	}
	return n
}

// cell is where a record of class y with the predicted probabilities p counts: see oracle.Score.Cells.
func (t *scoring) cell(p []float64, y int) int {
	switch {
	case t.classes == 2:
		bin := t.bin(p[1])
		if model.DecideAt(p, t.q.Class, t.q.Threshold) == 1 {
			bin = max(bin, t.decision+1)
		} else {
			bin = min(bin, t.decision)
		}
		return y*(len(t.edges)+1) + bin
	case t.q.Bins > 0:
		return t.bin(p[y])
	}
	return y*t.classes + model.DecideAt(p, 0, 0)
}

// bin is the number of edges up to p; a p that is no number is in the last bin.
func (t *scoring) bin(p float64) int {
	return sort.Search(len(t.edges), func(k int) bool { return t.edges[k] > p })
}

// errors adds a record's parts of the sums of errors. An error that is no number counts as the largest, such a
// label as the least.
func (t *scoring) errors(sums []int64, value, y float64, parts []float64, i int) {
	a := math.Abs(value-y) / t.q.Error
	if !(a < 1) {
		a = 1
	}
	place := min(1, (y-t.q.Low)/(t.q.High-t.q.Low))
	if !(place > 0) {
		place = 0
	}
	square := a * a
	for k, x := range [oracle.ErrorSums]float64{1, a, square, square * square, place, place * place} {
		sums[k] += shared(int64(x*oracle.ErrorWeights[k]*float64(t.one)), parts, i)
	}
}
