package run

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/trace"
	"github.com/sottodp/sotto/schema"
)

// Trained is a model file ready for use.
type Trained struct {
	File      *model.File
	Schema    *schema.Schema
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
	if t.Schema, err = schema.FromJSON(f.Schema); err != nil {
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
