package private

import (
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
)

// Select answers a charged choice. The line where private becomes public is the call of Choose.
func (b *batch) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	n, err := oracle.CheckChoice(q, among, b.o.cfg.Facts)
	if err != nil {
		return 0, err
	}
	if err := b.take(q); err != nil {
		return 0, err
	}
	r, monotone, err := b.o.scores(q)
	if err != nil {
		return 0, err
	}
	sums, err := b.scores(q, among, n, r.unit)
	if err != nil {
		return 0, err
	}
	k, err := b.choose(q, sums, r, monotone)
	if err != nil {
		return 0, err
	}
	return k, b.answeredOne(oracle.Found(k))
}

// scores are the sums of a choice, less what its candidates must bring.
func (b *batch) scores(q oracle.Select, among oracle.Candidates, n int, unit float64) (sums []decrease, err error) {
	if _, count := among.(oracle.Classes); count {
		return b.sums(sum.Sum{Of: sum.Classes, Unit: unit, Classes: n})
	}
	if q.Bound == 0 {
		unit = 0
	}
	var least []float64
	switch c := among.(type) {
	case oracle.Line:
		for k := 0; k < n; k += abreast {
			some, err := b.decreases(c, c.Steps[k:min(n, k+abreast)], q.Bound, k > 0)
			if err != nil {
				return nil, err
			}
			sums = append(sums, some...)
		}
		least = c.Least
	case oracle.Neighbors:
		moved, err := b.sums(sum.Sum{Of: sum.Neighbors, Unit: unit, Bound: q.Bound, W: c.From, Step: c.Step})
		if err != nil {
			return nil, err
		}
		sums = append(make([]decrease, 1), moved...) // the first stays
		least = c.Least
	}
	for k, v := range least {
		sums[k].plain -= v * b.size
		if q.Bound != 0 {
			sums[k].count -= counted(v * b.size / unit)
		}
	}
	return sums, nil
}

func (b *batch) choose(q oracle.Select, sums []decrease, r release, monotone bool) (int, error) {
	if q.Off {
		best := 0
		for k, sum := range sums {
			if sum.plain > sums[best].plain {
				best = k
			}
		}
		return best, nil
	}
	scores := make([]int64, len(sums))
	for k, sum := range sums {
		scores[k] = sum.count
	}
	return q.Chooser(monotone).Choose(scores, r.grid, r.sens, &b.o.noise)
}

// neighbors sums the decreases of the moves of one parameter: 2j up, 2j + 1 down.
type neighbors struct {
	from        []float64
	step        float64
	bound, unit float64 // bound 0: nothing is clipped, lab only
}

func (t *neighbors) add(u *worker, v data.View) {
	f, parts := &u.falls, u.sharesOf(v)
	model.NeighborFalls(u.s.model, f, t.from, t.step, v, &u.ws)
	for e, i := range f.Row {
		if v.Drop != nil && v.Drop[v.Row(int(i))] {
			continue // keeps its place, weighs nothing (R9)
		}
		up, down, to := f.Up[e], f.Down[e], 2*int(f.Param[e])
		if t.bound > 0 {
			scale := 1 / t.unit
			most := int64(t.bound * scale)
			u.fall[to] += shared(clipped(up, scale, most), parts, int(i))
			u.fall[to+1] += shared(clipped(down, scale, most), parts, int(i))
			continue
		}
		if up == up {
			u.plain[to] += up * part(parts, int(i))
		}
		if down == down {
			u.plain[to+1] += down * part(parts, int(i))
		}
	}
}

// classes counts the records of so many classes, each as one.
type classes struct {
	n   int
	one int64
}

func (t classes) add(u *worker, v data.View) {
	parts := u.sharesOf(v)
	for i := range v.Len() {
		row := v.Row(i)
		if v.Drop != nil && v.Drop[row] {
			continue
		}
		if y := v.Y[row]; y >= 0 && y < float32(t.n) && float32(int(y)) == y {
			u.fall[int(y)] += shared(t.one, parts, i)
		}
	}
}
