package run

import (
	"cmp"
	"context"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/job"
)

// A Trainer trains on private rows. It is the only place that assembles an oracle over them: fit, resume,
// verify, tune, compare, audits, simulations, owners of a network, papers and benchmarks differ in what
// they give it. Open needs the job's Model and Facts, Train the whole job.
type Trainer struct {
	Job     *Job
	Table   *data.Table
	Part    string     // of a divided table, which Table is; "": that of the job's method
	Summer  sum.Summer // where the rows are, if Table has none
	Pool    sum.Pool   // of all owners, where the job's facts name several
	Meter   account.Meter
	Journal oracle.Journal // NopJournal in the lab, and if another keeps the log
	Streams noise.Streams
	First   int // number of the first batch
	Workers int // goroutines of a large pass; 0 means 1
}

// Open opens the oracle. Its Close releases the answers of an unfinished batch.
func (t *Trainer) Open() (*private.Oracle, error) {
	return private.New(private.Config{
		Table: t.Table, Summer: t.Summer, Model: t.Job.Model, Facts: t.Job.Facts, Part: cmp.Or(t.Part, t.Job.Part()),
		Meter:   t.Meter,
		Journal: t.Journal, Streams: t.Streams, First: t.First, Workers: t.Workers, Pool: t.Pool, Own: t.Job.Own(),
	})
}

// Train runs the job's method from its beginning over o and returns the output and the last step.
func Train(ctx context.Context, j *Job, o oracle.Oracle) (w []float64, last method.Step, err error) {
	walk := newWalk(j, nil)
	end, err := walk.fold(ctx, o, nil)
	return end.w, walk.last, err
}

// Train opens the oracle, runs the job's method over it, or over the oracle that through returns, and
// closes it.
func (t *Trainer) Train(ctx context.Context,
	through func(*private.Oracle) oracle.Oracle) (w []float64, last method.Step, err error) {
	err = t.over(func(o *private.Oracle) error {
		asked := oracle.Oracle(o)
		if through != nil {
			asked = through(o)
		}
		w, last, err = Train(ctx, t.Job, asked)
		return err
	})
	return w, last, err
}

// Model trains, and returns the model file of the output with that guarantee.
func (t *Trainer) Model(ctx context.Context, g job.Guarantee) (file *model.File, err error) {
	err = t.over(func(o *private.Oracle) error {
		end, err := newWalk(t.Job, nil).fold(ctx, o, nil)
		if err == nil && !end.finite() {
			err = ErrDiverged
		}
		if err == nil {
			file, err = modelFile(t.Job, end, g)
		}
		return err
	})
	return file, err
}

// over opens the oracle for do, and closes it.
func (t *Trainer) over(do func(*private.Oracle) error) error {
	o, err := t.Open()
	if err != nil {
		return err
	}
	return cmp.Or(do(o), o.Close())
}

// NopJournal keeps nothing: for the lab, and for candidates and owners whose log another keeps.
type NopJournal struct{}

// Charge keeps nothing.
func (NopJournal) Charge(privacy.Event) error { return nil }

// Release keeps nothing.
func (NopJournal) Release([][]float64) error { return nil }
