package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Env is what surrounds a run. Every field may be left out.
type Env struct {
	Version        string         // of Sotto, for run.json
	Workers        int            // goroutines of a large pass; 0: one per core
	Shards         *Shards        // hold the rows, instead of the spec's data; nil: none
	Ledger         string         // Resume only: the ledger, if it has moved or needs a password
	Data           string         // Resume only: where the rows are now, of a run whose rows came from another program
	Void           bool           // Resume only: an assertion (Spec) that the run did not need when it began
	MetricsTimings bool           // Resume only: times are served as metrics, also where they were not before
	Progress       func(Progress) // receives durable steps, about twice a second
	Notice         func(string)   // receives what only the owner of the data may see

	// Report writes the report of a run that has ended (report.Write), with what the ledger holds of the dataset by then; nil
	// of a lab run. It is called before the settlement, which seals the report with the other files.
	Report func(dir string, life *ledger.History) error

	// Pool opens the pool of a run whose owners add up their sums (network.mode: sum). Come and Ready, if set, wait for the other owners:
	// Come in a new run whose table is one, before anything is written or reserved; Ready after the budget is reserved, and before the
	// run has the rows.
	Pool  func(PoolState) (Pool, error)
	Come  func(context.Context) error
	Ready func(context.Context) error

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
func Fit(ctx context.Context, job *Job, env Env) (*runlog.Info, string, error) {
	switch {
	case env.Shards != nil:
		if err := job.Allows(OnWorkers); err != nil {
			return nil, "", err
		}
	case job.Spec.Data == "":
		return nil, "", job.Spec.missing("data", "the table to train on; or --data FILE")
	}
	if job.Sum != nil && env.Pool == nil {
		return nil, "", errNoPool
	}
	meter, err := job.Meter()
	if err != nil {
		return nil, "", err
	}
	job.Facts.Bytes, job.Facts.Short = env.Shards == nil && job.Bytes(), env.Shards == nil && job.Short()
	s := &Session{Job: job, env: env}
	defer s.Close()
	counts, err := s.Load(ctx)
	if err != nil {
		return nil, "", orStopped(ctx, err, ErrNotBegun)
	}
	if err := job.fixSplit(); err != nil {
		return nil, "", err
	}
	if job.Held != nil {
		if meter, err = job.Meter(); err != nil { // whose events name the split
			return nil, "", err
		}
	}
	if err := s.describe(); err != nil {
		return nil, "", err
	}
	if job.Spec.Lab {
		s.Info.Result = &runlog.Result{LabCounts: counts}
	}
	if env.Come != nil {
		if err := env.Come(ctx); err != nil {
			return nil, "", orStopped(ctx, err, ErrNotBegun)
		}
	}
	undo, err := s.makeDir()
	if err != nil {
		return nil, "", err
	}
	begun := false
	if s.writer, err = s.disk().Create(s.Dir); err == nil {
		begun, err = s.begin(ctx)
	}
	switch {
	case err == nil:
	case begun || errors.Is(err, ledger.ErrUncertain): // the directory holds the token of what may be reserved
		return s.Info, s.Dir, err
	default:
		s.closeWriter()
		undo() // nothing half-written stays behind
		return nil, "", orStopped(ctx, err, ErrNotBegun)
	}
	if err := s.openPool(&runlog.Record{}); err != nil {
		return s.Info, s.Dir, err
	}
	asked, err := s.Open(meter, s.writer, 0)
	if err != nil {
		return s.Info, s.Dir, err
	}
	return s.Info, s.Dir, s.run(ctx, s.Job.walk(nil), asked, asked, &runlog.Record{})
}

// orStopped is err, or how the run ended if a person stopped it.
func orStopped(ctx context.Context, err, how error) error {
	if ctx.Err() != nil {
		return how
	}
	return err
}

// Load reads training and test rows, and returns the counts that only the lab may see. Take returns the tables.
func (s *Session) Load(ctx context.Context) (map[string]int, error) {
	gate, err := s.gate(ctx)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	train := s.loadTable
	if s.env.Shards != nil {
		train = s.openShards
	}
	counts, err := train(ctx, gate)
	if err != nil {
		return nil, err
	}
	if spec := s.Job.Spec; spec.Test != "" && s.Job.Owner == nil {
		opt := data.Options{Labels: spec.TestLabels}
		if s.env.Shards != nil {
			opt.IDKey = s.env.Shards.Secret.IDKey() // a unit with rows in a shard may not be in the test table
		}
		if s.tested, err = gate.Open(ctx, access.Test, s.Job.Schema, spec.Test, opt, s.opened); err != nil {
			return nil, err
		}
	}
	return counts, ctx.Err()
}

// purpose is what the training rows are for.
func (s *Session) purpose() access.Purpose {
	switch {
	case s.Job.Spec.Lab:
		return access.Lab
	case s.Job.Owner != nil:
		return access.Party
	}
	return access.Train
}

// RowOptions says how the training rows are read. Under replace-one their number is public, and a row
// that is dropped keeps its position (R9).
func (j *Job) RowOptions() data.Options {
	opt := data.Options{Labels: j.Spec.Labels, Bytes: j.Facts.Bytes, Short: j.Facts.Short}
	if j.Facts.Adjacency == privacy.ReplaceOne {
		opt.Rows, opt.KeepBad = j.own(), true
	}
	return opt
}

// coded says whether a new run may sum rows that are not float32: its queries are sums with noise, and its model is linear.
// Solvers add in float32, and owners who add up their sums all do, whatever their files are.
func (j *Job) coded() bool {
	return j.Owner == nil && j.Sum == nil && !j.Spec.Privacy.Off && !method.Solves(j.Method) && j.Model.Facts().Coded
}

// Bytes says whether a new run keeps rows of images as bytes.
func (j *Job) Bytes() bool { return j.coded() && data.PixelsOf(j.Schema) != nil }

// Short says whether a new run keeps rows of 16-bit numbers as a packed table has them. No center is taken from those.
func (j *Job) Short() bool { return j.coded() && !centers(j.Method) }

func (s *Session) loadTable(ctx context.Context, gate *access.Gate) (map[string]int, error) {
	var err error
	if s.opened, err = gate.Open(ctx, s.purpose(), s.Job.Schema, s.Job.Spec.Data, s.Job.RowOptions()); err != nil {
		return nil, err
	}
	switch facts := &s.Job.Facts; {
	case s.Info == nil: // a new run
		facts.Bytes, facts.Short = s.opened.Bytes(), s.opened.Short()
		facts.Centered = facts.Centered && !facts.Short
	case facts.Bytes != s.opened.Bytes():
		return nil, inputError(s.Job.Spec.Data, "found a packed table; allowed is the file of images that the run began with, as it sums rows of bytes")
	case facts.Short && !s.opened.Short():
		return nil, inputError(s.Job.Spec.Data, "found a table of float32 numbers; allowed is the packed table that the run began with, as it sums 16-bit numbers")
	}
	stats := s.opened.Stats
	counts := map[string]int{"rows": stats.Rows, "dropped": stats.Dropped}
	for column, n := range stats.Clamped {
		counts["clamped "+column] = n
	}
	return counts, nil
}

// kernels names the float kernels in use: their arithmetic, which all sets share, and the set. Other kernels
// may give other last bits.
func kernels() string {
	set, _ := kern.Level()
	return "lanes8/" + set
}

func (s *Session) describe() (err error) {
	s.Info, err = NewInfo(s.Job, s.env.Version)
	if err == nil && s.shards != nil {
		s.Info.Data, s.Info.Labels, s.Info.Shards = "", "", len(s.shards.Digests())
	}
	return err
}

// NewInfo returns the run.json of a new run, without the fields of the method if the job has none.
func NewInfo(j *Job, version string) (*runlog.Info, error) {
	id, err := NewID()
	if err != nil {
		return nil, err
	}
	i := &runlog.Info{
		Format: runlog.InfoFormat, ID: id, Status: runlog.Running, Started: time.Now().UTC().Truncate(time.Millisecond),
		Version: version, Build: Program(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: kernels(),
		SpecFile: absolute(j.Spec.File), Data: TablePath(j.Spec.Data), Test: TablePath(j.Spec.Test), Labels: absolute(j.Spec.Labels), TestLabels: absolute(j.Spec.TestLabels),
		Dataset: j.Schema.Dataset, Unit: j.Schema.Unit, UnitRows: j.Schema.UnitRows,
		Method: j.Spec.MethodName, Output: string(j.Spec.Output), StateEvery: j.StateEvery,
		Budget: j.Spec.Privacy.Budget(), Off: j.Spec.Privacy.Off,
		Lab: j.Spec.Lab, Seed: j.Spec.Seed, Warnings: j.Warnings, Assumptions: j.Assumptions(), Assertions: j.Spec.Assertions(),
		Disclosure: j.Spec.Disclosure,
	}
	i.Budget.Adjacency = j.Facts.Adjacency
	if j.Accountant != nil {
		i.Accountant = j.Accountant.String()
	}
	if i.Plan, err = privacy.MarshalEvent(j.Plan); err != nil {
		return nil, err
	}
	i.Sum = j.Sum
	if i.Holdout, err = j.Held.info(j.Spec.Holdout); err != nil {
		return nil, err
	}
	i.GDP = j.gdp()
	if i.Schema, err = j.Schema.Marshal(); err != nil {
		return nil, err
	}
	public := j.Facts
	public.Centered = j.Method != nil && centers(j.Method) // as it is asked of the rows
	if j.Method == nil || !shifts(j.Method) {
		public.Shifted, public.LabelMin = false, 0
	}
	parts := map[*json.RawMessage]any{&i.Model: j.Spec.Model, &i.Public: public}
	switch {
	case j.Owner != nil:
		i.MaxSteps, i.NoiseMultiplier = j.Owner.Activations, j.Owner.Method.NoiseMultiplier()
		i.Config, err = json.Marshal(j.Owner.Method)
	case j.Method != nil:
		i.MaxSteps, i.NoiseMultiplier = method.MaxSteps(j.Method), method.NoiseMultiplier(j.Method)
		i.Config, err = method.Encode(j.Method)
	}
	if err != nil {
		return nil, err
	}
	for dst, v := range parts {
		if *dst, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// gdp is the bound by Gaussian DP of the job's plan, nil where no theorem gives one.
func (j *Job) gdp() *account.GaussianBound {
	if j.Spec.Privacy.Off || j.Accountant == nil {
		return nil
	}
	loss, err := j.Accountant.Loss(j.Plan, j.Facts.Adjacency)
	if err != nil {
		return nil
	}
	curve, err := account.NewTradeOff(loss, j.Spec.Privacy.Budget().Delta)
	if err != nil {
		return nil
	}
	return &curve.GaussianBound
}

// Assumptions returns the schema's assumptions with the rows that the method divides by: those of the
// owner in a network.
func (j *Job) Assumptions() []string {
	own := *j.Schema
	own.Rows = j.whole().Rows
	return slices.Concat(own.Assumptions(), j.encodingFacts(), j.holdoutFacts())
}

// encodingFacts says of a run of auto by which numbers numeric columns have bumps.
func (j *Job) encodingFacts() []string {
	auto, chooses := j.Method.(method.Auto)
	if !chooses || !slices.ContainsFunc(j.Schema.Columns, func(c schema.Column) bool { return c.Hats > 0 }) {
		return nil
	}
	noise, err := auto.Noise(j.Facts, j.Spec.terms(j.Accountant))
	if err != nil || noise == 0 {
		return nil
	}
	facts := []string{fmt.Sprintf("Columns that name no encoding have bumps by a rule on public numbers: noise ν√d = %.3g with d = %d, and %.3g %s per feature.", noise, j.Facts.Dim, float64(j.Facts.Rows)/float64(j.Facts.Dim), j.Schema.Counted())}
	if auto.SmoothBumps {
		facts = append(facts, "The weights of bumps were brought closer to 0 by what the known noise adds to them, which costs nothing.")
	}
	return facts
}

// NewID returns a name for a run: the time, and four random bytes.
func NewID() (string, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return time.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b[:]), nil
}

// TablePath returns the name of a table in files that Sotto writes: its absolute path, or the URL of a
// database without the password.
func TablePath(p string) string {
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	return data.Public(data.Join(dir, p))
}

func absolute(p string) string {
	if p == "" || readfile.Inherited(p) {
		return p
	}
	if a, err := filepath.Abs(p); err == nil {
		return a
	}
	return p
}

// makeDir makes and locks the run directory. undo removes it, with its content and the directories above it
// that were made.
func (s *Session) makeDir() (undo func(), err error) {
	dir := s.Job.Spec.Out
	if dir == "" {
		dir = filepath.Join("runs", s.Info.ID)
	}
	fail := func(format string, args ...any) (func(), error) {
		return nil, inputError(s.Job.Spec.Place("out"), "out: "+format, args...)
	}
	missing := missingDirs(s.disk().FS, dir)
	if len(missing) == 0 {
		if entries, err := s.disk().FS.ReadDir(dir); err != nil {
			return fail("%v", err)
		} else if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == lockFile || !s.Job.mayBegin(e.Name()) }) {
			return fail("%s exists and is not empty; allowed is a new or an empty directory", dir)
		}
	}
	removeDirs := func() { // those that are still empty
		for _, d := range missing {
			s.disk().FS.Remove(d)
		}
	}
	undo = func() {
		// run.json goes first, durably: it must not say that the rest is there, also after a power cut. If it stays, so does the
		// rest, and a resume reserves.
		err := s.disk().FS.Remove(filepath.Join(dir, runlog.InfoFile))
		if err == nil {
			err = s.disk().FS.SyncDir(dir)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.unlockDir()
			return
		}
		// This process holds the lock, and removes its file last, so no other process is in the directory
		// yet.
		for _, name := range beginning {
			s.disk().FS.Remove(filepath.Join(dir, name))
		}
		s.unlockDir()
		removeDirs()
	}
	if err := vfs.MkdirAll(s.disk().FS, dir, 0o700); err != nil {
		removeDirs()
		return fail("%v", err)
	}
	s.Dir = dir
	if s.unlock, err = s.disk().lockDir(dir); err != nil {
		removeDirs() // not those with files, which are another run's
		return fail("%v", err)
	}
	// Another run may have begun and ended here before this process got the lock.
	if entries, err := s.disk().FS.ReadDir(dir); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !s.Job.mayBegin(e.Name()) }) {
		s.unlockDir()
		return fail("%s is another run's; allowed is a new or an empty directory", dir)
	}
	return undo, nil
}

// mayBegin says whether a directory in which a run begins may have a file of that name: its lock, and what an owner of a network keeps
// of its coming.
func (j *Job) mayBegin(name string) bool {
	return name == lockFile || name == runlog.PlaceFile && j.Sum != nil
}

// beginning are the files in a run directory before it has run.json. The lock file is last.
var beginning = []string{runlog.EventsFile, runlog.ReleasesFile, runlog.StepsFile, runlog.TokenFile, runlog.HoldoutFile, lockFile}

// missingDirs are the directories that have to be made for dir, deepest first.
func missingDirs(disk vfs.FS, dir string) (missing []string) {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := disk.Lstat(d); err == nil || filepath.Dir(d) == d { // never remove a link to nothing
			return missing
		}
		missing = append(missing, d)
	}
}

func (s *Session) unlockDir() {
	if s.unlock != nil {
		s.unlock()
		s.unlock = nil
	}
}

// recordedLab is the warning in a lab run's run.json.
const recordedLab = "this lab run stands in the ledger of the dataset as not private; its lifetime statement says so from now on"

// begin reserves the budget, durably and before the first access, and writes what a resume needs. begun says
// whether the ledger knows the run: from then on the directory stays.
//
// The directory comes before the ledger: after a crash between the two, either nothing is reserved, or the
// directory has what a resume needs.
func (s *Session) begin(ctx context.Context) (begun bool, err error) {
	if s.ledger, err = s.disk().openLedger(ctx, s.Job.Spec.Ledger); err != nil {
		return false, err
	}
	s.Info.Ledger = s.ledger.Where()
	if err := s.keepKey(); err != nil {
		return false, err
	}
	if s.Job.Spec.Lab {
		if err := s.ready(ctx); err != nil {
			return false, err
		}
		if err := s.Take(ctx); err != nil {
			return false, err
		}
		s.Info.Warnings = append(s.Info.Warnings, recordedLab)
		return false, s.writeInfo(ctx)
	}
	s.token = ledger.NewToken()
	if err := newfile.ReplaceOn(s.disk().FS, filepath.Join(s.Dir, runlog.TokenFile), 0o600, []byte(s.token+"\n")); err != nil {
		return false, err
	}
	if err := s.disk().WriteInfo(s.Dir, s.Info); err != nil {
		return false, err
	}
	if err := s.reserve(ctx); err != nil {
		return false, err // begun all the same where it wraps ledger.ErrUncertain
	}
	s.crash("reserved")
	if err := s.ready(ctx); err != nil {
		return true, orStopped(ctx, err, ErrInterrupted)
	}
	if err := s.Take(ctx); err != nil {
		return true, err
	}
	return true, s.writeInfo(context.WithoutCancel(ctx))
}

// reserve reserves the run's cap in the dataset's budget.
func (s *Session) reserve(ctx context.Context) error {
	r := s.Job.Reservation(s.Info.ID)
	r.Mark, r.Parts, r.Token = contentMark(s.ledger, s.opened), PartMarks(s.ledger, s.opened), s.token
	_, err := s.ledger.Reserve(ctx, r)
	if s.env.reserved != nil {
		err = s.env.reserved(err)
	}
	return reserveError(err)
}

// reserveError is an error of a reservation: a plan without a theorem in the dataset's currency is a mistake in the input.
func reserveError(err error) error {
	var unsupported *account.UnsupportedError
	if errors.As(err, &unsupported) {
		return &InputError{"", err}
	}
	return err
}

// Reservation returns what a run of the job reserves in the ledger.
func (j *Job) Reservation(run string) ledger.Reservation {
	b := j.Spec.Privacy.Budget()
	return ledger.Reservation{Dataset: j.Schema.Dataset, Unit: j.Schema.Unit, Adjacency: j.Facts.Adjacency, Run: run, Epsilon: b.Epsilon, Delta: b.Delta, Plan: j.Plan,
		Shares: account.SharesOf(j.Plan, j.Accountant, j.Facts.Adjacency, b.Delta)}
}

// ReservationOf returns what the run in a directory reserved, but for what names it. A lab run reserves nothing.
func ReservationOf(dir string) (r ledger.Reservation, err error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return r, &InputError{"", err}
	}
	if info.Lab {
		return r, inputError(dir, "found a lab run, which reserves nothing; allowed is one that was charged")
	}
	r = ledger.Reservation{Dataset: info.Dataset, Unit: info.Unit, Adjacency: info.Budget.Adjacency, Epsilon: info.Budget.Epsilon, Delta: info.Budget.Delta, Shares: info.Shares()}
	r.Plan, err = info.PlanEvent()
	return r, err
}

// Admits opens the owner's ledger, which it creates if necessary, and asks whether it admits the reservation of
// the run, unless that is made. name stands for a run that has no ID yet.
func (s *Session) Admits(ctx context.Context, name string) (err error) {
	where := s.Job.Spec.Ledger
	if s.Info != nil {
		where = cmp.Or(where, s.Info.Ledger)
	}
	if s.ledger, err = s.disk().openLedger(ctx, where); err != nil || s.Job.Spec.Lab {
		return err
	}
	if s.Info != nil {
		if _, err := s.ledger.Run(ctx, s.Info.ID); !errors.Is(err, ledger.ErrUnknownRun) {
			return err // it is reserved
		}
	}
	return s.ledger.Admits(ctx, s.Job.Reservation(name))
}

// planHash identifies the plan of a reservation, so that the run resumes with no other: releases under one plan
// say nothing about the cost under another.
func planHash(j *Job) ([]byte, error) {
	sum := sha256.New()
	if err := privacy.WriteEvent(sum, j.Plan); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
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
