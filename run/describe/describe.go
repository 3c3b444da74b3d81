package describe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/page/description"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Options say what is described, and at which cost.
type Options struct {
	Data      string // the table
	Schema    string // the schema file
	Bins      int    // of a number; 0: chosen by public numbers
	Pairs     [][2]string
	Epsilon   float64
	Delta     float64
	Adjacency string // "": the dataset's, which the ledger knows
	Ledger    string // "": the user's own
	Out       string // directory, new or empty; "": runs and the name of the run
	Version   string // of Sotto

	AcceptDropped bool
	Notice        func(string) // receives warnings, and what only the owner of the data may see

	streams noise.Streams // tests: known noise
}

// Run describes a table. It charges the dataset before it reads rows for the release, and writes the answer to a
// directory of its own, which it returns, before anything that follows from it leaves it (R5). A mistake in the input
// changes nothing on disk.
func Run(ctx context.Context, o Options) (*runlog.Description, string, error) {
	p, b, err := o.plan(ctx)
	if err != nil {
		return nil, "", err
	}
	e, err := o.describe(p, b)
	if err != nil {
		return nil, "", err
	}
	for _, w := range e.Warnings {
		if o.Notice != nil {
			o.Notice(w)
		}
	}
	m, err := model.New("linear", model.Options{Dim: p.Facts.Dim, NormBound: p.Facts.NormBound}) // gives the rows' form
	if err != nil {
		return nil, "", err
	}
	dir := cmp.Or(o.Out, filepath.Join("runs", e.ID))
	undo, err := run.NewDir(dir)
	if err != nil {
		return nil, "", err
	}
	q := run.Inquiry{
		Run: e.ID, Schema: p.Cells, Data: o.Data, Options: data.Options{Unlabeled: true}, Ledger: o.Ledger, Budget: b,
		Why: "private statistics by `sotto describe`", Model: m, Facts: p.Facts, Queries: []oracle.Query{p.Query},
		Seal: map[string]string{runlog.SealFile: "hmac-sha256"}, AcceptDropped: o.AcceptDropped, Notice: o.Notice,
		Streams: o.streams,
	}
	charged, err := q.Ask(ctx, func(batch oracle.Batch) error {
		answer, err := batch.Totals(p.Query)
		e.Answer = slices.Clone(answer)
		return err
	})
	if err != nil {
		if charged == "" {
			undo()
		}
		return nil, "", err
	}
	e.Figures = p.Figures(e.Answer)
	return e, dir, write(ctx, dir, e)
}

// plan is the plan, and its budget.
func (o Options) plan(ctx context.Context) (p Plan, b privacy.Budget, err error) {
	s, err := data.LoadSchema(o.Schema)
	if err != nil {
		return p, b, err
	}
	if data.IsPacked(o.Data) {
		return p, b, inputError(o.Data,
			"is a packed table, whose encoding is fixed; name the table that it was packed from, as histograms are another encoding")
	}
	b = privacy.Budget{Epsilon: o.Epsilon, Delta: o.Delta}
	if b.Adjacency, err = adjacencyOf(ctx, o.Ledger, s.Dataset, o.Adjacency); err != nil {
		return p, b, err
	}
	if err := b.Validate(); err != nil {
		return p, b, inputError("", "--%w", err)
	}
	var pairs []schema.Pair
	for _, two := range o.Pairs {
		pairs = append(pairs, schema.Pair{A: two[0], B: two[1]})
	}
	if p, err = Calibrate(s, o.Bins, pairs, b); err != nil {
		return p, b, inputError(o.Schema, "%w", err)
	}
	return p, b, nil
}

// describe is the record before the release.
func (o Options) describe(p Plan, b privacy.Budget) (*runlog.Description, error) {
	e := &runlog.Description{
		Format: runlog.DescriptionFormat, Started: time.Now().UTC().Truncate(time.Millisecond), Version: o.Version,
		Build: runlog.Program(), Data: job.TablePath(o.Data), Dataset: p.Full.Dataset, Unit: p.Full.Unit, Rows: p.Full.Rows,
		Bins: p.Bins, Pairs: o.Pairs, Budget: b, Accountant: account.Best{}.String(),
		Noise: p.sigma(), Ledger: o.Ledger, Warnings: p.warnings(),
	}
	if o.AcceptDropped {
		e.Assertions = []string{runlog.AcceptDropped}
	}
	var err error
	if e.Schema, err = p.Full.Marshal(); err != nil {
		return nil, err
	}
	if e.Plan, err = privacy.MarshalEvent(p.Event()); err != nil {
		return nil, err
	}
	e.ID, err = job.NewID()
	return e, err
}

// write writes the files of a description, sealed by the ledger that was charged for it.
func write(ctx context.Context, dir string, e *runlog.Description) error {
	l, err := run.FindLedger(ctx, e.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	e.Ledger = l.Where()
	if err := newfile.JSON(filepath.Join(dir, runlog.DescriptionFile), "  ", e); err != nil {
		return err
	}
	table, page, err := pages(e)
	if err != nil {
		return err
	}
	if err := newfile.Replace(filepath.Join(dir, runlog.DescriptionTable), 0o600, table); err != nil {
		return err
	}
	if err := newfile.Replace(filepath.Join(dir, runlog.ReportFile), 0o600, page); err != nil {
		return err
	}
	return run.Seal(l, dir, e.ID, files...)
}

// files are those that a seal is of.
var files = []string{runlog.DescriptionFile, runlog.DescriptionTable, runlog.ReportFile}

// pages are the table and the page of a description.
func pages(e *runlog.Description) (table, page []byte, err error) {
	if table, err = description.CSV(e); err != nil {
		return nil, nil, err
	}
	page, err = description.Page(e)
	return table, page, err
}

// Verify checks a description from its directory alone: that what was asked costs no more than what was charged, and
// that the figures, the table and the page follow from the answer; with a ledger also the charge and the seal.
func Verify(ctx context.Context, dir string, l *ledger.Ledger) ([]record.Finding, error) {
	e, err := runlog.ReadDescription(dir)
	if err != nil {
		return nil, &run.InputError{Err: err}
	}
	fail := func(err error) ([]record.Finding, error) {
		return nil, &run.InputError{Where: filepath.Join(dir, runlog.DescriptionFile), Err: err}
	}
	event, err := privacy.UnmarshalEvent(e.Plan)
	if err != nil {
		return fail(err)
	}
	p, err := Of(e)
	if err != nil {
		return fail(err)
	}
	if len(e.Answer) != p.Facts.Dim {
		return fail(fmt.Errorf("answer: found %d counts; the histograms have %d", len(e.Answer), p.Facts.Dim))
	}
	v, err := run.Charge{Dir: dir, ID: e.ID, Dataset: e.Dataset, Unit: e.Unit, Budget: e.Budget, Accountant: e.Accountant,
		Event: event, Files: files}.Verify()
	if err != nil {
		return fail(err)
	}
	v.Say("plan", privacy.Equal(p.Event(), event), "the histograms cost %v; the record says %v", p.Event(), event)
	v.Fits()
	same, err := equal(p.Figures(e.Answer), e.Figures)
	if err != nil {
		return fail(err)
	}
	v.Say("figures", same, "they follow from the %d noisy counts", len(e.Answer))
	table, page, err := pages(e)
	if err != nil {
		return fail(err)
	}
	for _, f := range []struct {
		name string
		own  []byte
	}{{runlog.DescriptionTable, table}, {runlog.ReportFile, page}} {
		found, err := compare(dir, f.name, f.own, e)
		if err != nil {
			return nil, err
		}
		v.Findings = append(v.Findings, found)
	}
	return v.Charge(ctx, l, "id, started, version, data, dataset, unit, rows and schema")
}

// equal says whether two values have the same JSON.
func equal(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// compare compares a file with what this program makes of the record. Another build may make it differently.
func compare(dir, name string, own []byte, e *runlog.Description) (record.Finding, error) {
	f := record.Finding{What: name, Holds: true, Detail: "this program makes the same file from the record"}
	there, err := readfile.All(filepath.Join(dir, name), readfile.JSON)
	if err != nil {
		return f, &run.InputError{Err: err}
	}
	released := e.Version != "(devel)" && !strings.Contains(e.Version, "+dirty")
	switch {
	case bytes.Equal(there, own):
	case name == runlog.DescriptionTable || released && e.Version == runlog.Version() && e.Build == runlog.Program():
		f.Holds, f.Detail = false, "it was changed: this program, which made it, makes another file from the record"
	default:
		f.Skipped, f.Detail = true, fmt.Sprintf(
			"not checked: it is not the file that this program makes; it was changed, or Sotto %s, which made it, is another build",
			e.Version)
	}
	return f, nil
}
