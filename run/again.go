package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// Began reports whether the job's run directory (Spec.Out) holds the job's run, finished or not, so
// that the caller resumes it. A scheduler may repeat a command, which must begin its run only once.
// Began removes what a process left that died before it wrote run.json, since such a process
// reserved nothing. The run of another spec is an *InputError.
func Began(j *Job) (bool, error) { return began(&machine, j) }

func began(d *disk, j *Job) (bool, error) {
	dir := j.Spec.Out
	if dir == "" {
		return false, j.Spec.Missing("out", "the run directory, which the next process must find; or --out DIR")
	}
	missing := func() (bool, error) {
		_, err := d.FS.Stat(filepath.Join(dir, runlog.InfoFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, inputError(j.Spec.Place("out"), "out: %v", err)
		}
		return err != nil, nil
	}
	none, err := missing()
	if err != nil {
		return false, err
	}
	if none {
		entries, err := d.FS.ReadDir(dir)
		others := func(e os.DirEntry) bool { return foreign(j, e) }
		if errors.Is(err, os.ErrNotExist) || err == nil && (len(entries) == 0 || slices.ContainsFunc(entries, others)) {
			return false, nil
		}
		unlock, err := d.lockDir(dir)
		if err != nil {
			return false, &InputError{Err: err}
		}
		defer unlock()
		if none, err = missing(); err != nil { // again: now nobody else writes it
			return false, err
		}
		if none {
			return false, clearRemains(d, dir)
		}
	}
	info, err := d.ReadInfo(dir)
	if err != nil {
		return false, &InputError{Err: err}
	}
	return true, sameRun(j, info)
}

// foreign reports whether a file is none that the beginning of a run writes; Fit refuses a
// directory with one. Temporary files begin with a dot.
func foreign(j *Job, e os.DirEntry) bool {
	return !slices.Contains(beginning, e.Name()) && !strings.HasPrefix(e.Name(), ".") && !mayBegin(j, e.Name())
}

// clearRemains removes the files of a process that died before it wrote run.json. The caller holds the lock, whose file
// goes last.
func clearRemains(d *disk, dir string) error {
	if err := d.Tidy(dir); err != nil {
		return err
	}
	for _, name := range beginning {
		if err := d.FS.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sameRun refuses a job whose run is not that of info: another budget, method, model or schema.
func sameRun(j *Job, info *runlog.Info) error {
	now, err := job.NewInfo(j, info.Version)
	if err != nil {
		return err
	}
	other := ""
	differs := func(name string, same bool) {
		if other == "" && !same {
			other = name
		}
	}
	differs("schema", sameJSON(now.Schema, info.Schema))
	differs("model", sameJSON(now.Model, info.Model))
	differs("privacy", now.Budget == info.Budget && now.Off == info.Off && now.Accountant == info.Accountant)
	differs("output", now.Output == info.Output)
	differs("lab",
		now.Lab == info.Lab && (now.Seed == nil) == (info.Seed == nil) && (now.Seed == nil || *now.Seed == *info.Seed))
	differs("test", now.Test == info.Test && now.TestLabels == info.TestLabels)
	differs("data", info.Shards > 0 || sameTable(now.Data, info.Data) && now.Labels == info.Labels)
	differs("network", reflect.DeepEqual(now.Sum, info.Sum))
	differs("holdout",
		(info.Holdout == nil) == (j.Spec.Holdout == 0) && (info.Holdout == nil || info.Holdout.Share == j.Spec.Holdout))
	// last: its noise follows from the budget
	differs("method", now.Method == info.Method && sameJSON(now.Config, info.Config))
	if other != "" {
		return inputError(j.Spec.Place("out"),
			"out: %s holds a run with another %s than this spec; name a new directory, or go on with that run by `sotto fit --resume %s`", j.Spec.Out, other, j.Spec.Out)
	}
	return nil
}

// sameTable compares where rows are. Which descriptor another program gave them by says nothing; Resume compares their
// content.
func sameTable(now, began string) bool {
	return now == began || readfile.Inherited(now) && readfile.Inherited(began)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
