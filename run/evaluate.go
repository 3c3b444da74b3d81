package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/quality"
	"github.com/sottodp/sotto/run/runlog"
)

// A PrivateEvaluation says how a model is scored on labeled rows that are protected. Their dataset is charged.
type PrivateEvaluation struct {
	Epsilon float64
	Delta   *float64 // nil: that of the training
	By      string   // column of levels by which figures are split; "": none
	Dataset string   // whose budget is charged; "": that of the training
	Rows    int      // number of rows or units in the table, a public number; 0: that of the training
	Out     string   // directory of the record, new or empty; "": evaluations and the name of the evaluation
	Labels  string   // file of labels, for images
	Ledger  string   // empty: that of the model's run, else the user's own
	Version string   // of Sotto

	AcceptDropped bool
	Notice        func(string)

	streams noise.Streams // tests: known noise
}

// EvaluatePrivately scores the model on a table by noisy counts. It charges the dataset before it reads rows for them,
// and writes the answers to a directory of their own, which it returns, before anything that follows from them leaves
// it (R5).
func (m *Trained) EvaluatePrivately(ctx context.Context, path string,
	o PrivateEvaluation) (*runlog.Evaluation, string, error) {
	schema := *m.Schema
	schema.Dataset, schema.Rows = cmp.Or(o.Dataset, schema.Dataset), cmp.Or(o.Rows, schema.Rows)
	b := m.Guarantee.Budget
	b.Epsilon = o.Epsilon
	if o.Delta != nil {
		b.Delta = *o.Delta
	}
	if err := b.Validate(); err != nil {
		return nil, "", inputError("--epsilon", "%w", err)
	}
	if schema.Rows < 1 {
		return nil, "", inputError("--rows", "found %d; write about how many %s the table has, a public number", schema.Rows,
			schema.Counted())
	}
	plan, err := quality.New(quality.Subject{Schema: &schema, Threshold: m.File.Threshold,
		Probabilities: m.Model.Facts().Probabilities,
		Adjacency:     b.Adjacency, Rows: schema.Rows, By: o.By})
	if err != nil {
		return nil, "", inputError("--by", "%w", err)
	}
	if plan, err = plan.Calibrate(account.Best{}, b); err != nil {
		return nil, "", inputError("--delta", "%w", err)
	}
	e := &runlog.Evaluation{
		Format: runlog.EvaluationFormat, Started: time.Now().UTC().Truncate(time.Millisecond), Version: o.Version,
		Run: m.File.Run, Data: job.TablePath(path), Dataset: schema.Dataset, Unit: schema.Unit, UnitRows: schema.UnitRows,
		Rows:   schema.Rows,
		Budget: b, Accountant: account.Best{}.String(), Ledger: cmp.Or(o.Ledger, m.Ledger),
	}
	if e.Plan, err = privacy.MarshalEvent(plan.Event()); err != nil {
		return nil, "", err
	}
	if e.Scores, err = json.Marshal(plan); err != nil {
		return nil, "", err
	}
	if e.Model, err = runlog.Hash(filepath.Dir(m.path), filepath.Base(m.path)); err != nil {
		return nil, "", err
	}
	if e.ID, err = job.NewID(); err != nil {
		return nil, "", err
	}
	dir := cmp.Or(o.Out, filepath.Join("evaluations", e.ID))
	undo, err := NewDir(dir)
	if err != nil {
		return nil, "", err
	}
	q := Inquiry{
		Run: e.ID, Schema: &schema, Data: path, Options: data.Options{Labels: o.Labels}, Ledger: e.Ledger, Budget: b,
		Why:   "evaluation by `sotto evaluate`",
		Model: m.Model, Queries: plan.Queries(), Seal: map[string]string{runlog.SealFile: "hmac-sha256"},
		AcceptDropped: o.AcceptDropped, Notice: o.Notice, Streams: o.streams,
		Facts: oracle.Public{Dim: m.Model.Dim(), Rows: schema.Rows, UnitRows: schema.UnitRows, Classes: schema.Classes(),
			Adjacency: b.Adjacency, NormBound: m.Model.Facts().NormBound},
	}
	charged, err := q.Ask(ctx, func(batch oracle.Batch) (err error) {
		e.Answers, err = plan.Answers(batch, m.File.Weights())
		return err
	})
	if err != nil {
		if charged == "" {
			undo()
		}
		return nil, "", err
	}
	if e.Private, err = plan.Figures(e.Answers); err != nil {
		return nil, dir, err
	}
	e.Private.On, e.Private.Epsilon, e.Private.Delta = runlog.OnTable, b.Epsilon, b.Delta
	return e, dir, writeEvaluation(ctx, dir, e)
}

// NewDir makes a directory for files, or takes an empty one. undo removes what was made.
func NewDir(dir string) (undo func(), err error) {
	if err := newfile.EmptyDir(dir); err != nil {
		return nil, err
	}
	missing := missingDirs(vfs.OS{}, dir)
	undo = func() {
		for _, d := range missing {
			os.Remove(d)
		}
	}
	if err := vfs.MkdirAll(vfs.OS{}, dir, 0o700); err != nil {
		undo()
		return nil, inputError("--out", "found %s, where no directory can be made; name a new or an empty one", dir)
	}
	return undo, nil
}

// writeEvaluation writes an evaluation, sealed by the ledger that was charged for it.
func writeEvaluation(ctx context.Context, dir string, e *runlog.Evaluation) error {
	l, err := FindLedger(ctx, e.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	e.Ledger = l.Where()
	if err := newfile.JSON(filepath.Join(dir, runlog.EvaluationFile), "  ", e); err != nil {
		return err
	}
	return Seal(l, dir, e.ID, runlog.EvaluationFile)
}

// Seal writes the seal of files in the directory of an inquiry that a ledger was charged for.
func Seal(l *ledger.Ledger, dir, id string, files ...string) error {
	hashes, err := hashesOf(dir, files)
	if err != nil {
		return err
	}
	mac, err := l.SealOf(id, hashes)
	if err != nil {
		return err
	}
	return newfile.Replace(filepath.Join(dir, runlog.SealFile), 0o600, []byte(mac+"\n"))
}

// hashesOf are the hashes of the files that a seal is of.
func hashesOf(dir string, files []string) (hashes map[string]string, err error) {
	hashes = map[string]string{}
	for _, name := range files {
		if hashes[name], err = runlog.Hash(dir, name); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

// A Charge is the charge of an inquiry, as its directory says it.
type Charge struct {
	Dir               string
	ID, Dataset, Unit string
	Budget            privacy.Budget
	Accountant        string
	Event             privacy.Event
	Files             []string // that are sealed
}

// Verify begins the verification of a charge. See [Verification.Fits] and [Verification.Charge].
func (c Charge) Verify() (v *Verification, err error) {
	a, err := account.ByName(c.Accountant)
	if err != nil {
		return nil, err
	}
	v = &Verification{Dir: c.Dir, Job: &Job{Accountant: a, Plan: privacy.Repeated{Count: 1, Of: c.Event}},
		Info:   &runlog.Info{ID: c.ID, Dataset: c.Dataset, Unit: c.Unit, Budget: c.Budget, Accountant: c.Accountant},
		Record: &runlog.Record{Events: []runlog.Charges{{Count: 1, Event: c.Event}}}}
	if v.seal, err = hashesOf(c.Dir, c.Files); err != nil {
		return nil, err
	}
	return v, nil
}

// Fits checks that the event of a charge fits its budget.
func (v *Verification) Fits() { v.cost("budget", v.Record.Events[0].Event) }

// Charge ends the verification of a charge: it checks that the ledger holds the charge and the seal
// of its files. Without a ledger, fields that only the seal covers, which unchecked names, stay
// unchecked.
func (v *Verification) Charge(ctx context.Context, l *ledger.Ledger, unchecked string) ([]record.Finding, error) {
	if l == nil {
		v.Findings = append(v.Findings, record.Finding{What: "record", Holds: true, Skipped: true,
			Detail: "not checked: " + unchecked + " follow from nothing in the directory; only a ledger's seal covers them"})
	}
	err := v.ledger(ctx, l)
	return v.Findings, err
}

// VerifyEvaluation checks a charged evaluation from its directory alone: that what was asked costs what was charged,
// and that the figures follow from the answers; with a ledger also the charge and the seal.
func VerifyEvaluation(ctx context.Context, dir string, l *ledger.Ledger) ([]record.Finding, error) {
	e, err := runlog.ReadEvaluation(dir)
	if err != nil {
		return nil, &InputError{Err: err}
	}
	fail := func(err error) ([]record.Finding, error) {
		return nil, &InputError{Where: filepath.Join(dir, runlog.EvaluationFile), Err: err}
	}
	event, err := privacy.UnmarshalEvent(e.Plan)
	if err != nil {
		return fail(err)
	}
	var plan quality.Plan
	if err := json.Unmarshal(e.Scores, &plan); err != nil {
		return fail(err)
	}
	if err := plan.Check(); err != nil {
		return fail(err)
	}
	v, err := Charge{Dir: dir, ID: e.ID, Dataset: e.Dataset, Unit: e.Unit, Budget: e.Budget, Accountant: e.Accountant,
		Event: event, Files: []string{runlog.EvaluationFile}}.Verify()
	if err != nil {
		return fail(err)
	}
	v.Say("plan", privacy.Equal(plan.Event(), event) && plan.Adjacency == e.Budget.Adjacency,
		"%d scores cost %v; the record says %v", len(plan.Scores), plan.Event(), event)
	v.Fits()
	follow, err := plan.Figures(e.Answers)
	if err != nil {
		return fail(err)
	}
	follow.On, follow.Epsilon, follow.Delta = runlog.OnTable, e.Budget.Epsilon, e.Budget.Delta
	own, err := json.Marshal(follow)
	if err != nil {
		return fail(err)
	}
	said, err := json.Marshal(e.Private)
	if err != nil {
		return fail(err)
	}
	v.Say("figures", bytes.Equal(own, said), "they follow from the %d noisy answers", len(e.Answers))
	return v.Charge(ctx, l, "id, started, version, model, run, data, dataset, unit and rows")
}

// IsEvaluation says whether dir is that of a charged evaluation.
func IsEvaluation(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, runlog.EvaluationFile))
	return err == nil
}

// IsDescription says whether dir is that of a description.
func IsDescription(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, runlog.DescriptionFile))
	return err == nil
}
