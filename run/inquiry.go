package run

import (
	"context"
	"runtime"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/schema"
)

// An Inquiry asks private queries about a table without a method: one batch over all of its records. It has no run
// directory; the ledger's entries are its record.
type Inquiry struct {
	Schema  *schema.Schema // its dataset is charged
	Data    string
	Options data.Options // beside what replace-one asks for
	Ledger  string       // "": the user's own
	Budget  privacy.Budget
	Why     string // what the ledger says that it is for
	Model   model.Model
	Facts   oracle.Public // of model and table; its adjacency is the budget's
	Queries []oracle.Query
	Run     string            // a new name, under which the ledger has the charge; "": one is made
	Seal    map[string]string // what the settlement says of files that the answers go to; nil: there are none

	AcceptDropped bool
	Notice        func(string) // receives what only the owner of the data may see

	Streams noise.Streams // tests: known noise; the zero value is secure
}

// Ask reads the table, charges the dataset for all queries, and gives the batch to answer, which asks them. It returns
// the run under which the ledger has the charge. The ledger has it in full before answer is called: reserved, charged
// and settled, so that no later failure leaves anything open or gives anything back. Until then a mistake in the input
// changes nothing on disk.
func (q *Inquiry) Ask(ctx context.Context, answer func(oracle.Batch) error) (run string, err error) {
	plan := privacy.Repeated{Count: 1, Of: q.Facts.Cost(sample.Full{}, q.Queries)}
	meter, err := account.NewPlan(plan, account.Best{}, q.Budget)
	if err != nil {
		return "", err
	}
	if delta := q.Budget.Delta; delta >= 1/float64(q.Facts.Rows) {
		return "", inputError("", "delta: %w: found %v, which is at least 1/%s = %.3g; choose one well below", job.ErrLargeDelta,
			delta, q.Facts.Counted(), 1/float64(q.Facts.Rows))
	}
	gate, err := Gate(ctx, q.Ledger, true, q.Notice)
	if err != nil {
		return "", err
	}
	defer gate.Close()
	gate.Dropped = Dropped(q.Notice, q.AcceptDropped)
	opt := q.Options
	if q.Budget.Adjacency == privacy.ReplaceOne {
		opt.Rows, opt.KeepBad = q.Facts.Rows, true
	}
	opened, err := gate.Open(ctx, access.Train, q.Schema, q.Data, opt)
	if err != nil {
		return "", err
	}
	table, run, err := q.charge(ctx, opened, plan)
	if err != nil {
		return run, err
	}
	defer table.Close()
	job := &Job{Model: q.Model, Facts: q.Facts}
	t := Trainer{Job: job, Table: table, Meter: meter, Streams: q.Streams, Journal: NopJournal{},
		Workers: runtime.GOMAXPROCS(0)}
	o, err := t.Open()
	if err != nil {
		return run, err
	}
	defer o.Close()
	b, err := o.Batch(ctx, sample.Full{}, q.Queries...)
	if err != nil {
		return run, err
	}
	return run, answer(b)
}

// charge charges the ledger and takes the table. On error it closes the table. run is "" if the
// reservation failed; it is set if the reservation is uncertain.
func (q *Inquiry) charge(ctx context.Context, opened *access.Opened,
	plan privacy.Repeated) (table *data.Table, run string, err error) {
	taken := false
	defer func() {
		if !taken {
			opened.Close()
		}
	}()
	l, err := OpenLedger(ctx, q.Ledger)
	if err != nil {
		return nil, "", err
	}
	defer l.Close()
	if run = q.Run; run == "" {
		if run, err = job.NewID(); err != nil {
			return nil, "", err
		}
	}
	b := q.Budget
	r := ledger.Reservation{
		Dataset: q.Schema.Dataset, Unit: q.Schema.Unit, Adjacency: b.Adjacency, Run: run, Epsilon: b.Epsilon, Delta: b.Delta,
		Mark: contentMark(l, opened), Parts: PartMarks(l, opened), Plan: plan, Why: q.Why,
	}
	switch reserved, err := spend(ctx, l, r, plan, q.Seal); {
	case err != nil && !reserved:
		return nil, "", reserveError(err)
	case err != nil:
		return nil, run, err
	}
	taken = true
	table, err = opened.Take(context.WithoutCancel(ctx), l, run)
	return table, run, err
}

// contentMark is the HMAC of a table's content under the ledger's key (R4).
func contentMark(l *ledger.Ledger, opened *access.Opened) []byte {
	h := l.NewMark()
	digest := opened.Digest()
	h.Write(digest[:])
	return h.Sum(nil)
}

// PartMarks are the marks of the parts of a table on several machines or in several files.
func PartMarks(l *ledger.Ledger, opened *access.Opened) (marks [][]byte) {
	parts := opened.Parts()
	if len(parts) < 2 {
		return nil
	}
	for _, d := range parts {
		h := l.NewMark()
		h.Write(d[:])
		marks = append(marks, h.Sum(nil))
	}
	return marks
}
