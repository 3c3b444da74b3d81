package run

import (
	"context"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// keepKey writes the key of the holdout into the run directory, for a resume; it does nothing for a run without one.
// Like the token, the file is its owner's, and is neither sealed nor published.
func (s *Session) keepKey() error {
	if s.Job.Held == nil {
		return nil
	}
	return newfile.ReplaceOn(s.disk().FS, filepath.Join(s.Dir, runlog.HoldoutFile), 0o600,
		[]byte(hex.EncodeToString(s.Job.Held.Key)+"\n"))
}

// readKey reads it.
func readKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, runlog.HoldoutFile)
	text, err := readfile.All(path, readfile.Short)
	if err != nil {
		return nil, inputError("", "%v: without this key it is unknown which rows were held out", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != 32 {
		return nil, inputError("", "%s: is not the key of a holdout, 64 hexadecimal digits", path)
	}
	return key, nil
}

// divide divides the rows of a table into the part to train on and the part held out, by the key in a run directory,
// and closes the table.
func divide(j *Job, table *data.Table, dir string) (train, held *data.Table, err error) {
	key, err := readKey(dir)
	if err != nil {
		return nil, nil, err
	}
	whole := j.Whole()
	switch split, err := j.SplitBy(key); {
	case err != nil:
		return nil, nil, err
	case split != j.Held.Split:
		return nil, nil, inputError("",
			"%s: with the share and the schema in %s it is not the split that this run began with: rows would change their part",
			filepath.Join(dir, runlog.HoldoutFile), runlog.InfoFile)
	case whole.Adjacency == privacy.ReplaceOne && table.Units() != whole.Rows: // public (R9)
		return nil, nil, inputError(j.Spec.Schema,
			"rows: found %d %s in the table; expected exactly %d, the number in the schema, under replace-one", table.Units(),
			whole.Counted(), whole.Rows)
	}
	var out []bool
	if whole.Adjacency == privacy.ReplaceOne {
		out = data.HeldOutOf(table, key, j.Held.Rows)
	} else {
		out = data.HeldOut(table, key, j.Spec.Holdout)
	}
	tables := []*data.Table{table}
	train = data.Subset(tables, func(record int) bool { return !out[record] })
	held = data.Subset(tables, func(record int) bool { return out[record] })
	err = table.Close()
	table.Blocks = nil // the gate holds the table until the end of the run
	return train, held, err
}

// holdOut divides the rows of a run that holds some out.
func (s *Session) holdOut() (err error) {
	if s.Job.Held != nil {
		s.rows, s.held, err = divide(s.Job, s.rows, s.Dir)
	}
	return err
}

// score answers the private figures of a trained model, by a batch of that number, unless the run log has them. If a
// crash lost the answer the run has none: the charge is spent.
func (s *Session) score(ctx context.Context, end ending, known history, meter account.Meter,
	batch int) ([][]float64, error) {
	if s.held == nil || !end.finite() || known.answers != nil || known.scored && !s.Job.Redraws() {
		return known.answers, nil
	}
	account.AllowGaps(meter) // the method may have stopped early
	j := s.Job
	file, err := modelFile(j, end, job.GuaranteeOf(s.Info))
	if err != nil {
		return nil, err
	}
	m, err := file.New()
	if err != nil {
		return nil, err
	}
	held, facts, err := encoded(ctx, j, s.held, end.choice)
	if err != nil {
		return nil, err
	}
	facts.Rows, facts.Centered, facts.Shifted, facts.LabelMin = j.Held.Rows, false, false, 0
	t := Trainer{Job: &Job{Model: m, Facts: facts}, Table: held, Part: j.Held.Part(), Meter: meter, Streams: j.Streams(),
		Journal: s.writer, First: batch, Workers: s.workers()}
	var answers [][]float64
	err = t.over(func(o *private.Oracle) error {
		answers, err = j.Held.Score.Ask(ctx, o, file.Weights())
		return err
	})
	return answers, err
}

// encoded are rows that the job's model was not trained on, encoded as its run chose, and their facts.
func encoded(ctx context.Context, j *Job, t *data.Table, c oracle.Choice) (*data.Table, oracle.Public, error) {
	with, err := j.Chosen(c)
	if err != nil || with == j {
		return t, j.Facts, err
	}
	r := private.Refinement(j.Facts, c)
	r.Narrow = true
	t, err = t.Refine(ctx, r, 1)
	return t, with.Facts, err
}
