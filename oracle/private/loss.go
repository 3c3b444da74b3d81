package private

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy/clip"
)

// Loss answers a charged loss query. The line where private becomes public is the call of Add.
func (b *batch) Loss(q oracle.Loss, w []float64) (float64, error) {
	o := b.o
	s := sum.Sum{Of: sum.Losses, Unit: unitFor(q.Bound), Bound: q.Bound, W: w}
	switch last := len(w) - 1; {
	case last < 0:
	case q.Wrong:
		s.Of, s.W, s.Offset = sum.Wrong, w[:last], w[last]
		if q.Signed {
			s.Of = sum.Answers
		}
	case q.Within:
		rule := clip.Norm{C: w[last]}
		if err := rule.Validate(); err != nil {
			return 0, fmt.Errorf("private: %w", err)
		}
		s.Of, s.W, s.Clip = sum.Within, w[:last], rule
	case q.Squares:
		if s.W, s.Offset = w[:last], w[last]; math.IsNaN(s.Offset) || math.IsInf(s.Offset, 0) {
			return 0, fmt.Errorf("private: squares of labels are taken from %v; choose a finite number", s.Offset)
		}
	}
	if err := b.takeAt(q, s.W); err != nil {
		return 0, err
	}
	switch {
	case q.Squares:
		s.Of = sum.Squares
	case q.Labels:
		s.Of = sum.Labels
	}
	if o.cfg.Pool != nil {
		return b.totalLoss(q, s)
	}
	sums, err := b.sums(s)
	if err != nil {
		return 0, err
	}
	mean := sums[0].plain
	if q.Bound > 0 {
		r, err := o.losses(q)
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

// totalLoss is the mean loss over the records of all owners.
func (b *batch) totalLoss(q oracle.Loss, s sum.Sum) (float64, error) {
	r, err := b.o.losses(q)
	if err != nil {
		return 0, err
	}
	total, err := b.total(q, r, 1, func() ([]int64, error) {
		sums, err := b.sums(s)
		if err != nil {
			return nil, err
		}
		return []int64{sums[0].count}, nil
	})
	if err != nil {
		return 0, err
	}
	mean := float64(total[0]) * r.grid / b.size
	return mean, b.answeredOne(mean)
}

// losses sums the losses at w, or labels above their lower bound or the squares of their distance from a number, each
// clipped to [0, bound], or signed answers.
type losses struct {
	w           []float64
	bound, unit float64     // bound 0: nothing is clipped, lab only
	wrong       model.Model // whose 0-1 losses are summed instead; nil: losses
	signed      bool        // less ½ each
	labels      bool
	squares     bool // of labels, from that number
	from        float64
	within      float64 // above 0: norms of gradients are counted instead, by whether they are within it
}

func (t *losses) add(u *worker, v data.View) {
	u.losses = grown(u.losses, 1, u.s.tile)
	l := u.losses[0][:v.Len()]
	switch {
	case t.within > 0:
		u.s.model.Eval(t.w, v, &u.ws).GradNorm(l, 2)
		for i, norm := range l {
			l[i] = -0.5
			if norm <= t.within { // not of NaN
				l[i] = 0.5
			}
		}
	case t.labels:
		for i := range l {
			l[i] = float64(v.Y[v.Row(i)]) - u.s.facts.LabelMin
		}
	case t.squares:
		for i := range l {
			l[i] = float64(v.Y[v.Row(i)]) - t.from
			l[i] *= l[i]
		}
	case t.wrong != nil:
		u.classes = grow(u.classes, 2*v.Len())
		zeroOne(l, u.classes, t.wrong, t.w, v, &u.ws)
		if t.signed {
			for i := range l {
				l[i] -= 0.5
			}
		}
	default:
		u.s.model.Eval(t.w, v, &u.ws).Loss(l)
	}
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
	least := int64(0)
	if t.signed {
		least = -most
	}
	for i, x := range l {
		u.fall[0] += shared(max(least, clipped(x, scale, most)), parts, i)
	}
}

// twoClasses says whether a model has two classes by one margin, of which 0-1 losses are counted.
func twoClasses(m model.Model) bool { return m.Facts().OneMargin && m.Outputs() == 2 }

// zeroOne sets l_i to 1 where the class of row i is not the likelier one of m at w, otherwise to 0. likely has room for
// both.
func zeroOne(l, likely []float64, m model.Model, w []float64, v data.View, ws *model.Workspace) {
	m.Predict(likely, w, v, ws)
	for i := range l {
		class := float32(0)
		if likely[2*i+1] > likely[2*i] {
			class = 1
		}
		if l[i] = 1; v.Y[v.Row(i)] == class {
			l[i] = 0
		}
	}
}
