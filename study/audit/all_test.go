package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// smallSchema describes a synthetic table with that many rows and features, and two classes.
func smallSchema(rows, features int) (*schema.Schema, error) {
	return labeledSchema(rows, features, "classes: [no, yes]")
}

func labeledSchema(rows, features int, label string) (*schema.Schema, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "dataset: synthetic\nrows: %d\nformat: {kind: csv, header: true}\ncolumns:\n", rows)
	for k := range features {
		fmt.Fprintf(&b, "  - {name: x%d, type: numeric, min: 0, max: 1}\n", k)
	}
	fmt.Fprintf(&b, "  - {name: label, type: label, %s}\n", label)
	return schema.Parse("", []byte(b.String()))
}

// small is a job for the method of that name on a small synthetic table, at ε and δ = 1e-5 under
// add-or-remove with model logistic, or with another relation, δ = 0 or model linear if the method needs that.
func small(name string, epsilon float64, rows, features int) (*run.Job, error) {
	entry, err := method.Lookup(name)
	if err != nil {
		return nil, err
	}
	for _, on := range []struct{ model, label string }{{"logistic", "classes: [no, yes]"}, {"linear", "min: 0, max: 1"}} {
		schema, wrong := labeledSchema(rows, features, on.label)
		if wrong != nil {
			return nil, wrong
		}
		for _, delta := range []float64{1e-5, 0} {
			for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
				spec := &run.Spec{MethodName: name, Method: entry.Method, Model: run.ModelSpec{Name: on.model}, Output: method.Last,
					Privacy: run.PrivacySpec{Epsilon: epsilon, Delta: &delta, Adjacency: adj}}
				job, failed := job.PrepareOn(spec, schema)
				if failed == nil {
					return job, nil
				}
				if err == nil {
					err = failed
				}
			}
		}
	}
	return nil, err
}

// unclaimed are the methods that claim nothing, and why.
var unclaimed = map[string]string{"optimum": "it has no privacy"}

// allEpsilon is the ε that the methods claim.
const allEpsilon = 4

// An extent is the size of what is run.
type extent struct {
	rows, features int // declared, for canaries
	few, narrow    int // rows and features of many runs: one record is much
	runs           int
}

var whole = extent{rows: 12000, features: 120, few: 12, narrow: 2, runs: 600}

// all audits each of the named methods, or all of the registry, on small synthetic tables: with crafted canaries those
// that ask for gradients, in many runs the others. It calls done with each result.
func (x extent) all(ctx context.Context, names []string, opt Options, done func(*Result)) error {
	if len(names) == 0 {
		for _, e := range method.Registry() {
			if unclaimed[e.Name] == "" {
				names = append(names, e.Name)
			}
		}
	}
	for _, name := range names {
		r, err := x.either(ctx, name, opt)
		if err != nil {
			return fmt.Errorf("method %s: %w", name, err)
		}
		done(r)
	}
	return nil
}

func (x extent) either(ctx context.Context, name string, opt Options) (*Result, error) {
	job, err := small(name, allEpsilon, x.rows, x.features)
	if err != nil {
		return nil, err
	}
	table, err := Synthetic(ctx, job.Schema, layoutOf(job).rows, 1)
	if err != nil {
		return nil, err
	}
	r, err := Craft(ctx, job, table, opt)
	if !errors.Is(err, ErrBlind) {
		return r, err
	}
	if job, err = small(name, allEpsilon, x.few, x.narrow); err != nil {
		return nil, err
	}
	if table, err = Synthetic(ctx, job.Schema, x.few-1, 1); err != nil {
		return nil, err
	}
	return Many(ctx, job, table, x.runs, opt)
}
