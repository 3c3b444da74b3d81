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
	r := data.Refinement{Lines: c.Lines, Pairs: c.Pairs, First: s.facts.FirstSlot()}
	changes := len(c.Pairs) > 0
	for _, n := range s.facts.Numeric {
		r.Columns = append(r.Columns, data.Bumped{At: n.At, Bumps: n.Bumps})
		changes = changes || c.Lines && n.Bumps > 0
	}
	if !changes {
		return nil
	}
	t, err := s.table.Refine(ctx, r, len(s.workers))
	if err != nil {
		return err
	}
	s.table, s.copier, s.apart = t, data.NewCopier(t), nil
	return nil
}
