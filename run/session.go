package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/private"
	"github.com/sottodp/sotto/oracle/remote"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// A Session is one process's work on one run directory: it opens the table, reserves the budget or proves its
// reservation, opens the oracle and settles. Fit, Resume and the owners of a network (gossip/party), whose log
// is a journal, train through a Session.
type Session struct {
	Job  *Job
	Info *runlog.Info // nil until the directory has one
	Dir  string

	env      Env
	ledger   *ledger.Ledger
	token    string // "" for a lab run
	writer   *runlog.Writer
	train    *data.Table
	held     *data.Table    // the part that is held out; nil: none
	meter    account.Meter  // of the open oracle
	pool     Pool           // of all owners; nil: the run releases its own sums
	shards   *remote.Shards // hold the rows instead of train; nil: none
	test     *data.Table
	opened   *access.Opened // train and test until they are taken
	tested   *access.Opened
	before   float64 // the part of a filter's limit that was charged by then
	maxSteps int     // of the method
	replays  int     // releases that a resume replays
	stepped  int     // steps done
	margins  margins // of the model
	admitted bool    // the table was read for this run before
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

// NewSession makes the session of an owner of a network; begun says that its run directory has a run.
func NewSession(job *Job, env Env, dir string, begun bool) *Session {
	return &Session{Job: job, env: env, Dir: dir, admitted: begun}
}

// Open opens the oracle over the table of Take. The oracle writes to journal, and first is the number of its
// first batch.
func (s *Session) Open(meter account.Meter, journal oracle.Journal, first int) (*private.Oracle, error) {
	t := Trainer{Job: s.Job, Table: s.train, Meter: meter, Streams: s.Job.Streams(), Journal: journal, First: first, Workers: s.workers()}
	if s.shards != nil {
		t.Summer = s.shards
	}
	if s.pool != nil {
		t.Pool = s.pool
	}
	s.meter = meter
	return t.Open()
}

// workers is how many goroutines share a large pass.
func (s *Session) workers() int { return cmp.Or(s.env.Workers, runtime.GOMAXPROCS(0)) }

// run runs the method along a walk over o, which answers from asked, or first from the run log before, scores the rows that are held
// out, and finishes the run directory.
func (s *Session) run(ctx context.Context, walk *walk, o oracle.Oracle, asked *private.Oracle, before *runlog.Record) error {
	s.maxSteps = method.MaxSteps(s.Job.Method)
	if s.token != "" {
		s.writer.Guard = func(n int, group []runlog.Charges) error {
			return s.Reach(context.WithoutCancel(ctx), n, ledgerCharges(group))
		}
	}
	s.writer.AtOnce = s.pool != nil
	if s.Job.StateEvery > 0 {
		if err := s.writer.SaveStates(); err != nil {
			return errors.Join(err, asked.Close())
		}
	}
	start := time.Now()
	recorded := len(before.Steps)
	if f, ok := s.Job.Plan.(privacy.Filtered); ok {
		s.before, _ = account.Part(f, before.Event(), s.Job.Facts.Adjacency)
	}
	s.writer.Durable = func(steps []runlog.Step) { s.progress(steps[len(steps)-1].T, recorded, start) }
	outcome := method.Running.String()
	var failed error
	steps := 0
	for st, err := range walk.steps(ctx, o) {
		if err != nil {
			failed = err
			break
		}
		if st.T > recorded && st.T > steps {
			s.writer.Step(runlog.Step{T: st.T, Rate: st.Rate, GradNorm: st.GradNorm, Moved: st.Moved})
		}
		if s.saves(st, o) {
			state, err := walk.state(st)
			if err == nil {
				err = s.writer.Save(state)
			}
			if err != nil {
				failed = err
				break
			}
		}
		steps, s.stepped = st.T, st.T
		if st.Status != method.Running {
			outcome = st.Status.String()
		}
		if st.Claim != nil {
			c := runlog.Claim(*st.Claim)
			s.Result().Claim = &c
		}
	}
	if failed == nil && s.pool != nil {
		failed = s.pool.End(ctx)
	}
	seconds := time.Since(start).Seconds()
	closeErr := errors.Join(asked.Close(), s.closePool())
	var w []float64
	if failed == nil {
		w = walk.output()
		s.margins = walk.margins(w)
	}
	if s.held != nil && failed == nil && closeErr == nil && s.finite(w) {
		failed = s.score(ctx, w, asked.Batches(), before)
	}
	if failed != nil && ctx.Err() != nil {
		s.writer.Withdraw()
	}
	closeErr = errors.Join(closeErr, s.writer.Close())
	s.writer = nil
	switch {
	case closeErr != nil: // also the cause of the method's failure, if it was the record
		return closeErr
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
	s.Result().Fallback = walk.fallback()
	_, err := s.Finish(ctx, w, steps, outcome, seconds)
	return err
}

// Reach records charges in the ledger before their releases are published.
func (s *Session) Reach(ctx context.Context, batches int, charged []ledger.Charges) error {
	return s.ledger.Reach(ctx, s.Info.ID, s.token, batches, charged)
}

// saves says whether to save the state after st: every StateEvery steps, except the last. States before the end
// of a replay were saved already.
func (s *Session) saves(st method.Step, o oracle.Oracle) bool {
	every := s.Job.StateEvery
	if r, ok := o.(*replay.Oracle); ok && r.Replayed() < s.replays {
		return false
	}
	return every > 0 && st.Kept != nil && st.Status == method.Running && st.T%every == 0 && st.T < s.maxSteps
}

func (s *Session) progress(step, recorded int, start time.Time) {
	if s.env.Progress == nil {
		return
	}
	p := Progress{Step: step, MaxSteps: s.maxSteps, Epsilon: s.Job.cost(account.SpentNear, s.writer.Spent())}
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

// Finish writes the model and settles, in the directory and then in the ledger, so that after a crash at any
// point SettleAgain or a resume completes it. It returns the charges in the directory.
func (s *Session) Finish(ctx context.Context, w []float64, steps int, outcome string, seconds float64) (*runlog.Record, error) {
	ctx = context.WithoutCancel(ctx) // the rest takes little time
	j := s.Job
	rec, err := s.disk().Record(s.Info, s.Dir)
	if err != nil {
		return nil, err
	}
	r := s.Result()
	r.Steps, r.Charged, r.Outcome = steps, rec.Charged(), outcome
	r.TrainSeconds += seconds
	if j.Owner == nil {
		r.SampleBound = numerics(j, r.Charged)
	}
	if !s.finite(w) {
		r.Outcome = Diverged
		return rec, errors.Join(s.settle(ctx, rec), ErrDiverged)
	}
	file, err := s.file(w)
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
		w = file.Weights()
		r.Test = Score(m, w, s.test, j.Schema.ClassNames(), file.Threshold)
		if !s.opened.Same(s.tested) && !s.tested.Ended() { // rows that were trained on are not shown
			r.Test.Examples = examples(j, w, s.test)
		}
	}
	return rec, s.settle(ctx, rec)
}

// finite says whether the parameters make a model.
func (s *Session) finite(w []float64) bool { return Finite(w...) && Finite(s.margins.offset) }

// file is the model file of the run.
func (s *Session) file(w []float64) (*model.File, error) {
	file, err := s.Job.File(w, GuaranteeOf(s.Info))
	if err == nil {
		s.margins.describe(file)
	}
	return file, err
}

// crash marks a point where tests let the process die.
func (s *Session) crash(point string) {
	if s.env.Crash != nil {
		s.env.Crash(point)
	}
}

// File returns the model file of a job with parameters w and the guarantee of its training.
func (j *Job) File(w []float64, g Guarantee) (*model.File, error) {
	guarantee, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	schema, err := j.Schema.Marshal()
	if err != nil {
		return nil, err
	}
	return &model.File{
		Format: model.FileFormat, Model: j.Spec.Model.Name, Dim: j.Schema.Dim(), NormBound: j.Schema.RowNorm, Config: j.Spec.Model.Config, Shape: model.ShapeOf(j.Model), W: w, Classes: j.Schema.ClassNames(), Features: j.Schema.FeatureNames(),
		Threshold: j.Spec.Model.Threshold, Schema: schema, Guarantee: guarantee, Lab: j.Spec.Lab, Created: time.Now().UTC().Format(time.RFC3339), Run: g.Run,
	}, nil
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
	if s.token != "" {
		err = s.settleIn(ctx, s.token, rec)
	}
	s.crash("settled")
	return err
}

// join takes the pace out of the record of a run that ends. An owner's journal has none.
func (s *Session) join(rec *runlog.Record) error {
	if s.Info.Network != "" {
		return nil
	}
	return s.disk().Join(s.Dir, rec)
}

// report writes the page for people, which the settlement seals with the other files.
func (s *Session) report(ctx context.Context) (err error) {
	s.closeTables() // frees memory for the report, which needs no rows
	if s.env.Report == nil {
		return nil
	}
	var life *ledger.History
	if s.ledger != nil && !s.Info.Lab {
		if life, err = s.ledger.History(ctx, s.Info.Dataset, nil); err != nil {
			return err
		}
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

// GuaranteeOf returns the guarantee in the model file of a run.
func GuaranteeOf(i *runlog.Info) Guarantee {
	g := Guarantee{Budget: i.Budget, Off: i.Off, Unit: i.Unit, UnitRows: i.UnitRows, Dataset: i.Dataset, Run: i.ID, Accountant: i.Accountant, GDP: i.GDP, Plan: i.Plan, Method: i.Method, Config: i.Config}
	if plan, err := i.PlanEvent(); err == nil {
		if s := privacy.SharingOf(plan); s.Owners > 0 {
			g.Against = text.Against(s.Colluders) + ", while masks hold"
		}
	}
	return g
}

// Guarantee travels in model.json. ε(δ) is always recomputed from Plan.
type Guarantee struct {
	Budget     privacy.Budget         `json:"budget"`
	Off        bool                   `json:"off,omitempty"`
	Unit       string                 `json:"unit"`
	UnitRows   int                    `json:"unit_rows,omitempty"` // as in run.json
	Dataset    string                 `json:"dataset"`
	Run        string                 `json:"run"`
	Accountant string                 `json:"accountant,omitempty"`
	GDP        *account.GaussianBound `json:"gdp,omitempty"` // as in run.json; not in older files
	Plan       json.RawMessage        `json:"plan"`
	Against    string                 `json:"against,omitempty"` // whom the budget holds against, where owners share the noise: in words
	Method     string                 `json:"method,omitempty"`  // this and Config: not in older files
	Config     json.RawMessage        `json:"config,omitempty"`
}

// numerics states how far the run's numbers are from the theorem's (R14, R15, R23). Noise and samples at a
// total variation distance t from the ideal change (ε, δ) to (ε, δ + (1+e^ε)·t). A batch takes dim values of
// noise and, if it is sampled, at most 2³¹ gaps.
func numerics(j *Job, batches int) string {
	if j.Spec.Privacy.Off {
		return "No noise was added."
	}
	sums := "Sums are exact integers on a public grid"
	if method.Solves(j.Method) {
		sums = "The minimiser is computed in floating point, with a proven bound on all rounding in the sensitivity, and put on a public grid,"
	}
	dim := j.Facts.Dim
	total, whose := samplerDelta(dim, batches, j.Spec.Privacy.Budget().Epsilon), ""
	if n := j.Facts.Owners; n > 0 { // each adds a share of the noise, and draws its own sample
		total, whose = total*float64(n), fmt.Sprintf(" of each of %d owners; that each share is rounded by itself adds less than (1 + e^ε)·2⁻⁹⁰⁰ for each number of a sum", n)
	}
	return fmt.Sprintf("%s and the noise is an exactly rounded Gaussian on the same grid, added without rounding: "+
		"the guarantee holds in the computer's arithmetic, not only on paper. The sampler's distance from the ideal adds at most %.1e to δ over %d coordinates and %d batches%s; "+
		"beyond that it rests on the ChaCha8 cipher, on SHA-256 and on the system's randomness.", sums, total, dim, batches, whose)
}

// samplerDelta bounds what the sampler's distance from the ideal adds to δ where batches release dim numbers each: of noise, and of
// choices of records.
func samplerDelta(dim, batches int, epsilon float64) float64 {
	return noise.SamplerDistance * (float64(dim) + 1<<31) * float64(batches) * (1 + math.Exp(epsilon))
}

// ledgerCharges converts the charges of a directory to the ledger's type.
func ledgerCharges(events []runlog.Charges) []ledger.Charges {
	all := make([]ledger.Charges, len(events))
	for i, c := range events {
		all[i] = ledger.Charges(c)
	}
	return all
}

// settleIn settles the run in the ledger for the events that the ledger recorded, which it compares with those of
// rec (R25). It seals the files of the directory: none may change afterward. A dataset that counts in caps
// keeps the whole reservation charged, and the events are information.
func (s *Session) settleIn(ctx context.Context, token string, rec *runlog.Record) error {
	info := s.Info
	charged, err := privacy.MarshalEvent(rec.Event())
	if err != nil {
		return err
	}
	a, err := account.ByName(info.Accountant)
	if err != nil {
		return err
	}
	plan, err := info.PlanEvent()
	if err != nil {
		return err
	}
	cost := func(charged privacy.Event) (float64, error) {
		return account.Spent(plan, a, charged, info.Budget.Adjacency, info.Budget.Delta)
	}
	seal, err := s.disk().Seal(s.Dir)
	if err != nil {
		return err
	}
	return s.ledger.Settle(ctx, info.ID, token, ledger.Settlement{Batches: rec.Charged(), Outcome: outcomeOf(info), Cost: cost, Delta: info.Budget.Delta, Charged: charged, Seal: seal})
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
	s.opened, s.tested, s.train, s.held, s.test = nil, nil, nil, nil, nil
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
