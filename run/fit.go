package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// Env is what surrounds a run. Every field may be left out.
type Env struct {
	Version        string         // of Sotto, for run.json
	Workers        int            // goroutines of a large pass; 0: one per core
	Rows           Source         // where the training rows are, as with workers (Shards); nil: in the spec's data
	Ledger         string         // Resume only: the ledger, if it has moved or needs a password
	Data           string         // Resume only: where the rows are now, of a run whose rows came from another program
	Void           bool           // Resume only: an assertion (Spec) that the run did not need when it began
	MetricsTimings bool           // Resume only: times are served as metrics, also where they were not before
	Progress       func(Progress) // receives durable steps, about twice a second
	Notice         func(string)   // receives what only the owner of the data may see

	// Report writes the report of a run that has ended (page.Write), with what the ledger holds of the dataset by then;
	// nil of a lab run. It is called before the settlement, which seals the report with the other files.
	Report func(dir string, life *ledger.History) error

	Owners Owners // who release sums together (network.mode: sum); nil: this run releases its own

	Crash    func(point string) // tests: called where a process may die
	reserved func(error) error  // tests: changes how a reservation ends
	disk     *disk              // tests: where run directory and ledger are; nil: the machine's
}

// Progress is the progress of a run, from durable records only (R5).
type Progress struct {
	Step, MaxSteps int
	Epsilon        float64 // spent so far at the run's δ; +Inf without noise
	Left           time.Duration
}

// Errors of a run that its context stopped.
var (
	// ErrInterrupted: the run has begun and can be resumed.
	ErrInterrupted = errors.New("the run was stopped; it can be resumed")
	// ErrNotBegun: nothing was written or charged.
	ErrNotBegun = errors.New("stopped before the run began; nothing was written or spent")
)

// ErrDiverged says that a run's parameters are not finite. The run is settled: its budget stays charged, and
// there is no model.
var ErrDiverged = errors.New("the parameters are not finite and make no model; the budget is spent. A smaller step size helps")

// Fit reads the data, reserves the budget, runs the method, writes the run directory and settles. A mistake
// in the input is an *InputError or a *config.Error and has changed nothing on disk; a refused budget wraps
// privacy.ErrExhausted. Fit returns the run's info and directory, also with ErrInterrupted.
func Fit(ctx context.Context, j *Job, env Env) (*runlog.Info, string, error) {
	runlog.ReadBinary() // while the rows are read
	s := NewSession(j, env, "", false)
	defer s.Close()
	if err := s.check(); err != nil {
		return nil, "", err
	}
	if err := s.Load(ctx); err != nil {
		return nil, "", orStopped(ctx, err, ErrNotBegun)
	}
	if err := j.FixSplit(); err != nil {
		return nil, "", err
	}
	var err error
	if s.Info, err = job.NewInfo(j, env.Version); err != nil {
		return nil, "", err
	}
	s.Info.Binary = runlog.Binary()
	s.env.Rows.describe(s.Info)
	if err := s.env.Owners.Come(ctx); err != nil {
		return nil, "", orStopped(ctx, err, ErrNotBegun)
	}
	undo, err := s.makeDir()
	if err != nil {
		return nil, "", err
	}
	if begun, err := s.begin(ctx); err != nil && !begun {
		s.closeWriter()
		undo() // nothing half-written stays behind
		return nil, "", orStopped(ctx, err, ErrNotBegun)
	} else if err != nil { // the directory holds the token of what may be reserved
		return s.Info, s.Dir, err
	}
	return s.Info, s.Dir, s.train(ctx, &runlog.Record{})
}

// check refuses a run that cannot be, before it reads anything.
func (s *Session) check() error {
	if err := s.Job.Allows(s.env.Rows.setting()); err != nil {
		return err
	}
	if _, here := s.env.Rows.(table); here && s.Job.Spec.Data == "" {
		return s.Job.Spec.Missing("data", "the table to train on; or --data FILE")
	}
	if err := s.env.together(s.Job); err != nil {
		return err
	}
	_, err := s.Job.Meter()
	return err
}

// begin makes the right of a new run, durably and before the first access, and writes what a resume needs. begun says
// whether the ledger may know the run: from then on the directory stays.
func (s *Session) begin(ctx context.Context) (begun bool, err error) {
	if s.writer, err = s.disk().Create(s.Dir); err != nil {
		return false, err
	}
	if s.ledger, err = s.disk().openLedger(ctx, s.Job.Spec.Ledger); err != nil {
		return false, err
	}
	s.Info.Ledger = s.ledger.Where()
	if err := s.keepKey(); err != nil {
		return false, err
	}
	if begun, err = s.right.begin(ctx); err != nil {
		return begun, err
	}
	if err := s.env.Owners.Ready(ctx, s.Info.ID); err != nil {
		return begun, orStopped(ctx, err, ErrInterrupted)
	}
	if err := s.Take(ctx); err != nil {
		return begun, err
	}
	return begun, s.writeInfo(context.WithoutCancel(ctx))
}

// orStopped is err, or how the run ended if a person stopped it.
func orStopped(ctx context.Context, err, how error) error {
	if ctx.Err() != nil {
		return how
	}
	return err
}

// Load reads training and test rows. Take returns the tables.
func (s *Session) Load(ctx context.Context) error {
	gate, err := s.gate(ctx)
	if err != nil {
		return err
	}
	defer gate.Close()
	if s.counts, err = s.env.Rows.open(ctx, s, gate); err != nil {
		return err
	}
	if test := s.Job.TestTable(); test != "" {
		opt := data.Options{Labels: s.Job.Spec.TestLabels, Narrow: data.Narrows(s.Job.Schema)}
		s.env.Rows.beside(&opt)
		if s.tested, err = gate.Open(ctx, access.Test, s.Job.Schema, test, opt, s.opened); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// writeInfo writes run.json with the ledger's head as it is now.
func (s *Session) writeInfo(ctx context.Context) error {
	head, err := s.ledger.Head(ctx)
	if err != nil {
		return err
	}
	s.Info.LedgerHead = fmt.Sprintf("%d %s", head.Seq, head.Hash)
	return s.disk().WriteInfo(s.Dir, s.Info)
}
