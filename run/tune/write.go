package tune

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/trace"
)

// ResultFile holds what a search found, beside the files of a run.
const ResultFile = trace.SearchFile

// Write makes dir, which is there and empty, the run directory of the search: one charge, no releases, the model.
func (r *Result) Write(dir, version string) error {
	w, err := trace.Create(dir)
	if err != nil {
		return err
	}
	plan, err := r.info.PlanEvent()
	if err == nil {
		err = w.Charge(plan)
	}
	if err := errors.Join(err, w.Close(), model.Write(filepath.Join(dir, trace.ModelFile), r.File)); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := trace.WriteFile(filepath.Join(dir, ResultFile), append(b, '\n')); err != nil {
		return err
	}
	r.info.Version = version
	if r.info.Hashes, err = trace.Hashes(dir); err != nil {
		return err
	}
	return trace.WriteInfo(dir, r.info)
}

// Backdate gives the directory and its files the time at which the search began: how long it took tells how many were trained (R21).
func (r *Result) Backdate(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Chtimes(filepath.Join(dir, e.Name()), r.info.Started, r.info.Started))
	}
	return errors.Join(err, os.Chtimes(dir, r.info.Started, r.info.Started))
}
