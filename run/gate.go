package run

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// Gate opens the gate to tables under the ledger at where, "" for the user's own. It creates no ledger:
// without one, nothing is protected. A named ledger must exist, unless the caller will reserve in it
// (maker). The caller closes the gate.
func Gate(ctx context.Context, where string, maker bool, notice func(string)) (*access.Gate, error) {
	return machine.gate(ctx, where, maker, notice)
}

func (d *disk) gate(ctx context.Context, where string, maker bool, notice func(string)) (*access.Gate, error) {
	missing := false
	l, err := reachLedger(ctx, where, func(ctx context.Context, where string) (*ledger.Ledger, error) {
		l, err := d.ledgers.View(ctx, where)
		missing = errors.Is(err, os.ErrNotExist)
		return l, err
	})
	if err != nil && !(missing && (maker || where == "")) {
		return nil, err
	}
	return &access.Gate{Ledger: l, Notice: notice, Dropped: Dropped(notice, false)}, nil
}

// Take records accesses that no run is charged for in the ledger at where, and returns the tables in
// their order. It creates the user's own ledger if there is something to record.
func Take(ctx context.Context, where, id string, opened ...*access.Opened) ([]*data.Table, error) {
	var l *ledger.Ledger
	for _, o := range opened {
		if l == nil && o.Records() {
			var err error
			open := FindLedger
			if where == "" {
				open = OpenLedger
			}
			if l, err = open(ctx, where); err != nil {
				return nil, errors.Join(err, closeAll(opened))
			}
			defer l.Close()
		}
	}
	if id == "" {
		var err error
		if id, err = job.NewID(); err != nil {
			return nil, errors.Join(err, closeAll(opened))
		}
	}
	var tables []*data.Table
	for _, o := range opened {
		t, err := o.Take(ctx, l, id)
		if err != nil {
			return nil, errors.Join(err, closeAll(opened))
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// Read opens and takes one table for an access that no run is charged for. It uses the assertions, the
// reason and the hooks of g.
func Read(ctx context.Context, where, id string, g access.Gate, purpose access.Purpose, s *schema.Schema, file string,
	opt data.Options) (*data.Table, error) {
	t, _, err := take(ctx, where, id, g, func(g *access.Gate) (*access.Opened, error) {
		return g.Open(ctx, purpose, s, file, opt)
	})
	return t, err
}

// take is Read for a table that open opens.
func take(ctx context.Context, where, id string, g access.Gate,
	open func(*access.Gate) (*access.Opened, error)) (*data.Table, *access.Opened, error) {
	gate, err := Gate(ctx, where, false, g.Notice)
	if err != nil {
		return nil, nil, err
	}
	defer gate.Close()
	if g.Ledger = gate.Ledger; g.Dropped == nil {
		g.Dropped = gate.Dropped
	}
	opened, err := open(&g)
	if err != nil {
		return nil, nil, err
	}
	tables, err := Take(ctx, where, id, opened)
	if err != nil {
		return nil, nil, err
	}
	return tables[0], opened, nil
}

func closeAll(opened []*access.Opened) error {
	var all error
	for _, o := range opened {
		all = errors.Join(all, o.Close())
	}
	return all
}

// gate returns the gate of a run.
func (s *Session) gate(ctx context.Context) (*access.Gate, error) {
	spec := s.Job.Spec
	g, err := s.disk().gate(ctx, cmp.Or(s.env.Ledger, spec.Ledger), true, s.notice)
	if err != nil {
		return nil, err
	}
	g.Void = spec.Void || s.env.Void
	g.Dropped = Dropped(s.notice, s.admitted || spec.AcceptDropped)
	_, g.Why = s.right.purpose()
	return g, nil
}

// Take opens the run's tables to it. A charged run has reserved before.
func (s *Session) Take(ctx context.Context) (err error) {
	if s.rows, err = s.opened.Take(ctx, s.ledger, s.Info.ID); err != nil {
		return err
	}
	if err := s.holdOut(); err != nil {
		return err
	}
	if s.tested != nil {
		s.test, err = s.tested.Take(ctx, s.ledger, s.Info.ID)
	}
	return err
}
