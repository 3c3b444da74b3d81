package private

import (
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
)

// Loss answers a charged loss query. The line where private becomes public is the call of Add.
func (b *batch) Loss(q oracle.Loss, w []float64) (float64, error) {
	o := b.o
	if err := b.takeAt(q, w); err != nil {
		return 0, err
	}
	sums, err := b.sums(Sum{Of: Losses, Unit: unitFor(q.Bound), Bound: q.Bound, W: w})
	if err != nil {
		return 0, err
	}
	mean := sums[0].plain
	if q.Bound > 0 {
		r, err := o.losses(q.Bound)
		if err != nil {
			return 0, err
		}
		v := []int64{sums[0].count}
		if err := q.Noise.Add(v, r.grid, r.sens, &o.noise); err != nil {
			return 0, err
		}
		mean = float64(v[0]) * r.grid
	}
	mean /= b.size
	return mean, b.answeredOne(mean)
}

// losses sums the losses at w, each clipped to [0, bound].
type losses struct {
	w           []float64
	bound, unit float64 // bound 0: nothing is clipped, lab only
}

func (t *losses) add(u *worker, v data.View) {
	u.losses = grown(u.losses, 1, u.s.tile)
	l := u.losses[0][:v.Len()]
	u.s.model.Eval(t.w, v, &u.ws).Loss(l)
	dropped(l, v)
	parts := u.sharesOf(v)
	if t.bound == 0 {
		for i, x := range l {
			if x == x {
				u.plain[0] += x * part(parts, i)
			}
		}
		return
	}
	scale := 1 / t.unit
	most := int64(t.bound * scale)
	for i, x := range l {
		u.fall[0] += shared(max(0, clipped(x, scale, most)), parts, i)
	}
}
