package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
)

// A Setup says how to audit a spec.
type Setup struct {
	Options
	Runs        int    // on each of two tables
	OnData      bool   // on the spec's own rows, not on synthetic ones
	Void        bool   // ends the guarantee of a dataset that has one
	Unprotected bool   // the rows need no protection
	Seed        uint64 // of synthetic rows
	Notice      func(string)
}

// Audit audits a prepared spec.
func (s Setup) Audit(ctx context.Context, job *run.Job) (*Result, error) {
	if err := s.possible(job); err != nil {
		return nil, err
	}
	crafted := s.Runs == 0 && s.Canaries == 0 && !s.OnData // residuals are of synthetic rows only
	if s.Canaries == 0 && s.Runs == 0 && !crafted {
		var err error
		if s.Canaries, err = Canaries(job); err != nil {
			return nil, blind(job, err)
		}
	}
	rows, canaries, err := Rows(job, s.Canaries)
	switch {
	case crafted:
		rows, err = layoutOf(job).rows, nil
	case s.Runs > 0:
		rows, err = job.Facts.Rows-1, nil
	}
	if err != nil {
		return nil, &run.InputError{Err: fmt.Errorf("--%w", err)}
	}
	table, err := s.table(ctx, job, rows)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	if s.Runs > 0 {
		return Many(ctx, job, table, s.Runs, s.Options)
	}
	audit := One
	if s.Options.Canaries = canaries; crafted {
		audit = Craft
	}
	r, err := audit(ctx, job, table, s.Options)
	return r, blind(job, err)
}

// possible refuses a spec that no audit can test.
func (s Setup) possible(job *run.Job) error {
	if job.Spec.Privacy.Off {
		return &run.InputError{Where: job.Spec.Place("privacy"),
			Err: errors.New("privacy: found none; set a claim that an audit can test")}
	}
	if privacy.Contains[privacy.Allocated](job.Plan) {
		return &run.InputError{Where: job.Spec.Place("method"),
			Err: errors.New("sampling: found allocation, for which the audit has no attack; choose poisson, fixed or all rows")}
	}
	return nil
}

// table is the one to audit on: synthetic, or the spec's own.
func (s Setup) table(ctx context.Context, job *run.Job, rows int) (*data.Table, error) {
	switch {
	case !s.OnData:
		return Synthetic(ctx, job.Schema, rows, s.Seed)
	case job.Spec.Data == "":
		return nil, &run.InputError{Err: errors.New("--on-data: found no rows; give a spec with data, or --data FILE")}
	}
	return s.own(ctx, job, rows)
}

// blind adds to ErrBlind what to do.
func blind(job *run.Job, err error) error {
	if errors.Is(err, ErrBlind) {
		return &run.InputError{Where: job.Spec.Place("method"), Err: fmt.Errorf("%w: --runs 2000", err)}
	}
	return err
}

// own reads the rows of the spec: an access without charge, which the ledger records (R3).
func (s Setup) own(ctx context.Context, job *run.Job, rows int) (*data.Table, error) {
	gate := access.Gate{Notice: s.Notice, Dropped: run.Dropped(s.Notice, job.Spec.AcceptDropped),
		Void: s.Void, Unprotected: s.Unprotected, Why: "audit by `sotto audit`"}
	table, err := run.Read(ctx, job.Spec.Ledger, "", gate, access.Lab, job.Schema, job.Spec.Data,
		data.Options{Labels: job.Spec.Labels})
	if err != nil {
		return nil, err
	}
	if job.Facts.Adjacency == privacy.AddRemove && s.Runs == 0 {
		return table, nil
	}
	defer table.Close()
	return data.Subset([]*data.Table{table}, func(row int) bool { return row < rows }), nil // canaries replace the others
}
