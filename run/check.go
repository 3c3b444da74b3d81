package run

import (
	"context"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/schema"
)

// CheckOptions say how a table is checked against its schema.
type CheckOptions struct {
	Data, Labels string
	Ledger       string
	Unprotected  bool // the rows need no protection, so that the access is not recorded
	Void         bool // the access ends the guarantee of their dataset
	Notice       func(string)
}

// TableCounts are exact counts of a table: for the owner's terminal alone.
type TableCounts struct {
	Rows    int                 `json:"rows"`
	Bad     int                 `json:"bad_rows"`
	Columns []data.ColumnCounts `json:"columns"`
}

// CheckTable counts, column by column, missing values, bad cells, and values at and beyond the
// bounds. The counts have no noise and influence what a person writes into the schema, so the
// ledger records an access without a guarantee; one that would end a guarantee is refused (R3).
func CheckTable(ctx context.Context, s *schema.Schema, o CheckOptions) (*TableCounts, error) {
	all := *s
	all.OnBadRow = schema.BadRowDrop // bad rows are counted
	var tally data.Tally
	gate, err := Gate(ctx, o.Ledger, false, o.Notice)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	gate.Void, gate.Unprotected, gate.Dropped = o.Void, o.Unprotected, nil
	opened, err := gate.Open(ctx, access.Check, &all, o.Data, data.Options{Labels: o.Labels, Tally: &tally})
	if err != nil {
		return nil, err
	}
	stats := opened.Stats
	tables, err := Take(ctx, o.Ledger, "", opened)
	if err != nil {
		return nil, err
	}
	return &TableCounts{stats.Rows, stats.Dropped, tally.Counts(&all)}, tables[0].Close()
}
