package tune

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// ResultFile holds what a search found, beside the files of a run.
const ResultFile = runlog.SearchFile

// RunIn runs the search and leaves its run directory, which is new or empty, with its report.
func (p *Plan) RunIn(ctx context.Context, dir, version string, report func(dir string, life *ledger.History) error,
	notice func(string)) (*Result, error) {
	_, missing := os.Stat(dir)
	if err := writable(dir); err != nil { // before anything is spent
		return nil, &run.InputError{Err: fmt.Errorf("--out: %s: a directory with files cannot be made there; give a new or an empty directory", dir)}
	}
	for _, text := range p.Warnings() {
		notice(text)
	}
	r, err := p.Run(ctx, noise.SecureStreams(), notice)
	if err != nil {
		if missing != nil {
			os.Remove(dir)
		}
		return nil, err
	}
	r.dir = dir
	if err := r.Write(dir, version); err != nil {
		return nil, err
	}
	// The report says nothing of the ledger: its entries since the search began would show how long the search took (R21).
	return r, errors.Join(report(dir, nil), r.writeSeal(dir), r.backdate(dir))
}

// writeSeal writes the HMAC of the final files under the ledger's key. An entry in the ledger would show
// how long the search took (R21), and so would opening the ledger again.
func (r *Result) writeSeal(dir string) error {
	files, err := runlog.Seal(dir)
	if err != nil {
		return err
	}
	mac, err := r.seal(files)
	if err != nil {
		return err
	}
	return newfile.Replace(filepath.Join(dir, runlog.SealFile), 0o600, []byte(mac+"\n"))
}

// writable makes a directory, unless it exists, and writes to it.
func writable(dir string) error {
	if err := vfs.MkdirAll(vfs.OS{}, dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".try")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Write fills the empty dir as the run directory of the search: one charge, no releases, the model.
func (r *Result) Write(dir, version string) error {
	w, err := runlog.Create(dir)
	if err != nil {
		return err
	}
	plan, err := r.info.PlanEvent()
	if err == nil {
		err = w.Charge(plan)
	}
	if err := errors.Join(err, w.Close(), model.Write(filepath.Join(dir, runlog.ModelFile), r.File)); err != nil {
		return err
	}
	if err := newfile.JSON(filepath.Join(dir, ResultFile), "  ", r); err != nil {
		return err
	}
	r.info.Version, r.info.Binary = version, runlog.Binary()
	if r.info.Hashes, err = runlog.Hashes(dir); err != nil {
		return err
	}
	return runlog.WriteInfo(dir, r.info)
}

// backdate gives the directory and its files the time at which the search began: its duration would
// reveal how many candidates were trained (R21).
func (r *Result) backdate(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Chtimes(filepath.Join(dir, e.Name()), r.info.Started, r.info.Started))
	}
	return errors.Join(err, os.Chtimes(dir, r.info.Started, r.info.Started))
}
