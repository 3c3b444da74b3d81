package private

import (
	"fmt"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
)

// lossSensitivity is that of a sum of losses. A record's part is a whole number of units from 0 to the bound, so
// with another record in its place the sum moves by the bound at most, as without it.
func (o *Oracle) lossSensitivity(q oracle.Loss) (float64, error) {
	if _, err := clip.Sensitivity(q.Bound, o.cfg.Facts.Adjacency); err != nil { // is it a relation?
		return 0, err
	}
	return q.Bound, nil
}

// fitsLoss checks, from public values alone, that unit and noise are numbers that a float64
// and an int64 hold.
func (o *Oracle) fitsLoss(q oracle.Loss) error {
	if q.Bound == 0 {
		return nil
	}
	unit := fallUnit(q.Bound)
	if !inRange(unit) {
		return fmt.Errorf("private: the bound %v on a loss is out of range", q.Bound)
	}
	sens, err := o.lossSensitivity(q)
	if err != nil {
		return err
	}
	return q.Noise.Check(unit, sens)
}

// Loss answers a paid query of the loss. The line where private becomes public is the call of Add.
func (b *batch) Loss(q oracle.Loss, w []float64) (float64, error) {
	o := b.o
	if len(w) != o.cfg.Facts.Dim {
		return 0, fmt.Errorf("private: %d parameters given, the model has %d", len(w), o.cfg.Facts.Dim)
	}
	if err := b.take(q); err != nil {
		return 0, err
	}
	unit := unitFor(q.Bound)
	sums, err := b.sums(Sum{Of: Losses, Unit: unit, Bound: q.Bound, W: w})
	if err != nil {
		return 0, err
	}
	sum := sums[0]
	mean := sum.plain
	if q.Bound > 0 {
		sens, err := o.lossSensitivity(q)
		if err != nil {
			return 0, err
		}
		v := []int64{sum.count}
		if err := q.Noise.Add(v, unit, sens, &o.noise); err != nil {
			return 0, err
		}
		mean = float64(v[0]) * unit
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
