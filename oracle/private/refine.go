package private

import (
	"context"
	"errors"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
)

// Refine implements oracle.Refiner. Nothing is charged and nothing leaves: the choice is public, and what is asked
// later is about rows within the same bound (PROOFS.md#refine).
func (o *Oracle) Refine(ctx context.Context, c oracle.Choice) error {
	if err := c.Check(o.cfg.Facts); err != nil {
		return err
	}
	summer, ok := o.summer.(oracle.Refiner)
	switch {
	case !ok:
		return oracle.ErrNotRefined
	case o.refined:
		return errors.New("private: rows are refined once; their encoding was chosen before")
	case len(o.batch.open) > 0:
		return errors.New("private: a batch has queries that were charged and not asked; ask them before rows are refined")
	}
	if err := summer.Refine(ctx, c); err != nil {
		return err
	}
	o.refined = true
	return nil
}

// Refine encodes the rows as the choice says: the next sums are over those.
func (s *Local) Refine(ctx context.Context, c oracle.Choice) error {
	if len(c.Pairs) == 0 && !c.Lines {
		return nil
	}
	t, err := s.table.Refine(ctx, Refinement(s.facts, c), len(s.workers))
	if err != nil {
		return err
	}
	s.table, s.copier, s.apart = t, data.NewCopier(t), nil
	return nil
}

// Refinement is what a choice says to a table.
func Refinement(p oracle.Public, c oracle.Choice) data.Refinement {
	r := data.Refinement{Pairs: c.Pairs, First: p.FirstSlot(), Places: p.Slots, Gone: p.Gone(c)}
	for _, n := range p.Numeric {
		r.Columns = append(r.Columns, data.Curved{At: n.At, Features: n.Features()})
	}
	return r
}
