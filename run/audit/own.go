package audit

import (
	"context"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
)

// OwnRows says how an audit reads the rows of its spec.
type OwnRows struct {
	Rows        int  // how many are kept where canaries replace the others
	Canaries    bool // one run with canaries, not many on two tables
	Void        bool // ends the guarantee of a dataset that has one
	Unprotected bool // the rows need no protection
	Notice      func(string)
}

// Own reads the rows of the spec for an audit: an access without charge, which the ledger records (R3).
func Own(ctx context.Context, job *run.Job, o OwnRows) (*data.Table, error) {
	gate, err := run.Gate(ctx, job.Spec.Ledger, false, o.Notice)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	gate.Dropped = job.Spec.Dropped(o.Notice)
	gate.Void, gate.Unprotected, gate.Why = o.Void, o.Unprotected, "audit by `sotto audit`"
	opened, err := gate.Open(ctx, access.Lab, job.Schema, job.Spec.Data, data.Options{Labels: job.Spec.Labels})
	if err != nil {
		return nil, err
	}
	tables, err := run.Take(ctx, job.Spec.Ledger, "", opened)
	if err != nil {
		return nil, err
	}
	table := tables[0]
	if job.Facts.Adjacency == privacy.AddRemove && o.Canaries {
		return table, nil
	}
	defer table.Close()
	return data.Subset([]*data.Table{table}, func(row int) bool { return row < o.Rows }), nil // canaries replace the others
}
