package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/sum"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
)

// A Session is one process's work on one run directory: it opens the table, has a right to it, trains and settles. Fit,
// Resume and the owners of a network (gossip/party), whose log is a journal, train through a Session.
type Session struct {
	Job  *Job
	Info *runlog.Info // nil until the directory has one
	Dir  string

	env      Env
	right    right
	ledger   *ledger.Ledger
	writer   *runlog.Writer
	opened   *access.Opened // train and test until they are taken
	tested   *access.Opened
	counts   map[string]int // of loading: for the lab
	rows     *data.Table
	held     *data.Table // the part that is held out; nil: none
	test     *data.Table
	summer   sum.Summer // of workers, who have the rows; nil: none
	pool     Pool       // of all owners; nil: the run releases its own sums
	before   float64    // the part of a filter's limit that was charged by then
	admitted bool       // the table was read for this run before
	unlock   func()
}

// disk is where the run directory and the ledger are.
func (s *Session) disk() *disk {
	if s.env.disk != nil {
		return s.env.disk
	}
	return &machine
}

func (s *Session) notice(text string) {
	if s.env.Notice != nil {
		s.env.Notice(text)
	}
}

// NewSession makes a session on a run directory; begun says that it has a run.
func NewSession(job *Job, env Env, dir string, begun bool) *Session {
	if env.Rows == nil {
		env.Rows = table{env.Data != ""}
	}
	if env.Owners == nil {
		env.Owners = alone{}
	}
	s := &Session{Job: job, env: env, Dir: dir, admitted: begun}
	if job != nil {
		s.setRight(job.Spec.Lab)
	}
	return s
}

// Open opens the oracle over the table of Take. The oracle writes to journal, and first is the number of its
// first batch.
func (s *Session) Open(meter account.Meter, journal oracle.Journal, first int) (*private.Oracle, error) {
	t := Trainer{Job: s.Job, Table: s.rows, Summer: s.summer, Pool: s.pool, Meter: meter, Streams: s.Job.Streams(),
		Journal: journal, First: first, Workers: s.workers()}
	return t.Open()
}

// workers is how many goroutines share a large pass.
func (s *Session) workers() int { return cmp.Or(s.env.Workers, runtime.GOMAXPROCS(0)) }

// train folds the job over its log, which is empty in a new run: it replays what the log holds, and asks for the rest.
// Then it scores the rows that are held out, and ends the run.
func (s *Session) train(ctx context.Context, log *runlog.Record) error {
	known, err := historyOf(log)
	if err != nil {
		return err
	}
	meter, err := s.Job.Meter()
	if err != nil {
		return err
	}
	first := log.Charged()
	if s.Job.Redraws() {
		first = log.Released
		known.charged = min(known.charged, first)
	} else if first > 0 {
		account.AllowGaps(meter)
	}
	s.writer.Guard = func(n int, group []runlog.Charges) error {
		return s.right.reach(context.WithoutCancel(ctx), n, ledgerCharges(group))
	}
	if err := s.openPool(log); err != nil {
		return err
	}
	asked, err := s.Open(meter, s.writer, first)
	if err != nil {
		return err
	}
	start := time.Now()
	end, failed := s.fold(ctx, known, meter, asked)
	if failed == nil {
		failed = s.endPool(ctx)
	}
	seconds := time.Since(start).Seconds()
	closed := errors.Join(asked.Close(), s.closePool())
	if failed == nil && closed == nil {
		end.answers, failed = s.score(ctx, end, known, meter, asked.Batches())
	}
	if failed != nil && ctx.Err() != nil {
		s.writer.Withdraw()
	}
	closed = errors.Join(closed, s.writer.Close())
	s.writer = nil
	switch {
	case closed != nil: // also the cause of the method's failure, if it was the record
		return closed
	case failed != nil && ctx.Err() != nil:
		s.Info.Status = runlog.Interrupted
		s.Result().TrainSeconds += seconds
		if err := s.disk().WriteInfo(s.Dir, s.Info); err != nil {
			return err
		}
		return ErrInterrupted
	case failed != nil:
		return failed
	}
	_, err = s.finish(ctx, end, seconds)
	return err
}

// fold walks along what is known and what the oracle is asked for then. It records each new step, and the states that
// are due.
func (s *Session) fold(ctx context.Context, known history, meter account.Meter,
	asked oracle.Oracle) (end ending, err error) {
	if s.Job.StateEvery > 0 {
		if err := s.writer.SaveStates(); err != nil {
			return end, err
		}
	}
	at := known.Newest()
	walk, err := walkFrom(s.Job, known.Record, at)
	if err != nil {
		return end, inputError("", "%s: %v", s.Dir, err)
	}
	replays, stepped := known.released, 0
	if at != nil {
		replays -= at.Released
		stepped = at.Step
	}
	recorded, most := len(known.Steps), method.MaxSteps(s.Job.Method)
	if f, ok := s.Job.Plan.(privacy.Filtered); ok {
		s.before, _ = account.Part(f, known.Event(), s.Job.Facts.Adjacency)
	}
	start := time.Now()
	s.writer.Durable = func(steps []runlog.Step) { s.progress(steps[len(steps)-1].T, most, recorded, start) }
	o, done := known.oracle(s.Job, at, meter, afterReplay{asked, func() error {
		if stepped < recorded {
			return inputError("",
				"%s: is damaged: %s holds %d steps, and the releases that can be read give %d; use a copy of the directory, or settle it with `sotto ledger settle`", s.Dir, runlog.StepsFile, recorded, stepped)
		}
		return nil
	}})
	defer done()
	return walk.fold(ctx, o, func(st method.Step) error {
		if st.T > recorded && st.T > stepped {
			s.writer.Step(runlog.Step{T: st.T, Rate: st.Rate, GradNorm: st.GradNorm, Moved: st.Moved})
		}
		stepped = st.T
		due := s.Job.StateEvery > 0 && st.Kept != nil && st.Status == method.Running && st.T%s.Job.StateEvery == 0 &&
			st.T < most
		if !due || o.Replayed() < replays { // a state before the end of the replay was saved already
			return nil
		}
		state, err := walk.state(st)
		if err != nil {
			return err
		}
		return s.writer.Save(state)
	})
}

// afterReplay is the oracle that goes on after a replay. It asks may before each batch.
type afterReplay struct {
	oracle.Oracle
	may func() error
}

func (o afterReplay) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	if err := o.may(); err != nil {
		return nil, err
	}
	return o.Oracle.Batch(ctx, s, queries...)
}

// Refine implements oracle.Refiner.
func (o afterReplay) Refine(ctx context.Context, c oracle.Choice) error {
	return oracle.Refine(ctx, o.Oracle, c)
}

func (s *Session) progress(step, most, recorded int, start time.Time) {
	if s.env.Progress == nil {
		return
	}
	p := Progress{Step: step, MaxSteps: most, Epsilon: s.Job.CostBy(account.SpentNear, s.writer.Spent())}
	if done := step - recorded; done > 0 {
		left := float64(p.MaxSteps-step) / float64(done)
		if f, ok := s.Job.Plan.(privacy.Filtered); ok { // it may end sooner, when its budget is spent
			if part, err := account.Part(f, s.writer.Spent(), s.Job.Facts.Adjacency); err == nil && part > s.before {
				left = math.Min(left, (1-part)/(part-s.before))
			}
		}
		p.Left = time.Duration(float64(time.Since(start)) * left)
	}
	s.env.Progress(p)
}

// finish writes the model and settles, in the directory and then in the ledger, so that after a crash at any
// point SettleAgain or a resume completes it. It returns the charges in the directory.
func (s *Session) finish(ctx context.Context, end ending, seconds float64) (*runlog.Record, error) {
	ctx = context.WithoutCancel(ctx) // the rest takes little time
	j := s.Job
	log, err := s.disk().Record(s.Info, s.Dir)
	if err != nil {
		return nil, err
	}
	r, err := resultOf(j, end, log.Charged())
	if err != nil {
		return nil, err
	}
	given(r, s.Result())
	r.TrainSeconds += seconds
	s.Info.Result = r
	if !end.finite() {
		return log, errors.Join(s.settle(ctx, log), ErrDiverged)
	}
	file, err := modelFile(j, end, job.GuaranteeOf(s.Info))
	if err != nil {
		return nil, err
	}
	if err := model.WriteOn(s.disk().FS, filepath.Join(s.Dir, runlog.ModelFile), file); err != nil {
		return nil, err
	}
	s.crash("modelled")
	if s.test != nil {
		m, err := file.New()
		if err != nil {
			return nil, err
		}
		if s.test, _, err = encoded(ctx, j, s.test, end.choice); err != nil {
			return nil, err
		}
		w := file.Weights()
		r.Test = score.Exact(m, w, s.test, j.Schema.ClassNames(), file.Threshold)
		if !s.opened.Same(s.tested) && !s.tested.Ended() { // rows that were trained on are not shown
			r.Test.Examples = score.Examples(j, w, s.test)
		}
	}
	return log, s.settle(ctx, log)
}

// crash marks a point where tests let the process die.
func (s *Session) crash(point string) {
	if s.env.Crash != nil {
		s.env.Crash(point)
	}
}

// Diverged is the outcome of a run without finite parameters.
const Diverged = "diverged"

// Result returns the run's result; it makes one if there is none.
func (s *Session) Result() *runlog.Result {
	if s.Info.Result == nil {
		s.Info.Result = &runlog.Result{}
	}
	return s.Info.Result
}

// settle ends the run, first in its directory, report included, and then in the ledger, which seals the directory.
func (s *Session) settle(ctx context.Context, rec *runlog.Record) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	if now.Before(s.Info.Started) { // the machine's clock was set back
		now = s.Info.Started
	}
	if err := s.join(rec); err != nil {
		return err
	}
	s.Info.Status, s.Info.Finished = runlog.Finished, &now
	var err error
	if s.Info.Hashes, err = s.disk().Hashes(s.Dir); err != nil {
		return err
	}
	if err := s.disk().WriteInfo(s.Dir, s.Info); err != nil {
		return err
	}
	s.crash("finished")
	if err := s.report(ctx); err != nil {
		return err
	}
	err = s.right.settle(ctx, rec)
	s.crash("settled")
	return err
}

// report writes the page for people, which the settlement seals with the other files.
func (s *Session) report(ctx context.Context) error {
	s.closeTables() // frees memory for the report, which needs no rows
	if s.env.Report == nil {
		return nil
	}
	life, err := s.right.life(ctx)
	if err != nil {
		return err
	}
	return s.env.Report(s.Dir, life)
}

// outcomeOf returns the ledger's word for the end of a run.
func outcomeOf(info *runlog.Info) ledger.Outcome {
	switch {
	case info.Status != runlog.Finished:
		return ledger.Abandoned
	case info.Result.Outcome == method.Done.String(), info.Result.Outcome == method.Converged.String():
		return ledger.Done
	}
	return ledger.Stopped
}

func (s *Session) closeWriter() {
	if s.writer != nil {
		s.writer.Close()
		s.writer = nil
	}
}

// closeTables releases the rows.
func (s *Session) closeTables() {
	for _, o := range []*access.Opened{s.opened, s.tested} {
		if o != nil {
			o.Close()
		}
	}
	s.opened, s.tested, s.rows, s.held, s.test = nil, nil, nil, nil, nil
}

// Close releases rows, ledger and lock.
func (s *Session) Close() (err error) {
	s.closeWriter()
	err = s.closePool()
	s.closeTables()
	if s.ledger != nil {
		err = errors.Join(err, s.ledger.Close())
	}
	s.unlockDir()
	return err
}
