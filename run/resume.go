package run

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// Abandon settles a run that will not be resumed, and returns the state of the run and of its dataset.
// where is the ledger, if it has moved or needs a password.
func Abandon(ctx context.Context, dir, where string) (known ledger.Run, d ledger.Dataset, err error) {
	return abandon(ctx, dir, Env{Ledger: where})
}

func abandon(ctx context.Context, dir string, env Env) (known ledger.Run, d ledger.Dataset, err error) {
	s, err := reopen(dir, env)
	if err != nil {
		return known, d, err
	}
	defer s.Close()
	switch {
	case s.Info.Lab:
		return known, d, inputError("", "%s: a lab run has reserved nothing; there is nothing to settle", dir)
	case s.Info.Status == runlog.Finished && s.Info.Result == nil:
		return known, d, s.noResult()
	}
	if err := s.enter(); err != nil {
		return known, d, err
	}
	_, err = s.settleDir(ctx)
	if errors.Is(err, ledger.ErrUnknownRun) {
		err = inputError("", "%s: this run reserved nothing in this ledger; there is nothing to settle", dir)
	}
	if err == nil {
		known, err = s.ledger.Run(ctx, s.Info.ID)
	}
	if err == nil {
		d, err = s.ledger.Dataset(ctx, s.Info.Dataset)
	}
	return known, d, err
}

// reopen makes the session of a directory that has a run. Its job is not made yet.
func reopen(dir string, env Env) (s *Session, err error) {
	s = NewSession(nil, env, dir, true)
	if s.Info, err = s.disk().ReadInfo(dir); err != nil {
		return nil, &InputError{Err: err}
	}
	return s, nil
}

// enter locks the directory, reads again what it says, and removes what killed processes left.
func (s *Session) enter() (err error) {
	if s.unlock, err = s.disk().lockDir(s.Dir); err != nil {
		return &InputError{Err: err}
	}
	if s.Info, err = s.disk().ReadInfo(s.Dir); err != nil { // again: no other process writes it now
		return &InputError{Err: err}
	}
	s.setRight(s.Info.Lab)
	return s.disk().Tidy(s.Dir)
}

// Resume continues a run that was stopped or killed: it replays the durable releases, without a second
// access, and goes on. It needs the one-time token that the ledger and the directory share, which it swaps
// first (R7).
func Resume(ctx context.Context, dir string, env Env) (*runlog.Info, error) {
	s, err := reopen(dir, env)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Info.Network != "" {
		return nil, inputError("",
			"%s: is the run directory of an owner in a network; `sotto node` with the same --dir continues its run, and `sotto verify` checks a finished one", dir)
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	ended := s.Info.Status == runlog.Finished
	if ended && env.Data == "" {
		return s.Info, s.finishAgain(ctx)
	}
	if s.Job, err = job.FromInfo(s.Info); err != nil {
		return nil, &InputError{Where: dir, Err: err}
	}
	s.Job.Spec.Data = cmp.Or(env.Data, s.Job.Spec.Data)
	if ended {
		if err := s.loaded(ctx); err != nil {
			return nil, orStopped(ctx, err, ErrInterrupted)
		}
		return s.Info, s.finishAgain(ctx)
	}
	if err := s.mayResume(); err != nil {
		return nil, err
	}
	if err := s.Load(ctx); err != nil {
		return nil, orStopped(ctx, err, ErrInterrupted)
	}
	if err := s.goOn(ctx); err != nil {
		return nil, orStopped(ctx, err, ErrInterrupted)
	}
	var log *runlog.Record
	if s.writer, log, err = s.disk().Continue(dir, s.Job.Redraws()); err != nil {
		return nil, err
	}
	return s.Info, s.train(ctx, log)
}

// mayResume says why a run that has not ended cannot go on in this process.
func (s *Session) mayResume() error {
	if err := s.env.Rows.has(s.Job, s.Info, s.Dir); err != nil {
		return inputError("", "%s: %w", s.Dir, err)
	}
	if err := s.env.together(s.Job); err != nil {
		return inputError("", "%s: %w", s.Dir, err)
	}
	if err := s.Job.Allows(job.OnResume); err != nil {
		return &InputError{Where: s.Dir, Err: err}
	}
	if err := s.right.holds(); err != nil { // it decides what the rows are opened for
		return err
	}
	spec := s.Job.Spec
	spec.Void = spec.Void || s.env.Void
	spec.MetricsTimings = spec.MetricsTimings || s.env.MetricsTimings
	s.Info.Assertions = spec.Assertions()
	_, err := s.Job.Meter()
	return err
}

// goOn takes over the right to the rows that Load has opened, and takes them.
func (s *Session) goOn(ctx context.Context) error {
	if err := s.disk().Sync(s.Dir); err != nil { // before anything that follows from the log leaves
		return err
	}
	known, err := s.disk().Read(s.Dir)
	if err != nil {
		return err
	}
	if err := s.right.takeOver(ctx, known); err != nil {
		return err
	}
	if err := s.env.Owners.Ready(ctx, s.Info.ID); err != nil {
		return err
	}
	if err := s.Take(ctx); err != nil {
		return err
	}
	s.Info.Status = runlog.Running
	s.Result().SinceResumed = true
	if s.Info.LedgerHead == "" { // killed between the reservation and the entry's number in run.json
		return s.writeInfo(ctx)
	}
	return s.disk().WriteInfo(s.Dir, s.Info)
}

// loaded checks that the rows of a finished run came once more.
func (s *Session) loaded(ctx context.Context) error {
	if err := s.Load(ctx); err != nil {
		return err
	}
	if err := s.openLedger(ctx); err != nil {
		return err
	}
	return s.right.same(ctx)
}

// finishAgain ends a run that was killed before its settlement, or after it. Nothing is left to train.
func (s *Session) finishAgain(ctx context.Context) error {
	if _, err := s.SettleAgain(ctx); err != nil {
		return err
	}
	if s.Info.Result.Outcome == Diverged {
		return ErrDiverged
	}
	return nil
}

// SettleAgain ends a run that was killed between the last file of its directory and the settlement in the
// ledger. It returns the charges in the directory; nil if the run was settled.
func (s *Session) SettleAgain(ctx context.Context) (*runlog.Record, error) {
	if s.Info.Result == nil {
		return nil, s.noResult()
	}
	s.setRight(s.Info.Lab)
	_, err := s.disk().FS.Stat(filepath.Join(s.Dir, runlog.ReportFile))
	missing := os.IsNotExist(err)
	switch ended, sealed, err := s.right.settled(ctx); {
	case err != nil:
		return nil, err
	case ended && missing && !sealed:
		return nil, s.report(ctx)
	case ended:
		return nil, nil
	}
	return s.settleDir(ctx)
}

// settleDir settles the run for the charges in its directory. It writes the report first if the run was
// killed before it wrote one.
func (s *Session) settleDir(ctx context.Context) (*runlog.Record, error) {
	if err := s.disk().Sync(s.Dir); err != nil {
		return nil, err
	}
	rec, err := s.disk().Record(s.Info, s.Dir)
	if err != nil {
		return nil, err
	}
	if err := s.askedFor(ctx); err != nil {
		return nil, err
	}
	if err := s.openLedger(ctx); err != nil {
		return nil, err
	}
	token, err := s.currentToken(ctx)
	if err != nil {
		return nil, err
	}
	held := reservation{s, token}
	if s.Info.Status != runlog.Finished { // its hashes are not written yet
		if err := s.join(rec); err != nil {
			return nil, err
		}
	}
	if err := s.report(ctx); err != nil {
		return nil, err
	}
	return rec, held.settle(ctx, rec)
}

func (s *Session) noResult() error {
	return inputError("", "%s: says finished, and no result", filepath.Join(s.Dir, runlog.InfoFile))
}

// askedFor checks that a run under a filter charged what its method asks, given the releases. The ledger
// cannot check this against a plan, and the refund depends on it.
func (s *Session) askedFor(ctx context.Context) error {
	plan, err := s.Info.PlanEvent()
	if _, ok := plan.(privacy.Filtered); err != nil || !ok {
		return err
	}
	job, err := job.FromInfo(s.Info)
	if err != nil {
		return &InputError{Where: s.Dir, Err: err}
	}
	log, err := s.disk().Read(s.Dir)
	if err != nil {
		return err
	}
	known, err := historyOf(log)
	if err != nil {
		return err
	}
	o, done := known.oracle(job, nil, nil, nil)
	defer done()
	file := filepath.Join(s.Dir, runlog.EventsFile)
	switch _, err := newWalk(job, nil).fold(ctx, o, nil); {
	case err == nil, errors.Is(err, replay.ErrEnd):
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return inputError("", "%s: is not what the run's method asks of its releases: %v", file, err)
	}
	if left := log.Released - o.Replayed(); left > 0 {
		return inputError("", "%s: found %d batches after the end of the run", file, left)
	}
	return nil
}

// openLedger opens the ledger that the run reserved in.
func (s *Session) openLedger(ctx context.Context) (err error) {
	if s.ledger == nil {
		s.ledger, err = s.disk().findLedger(ctx, cmp.Or(s.env.Ledger, s.Info.Ledger))
	}
	return err
}

// FromProgram says whether another program gives the rows at path by a descriptor, as Python does, so that they come
// only from it. Standard input is not of that kind: a shell can give the same rows again.
func FromProgram(path string) bool {
	return readfile.Inherited(path) && path != "-" && path != "/dev/stdin"
}
