package paper

import (
	"context"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/schema"
)

// Read reads a table of a paper's experiment, which everybody may use. Rows that the user's own
// ledger protects are refused all the same.
func Read(ctx context.Context, schema *schema.Schema, file string) (*data.Table, error) {
	gate, err := run.Gate(ctx, "", false, nil)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	gate.Unprotected = true
	opened, err := gate.Open(ctx, access.Lab, schema, file, data.Options{})
	if err != nil {
		return nil, err
	}
	tables, err := run.Take(ctx, "", "", opened)
	if err != nil {
		return nil, err
	}
	return tables[0], nil
}

// Made reads a table that the caller has just made.
func Made(ctx context.Context, schema *schema.Schema, file string) (*data.Table, error) {
	var gate access.Gate
	opened, err := gate.Open(ctx, access.Synthetic, schema, file, data.Options{})
	if err != nil {
		return nil, err
	}
	return opened.Take(ctx, nil, "")
}
