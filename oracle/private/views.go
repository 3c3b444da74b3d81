package private

import (
	"fmt"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
)

// fitsViews checks, from public values alone, that rows have views and that the model can take their mean.
func (o *Oracle) fitsViews(q oracle.Grad) error {
	if q.Augmentation.Count < 2 {
		return nil
	}
	views, err := q.Augmentation.Of(o.cfg.Facts.Image, 0)
	if err != nil {
		return fmt.Errorf("private: %w", err)
	}
	_, norm := q.Clip.(clip.Norm)
	_, none := q.Clip.(clip.None)
	switch {
	case q.Clip.Norm() != 2 || !norm && !none:
		return fmt.Errorf("private: views are clipped by the ℓ2 norm of their mean gradient, not by %T", q.Clip)
	case !o.cfg.Model.Facts().Viewed:
		return fmt.Errorf("private: the model %s takes no views", o.cfg.Model.Name())
	case len(views[0]) > o.cfg.Table.Dim:
		return fmt.Errorf("private: images of %d numbers in rows of %d", len(views[0]), o.cfg.Table.Dim)
	}
	return nil
}

// addViews clips and adds the mean gradients of the views of each row, some rows at a time.
func (u *worker) addViews(v data.View) {
	k := len(u.s.views)
	for from := 0; from < v.Len(); {
		n := min(v.Len()-from, max(1, u.s.tile/k))
		part := data.View{Block: v.Block, From: v.Row(from), To: v.Row(from) + n}
		u.see(part)
		pass := u.s.model.Eval(u.s.w, data.View{Block: &u.viewed, To: n * k}, &u.ws).(model.ViewedPass)
		u.norm, u.c = grow(u.norm, n), grow(u.c, n)
		pass.MeanNorm(u.norm, k)
		u.weigh(part)
		pass.AddMean(u.acc, u.c, k, u.s.unit)
		from += n
	}
}

// see copies the views of the rows of v, one row's after the other's.
func (u *worker) see(v data.View) {
	to := &u.viewed
	*to = data.Block{Dim: v.Dim, X: to.X[:0], Y: to.Y[:0], Norm: to.Norm[:0]}
	for i := range v.Len() {
		row := v.Row(i)
		x := v.Dense(row, &u.row)
		for _, order := range u.s.views {
			for _, j := range order {
				to.X = append(to.X, x[j])
			}
			to.X = append(to.X, x[len(order):]...)
			to.Y, to.Norm, to.N = append(to.Y, v.Y[row]), append(to.Norm, v.Norm[row]), to.N+1
		}
	}
}
