package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/trace"
)

// Trained is a model file ready for use.
type Trained struct {
	File      *model.File
	Schema    *data.Schema
	Model     model.Model
	Guarantee Guarantee
	Ledger    string // of its run, where the run directory is around it and the ledger is there
}

// LoadModel reads a model file, or that of a run directory.
func LoadModel(path string) (*Trained, error) {
	if path == "" {
		return nil, inputError("", "--model is missing: a run directory or a model file")
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		dir := path
		path = filepath.Join(path, trace.ModelFile)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			if info, err := trace.ReadInfo(dir); err == nil {
				return nil, inputError("", "%s: has no model; its run is %s", dir, info.Status)
			}
		}
	}
	f, err := model.Read(path)
	if err != nil {
		return nil, &InputError{"", err}
	}
	t := &Trained{File: f}
	if t.Schema, err = data.SchemaFromJSON(f.Schema); err != nil {
		return nil, &InputError{path, err}
	}
	if t.Model, err = f.New(); err != nil {
		return nil, &InputError{path, err}
	}
	switch names := t.Schema.FeatureNames(); {
	case t.Schema.Dim() != f.Dim || t.Schema.Classes() != len(f.Classes):
		return nil, inputError(path, "schema: found one of %d features and %d classes; allowed is that of the parameters, %d and %d", t.Schema.Dim(), t.Schema.Classes(), f.Dim, len(f.Classes))
	case len(f.Features) > 0 && !slices.Equal(f.Features, names), !slices.Equal(f.Classes, t.Schema.ClassNames()), f.NormBound != t.Schema.RowNorm:
		return nil, inputError(path, "schema: found other features, classes or norm bound than the parameters have; allowed is the schema that the model was trained under")
	}
	if err := json.Unmarshal(f.Guarantee, &t.Guarantee); err != nil {
		return nil, &InputError{path, err}
	}
	if info, err := trace.ReadInfo(filepath.Dir(path)); err == nil && info.ID == f.Run {
		if _, err := os.Stat(info.Ledger); err == nil || strings.Contains(info.Ledger, "://") { // it may be another machine's
			t.Ledger = info.Ledger
		}
	}
	return t, nil
}

// Predictions yields the outputs for each row of t, in order; nil for a dropped
// row. The slice is reused.
func (m *Trained) Predictions(t *data.Table) iter.Seq[[]float64] {
	return func(yield func([]float64) bool) {
		predictions(m.Model, m.File.W, t, func(out []float64, _ float32) bool { return yield(out) })
	}
}

// ErrWouldVoid refuses an unpaid look at a dataset that still has a guarantee.
var ErrWouldVoid = errors.New("an unpaid look would void the dataset's guarantee for ever")

// RecordLook notes an unpaid look at rows of the model's dataset in the ledger,
// if the dataset is known there (R3). Where none is named it is that of the model's
// run. The first such look voids what the ledger says of the dataset; unless void
// asks for it, it is refused with an error that wraps ErrWouldVoid.
func (m *Trained) RecordLook(ctx context.Context, where, why string, void bool) (bool, error) {
	if where == "" {
		where = m.Ledger
	}
	return RecordLook(ctx, where, m.Schema, m.Guarantee.Run, why, void)
}

// RecordLook does the same for any dataset; run is what looked.
func RecordLook(ctx context.Context, where string, schema *data.Schema, run, why string, void bool) (bool, error) {
	l, err := FindLedger(ctx, where)
	if errors.Is(err, ErrNoLedger) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer l.Close()
	if d, err := l.Dataset(ctx, schema.Dataset); err == nil && d.Void == nil && !void {
		return false, fmt.Errorf("dataset %q stands in %s: %w", d.Name, l.Where(), ErrWouldVoid)
	}
	return recordLook(ctx, l, schema, run, why)
}

// Unprotected refuses to take the rows of a table, whose digest is given, for such that need no protection where runs have reserved a budget for
// them in the ledger (R3). It depends on the content, so it is for the owner's terminal.
func Unprotected(ctx context.Context, where string, digest []byte) error {
	l, err := ViewLedger(ctx, where)
	if errors.Is(err, ErrNoLedger) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Close()
	mark := l.NewMark()
	mark.Write(digest)
	known, err := l.SameContent(ctx, "", mark.Sum(nil))
	if err == nil && len(known) > 0 {
		err = inputError("", "--unprotected: found rows that the ledger protects as %s; allowed are others, or --void to look all the same", strings.Join(known, ", "))
	}
	return err
}

// recordLook notes a look without a guarantee. The relation of the dataset is its
// own: such a look has none.
func recordLook(ctx context.Context, l *ledger.Ledger, schema *data.Schema, run, why string) (bool, error) {
	d, err := l.Dataset(ctx, schema.Dataset)
	if errors.Is(err, ledger.ErrUnknownDataset) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return l.RecordNonPrivate(ctx, d.Name, d.Unit, d.Adjacency, run, why)
}
