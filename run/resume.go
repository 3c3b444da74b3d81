package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// Abandon settles a run that will not be resumed, and returns the state of the run and of its dataset.
// where is the ledger, if it has moved or needs a password.
func Abandon(ctx context.Context, dir, where string) (known ledger.Run, d ledger.Dataset, err error) {
	return abandon(ctx, dir, Env{Ledger: where})
}

func abandon(ctx context.Context, dir string, env Env) (known ledger.Run, d ledger.Dataset, err error) {
	s := &Session{env: env, Dir: dir}
	defer s.Close()
	if s.Info, err = s.disk().ReadInfo(dir); err != nil {
		return known, d, &InputError{"", err}
	}
	switch {
	case s.Info.Lab:
		return known, d, inputError("", "%s: a lab run has reserved nothing; there is nothing to settle", dir)
	case s.Info.Status == runlog.Finished && s.Info.Result == nil:
		return known, d, s.noResult()
	}
	if s.unlock, err = s.disk().lockDir(dir); err != nil {
		return known, d, &InputError{"", err}
	}
	if err := s.disk().Tidy(dir); err != nil {
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
	if s.Info.Status != runlog.Finished { // its hashes are not written yet
		if err := s.join(rec); err != nil {
			return nil, err
		}
	}
	if err := s.report(ctx); err != nil {
		return nil, err
	}
	return rec, s.settleIn(ctx, token, rec)
}

func (s *Session) noResult() error {
	return inputError("", "%s: says finished, and no result", filepath.Join(s.Dir, runlog.InfoFile))
}

// askedFor checks that a run under a filter charged what its method asks, given the releases. The ledger
// cannot check this against a plan, and the refund depends on it.
func (s *Session) askedFor(ctx context.Context) error {
	dir, info := s.Dir, s.Info
	plan, err := info.PlanEvent()
	if _, ok := plan.(privacy.Filtered); err != nil || !ok {
		return err
	}
	job, err := jobOf(info)
	if err != nil {
		return &InputError{dir, err}
	}
	rec, err := s.disk().Read(dir)
	if err != nil {
		return err
	}
	next, done := released(rec, nil, rec.Charged())
	defer done()
	o := &replay.Oracle{Facts: job.Facts, Next: next}
	for _, err := range job.walk(nil).steps(ctx, o) {
		switch {
		case errors.Is(err, replay.ErrEnd):
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return inputError("", "%s: is not what the run's method asks of its releases: %v", filepath.Join(dir, runlog.EventsFile), err)
		}
	}
	if left := rec.Released - o.Replayed(); left > 0 {
		return inputError("", "%s: found %d batches after the end of the run", filepath.Join(dir, runlog.EventsFile), left)
	}
	return nil
}

// Resume continues a run that was stopped or killed: it replays the durable releases, without a second
// access, and goes on. It needs the one-time token that the ledger and the directory share, which it swaps
// first (R7).
func Resume(ctx context.Context, dir string, env Env) (*runlog.Info, error) {
	s := &Session{env: env, Dir: dir, admitted: true}
	info, err := s.disk().ReadInfo(dir)
	if err != nil {
		return nil, &InputError{"", err}
	}
	s.Info = info
	if info.Network != "" {
		return nil, inputError("", "%s: is the run directory of an owner in a network; `sotto node` with the same --dir continues its run, and `sotto verify` checks a finished one", dir)
	}
	defer s.Close()
	if s.unlock, err = s.disk().lockDir(dir); err != nil {
		return nil, &InputError{"", err}
	}
	if info, err = s.disk().ReadInfo(dir); err != nil { // again: now nobody else writes it
		return nil, &InputError{"", err}
	}
	s.Info = info
	if err := s.disk().Tidy(dir); err != nil {
		return nil, err
	}
	if info.Status == runlog.Finished && env.Data == "" {
		return info, s.finishAgain(ctx)
	}
	if s.Job, err = jobOf(info); err != nil {
		return nil, &InputError{dir, err}
	}
	if env.Data != "" {
		s.Job.Spec.Data = env.Data
	}
	if info.Status == runlog.Finished {
		if err := s.loaded(ctx); err != nil {
			return nil, orStopped(ctx, err, ErrInterrupted)
		}
		return info, s.finishAgain(ctx)
	}
	if err := s.mayResume(); err != nil {
		return nil, err
	}
	job := s.Job
	job.Spec.Void = job.Spec.Void || env.Void
	job.Spec.MetricsTimings = job.Spec.MetricsTimings || env.MetricsTimings
	info.Assertions = job.Spec.Assertions()
	meter, err := job.Meter()
	if err != nil {
		return nil, err
	}
	if _, err := s.Load(ctx); err != nil {
		return nil, orStopped(ctx, err, ErrInterrupted)
	}
	if err := s.disk().Sync(dir); err != nil { // before anything that follows from the record leaves
		return nil, err
	}
	known, err := s.disk().Read(dir)
	if err != nil {
		return nil, err
	}
	if err := s.takeOver(ctx, known); err != nil {
		return nil, orStopped(ctx, err, ErrInterrupted)
	}
	if err := s.ready(ctx); err != nil {
		return info, orStopped(ctx, err, ErrInterrupted)
	}
	if err := s.Take(ctx); err != nil {
		return nil, err
	}
	info.Status = runlog.Running
	s.Result().SinceResumed = true
	write := func(context.Context) error { return s.disk().WriteInfo(dir, info) }
	if info.LedgerHead == "" { // killed between the reservation and the entry's number in run.json
		write = s.writeInfo
	}
	if err := write(ctx); err != nil {
		return nil, err
	}
	// A part that was masked is never drawn again.
	seeded := info.Seed != nil && env.Pool == nil
	var rec *runlog.Record
	if s.writer, rec, err = s.disk().Continue(dir, seeded); err != nil {
		return nil, err
	}
	// The replay charges the meter again, in memory, for what the run log says was charged. A seeded run
	// draws the last, unreleased batches once more; otherwise they are lost, and its plan has gaps.
	charged := rec.Charged()
	if seeded {
		charged = rec.Released
	} else {
		account.AllowGaps(meter)
	}
	if err := s.openPool(rec); err != nil {
		return nil, err
	}
	asked, err := s.Open(meter, s.writer, charged)
	if err != nil {
		return nil, err
	}
	trained, err := trainedBy(rec)
	if err != nil {
		return nil, errors.Join(err, asked.Close())
	}
	walk, err := job.walkFrom(rec, rec.Newest())
	if err != nil {
		return nil, errors.Join(inputError("", "%s: %v", dir, err), asked.Close())
	}
	next, done := released(rec, rec.Newest(), min(charged, trained.charged))
	defer done()
	if s.replays = trained.released; walk.from != nil {
		s.replays -= rec.Newest().Released
		s.stepped = rec.Newest().Step
	}
	o := &replay.Oracle{Facts: job.Facts, Part: job.Part(), Next: next, Meter: meter, Then: afterReplay{asked, func() error {
		if s.stepped < len(rec.Steps) {
			return inputError("", "%s: is damaged: %s holds %d steps, and the releases that can be read give %d; allowed is a copy of the directory, or `sotto ledger settle`", dir, runlog.StepsFile, len(rec.Steps), s.stepped)
		}
		return nil
	}}}
	return info, s.run(ctx, walk, o, asked, rec)
}

// mayResume says why a run that has not ended cannot go on in this process.
func (s *Session) mayResume() error {
	dir, info, env := s.Dir, s.Info, s.env
	if d := s.Job.Spec.Data; env.Data == "" && info.Shards == 0 && FromProgram(d) {
		return inputError("", "%s: the program that started this run gave it its rows, through %s, and only that program has them: repeat the same fit there, in Python with run_dir=%q", dir, d, dir)
	}
	if info.Sum != nil && env.Pool == nil {
		return inputError("", "%s: is the run of %s, one of %d owners who add up their sums; it goes on only with all of them. Allowed is to repeat `sotto node` with the same --dir", dir, info.Sum.Name(), len(info.Sum.Names))
	}
	if err := s.Job.Allows(OnResume); err != nil {
		return &InputError{dir, err}
	}
	if info.Lab { // decides what the rows are opened for
		if err := s.reservedNothing(); err != nil {
			return err
		}
	}
	switch away := env.Shards; {
	case away == nil && info.Shards > 0:
		return inputError("", "%s: its rows are in %s on other machines; allowed is to go on with --workers and --key", dir, shardsOf(info.Shards))
	case away != nil && away.Carrier.Shards() != info.Shards:
		return inputError("", "%s: its rows are in %s; found %s", dir, shardsOf(info.Shards), shardsOf(away.Carrier.Shards()))
	}
	return nil
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

// jobOf rebuilds a job from run.json, where everything is configured already.
func jobOf(info *runlog.Info) (*Job, error) {
	entry, err := method.Lookup(info.Method)
	if err != nil {
		return nil, OtherBuild(info, "method", info.Method)
	}
	m, err := entry.Decode(info.Config)
	if err != nil {
		return nil, err
	}
	return jobWith(info, m)
}

// jobWith is the job of run.json with the method m; nil for a method that is not of package method.
func jobWith(info *runlog.Info, m method.Method) (j *Job, err error) {
	j = &Job{Method: m}
	if j.Schema, err = schema.FromJSON(info.Schema); err != nil {
		return nil, err
	}
	if j.Schema.Dataset != info.Dataset || j.Schema.Unit != info.Unit || j.Schema.UnitRows != info.UnitRows {
		return nil, fmt.Errorf("%s: the schema is of the dataset %q by %s, the run of %q by %s", runlog.InfoFile, j.Schema.Dataset, text.Whom(j.Schema.Unit, j.Schema.UnitRows), info.Dataset, info.Whom())
	}
	delta := info.Budget.Delta
	j.Spec = &Spec{
		File: info.SpecFile, Data: info.Data, Test: info.Test, Labels: info.Labels, TestLabels: info.TestLabels, MethodName: info.Method, Method: m,
		Privacy: PrivacySpec{Off: info.Off, Epsilon: info.Budget.Epsilon, Delta: &delta, Adjacency: info.Budget.Adjacency, Accountant: info.Accountant},
		Lab:     info.Lab, Seed: info.Seed, Ledger: info.Ledger,
		AcceptDelta: slices.Contains(info.Assertions, runlog.AcceptDelta), AcceptDropped: slices.Contains(info.Assertions, runlog.AcceptDropped),
		TestOverlaps: slices.Contains(info.Assertions, runlog.TestOverlaps), Void: slices.Contains(info.Assertions, runlog.Void),
		MetricsTimings: slices.Contains(info.Assertions, runlog.MetricsTimings),
	}
	if err := j.Spec.Allows(OnOneTable); err != nil {
		return nil, err
	}
	if err := j.setHeldOut(info.Holdout); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(info.Model, &j.Spec.Model); err != nil {
		return nil, err
	}
	if err := knows(info, j.Spec.Model); err != nil {
		return nil, err
	}
	if j.Spec.Output, err = method.ParseOutput(info.Output); err != nil {
		return nil, err
	}
	if s := info.Sum; s != nil {
		if err := s.Check(); err != nil {
			return nil, err
		}
		if j.Schema.Rows != s.Total() {
			return nil, fmt.Errorf("%s: sum.rows: found %d rows in all; the schema has %d", runlog.InfoFile, s.Total(), j.Schema.Rows)
		}
		j.Sum, j.Spec.sum, j.Spec.summed = s, s, true
	}
	if err := j.setModel(); err != nil {
		return nil, err
	}
	var facts oracle.Public
	if err := json.Unmarshal(info.Public, &facts); err != nil {
		return nil, err
	}
	// What the run's events state, and how it sums; the rest follows from schema and model.
	j.Facts.Presence, j.Facts.Bytes, j.Facts.Short, j.Facts.Centered = facts.Presence, facts.Bytes, facts.Short, facts.Centered
	if !facts.Shifted {
		j.Facts.Shifted, j.Facts.LabelMin = false, 0
	}
	if facts.Owners != j.Facts.Owners || facts.Colluders != j.Facts.Colluders {
		return nil, fmt.Errorf("%s: public: found %d owners, %d of whom may collude; sum has %d and %d", runlog.InfoFile, facts.Owners, facts.Colluders, j.Facts.Owners, j.Facts.Colluders)
	}
	if !info.Off {
		if j.Accountant, err = account.ByName(info.Accountant); err != nil {
			return nil, err
		}
	}
	j.StateEvery = info.StateEvery
	j.Plan, err = info.PlanEvent()
	return j, err
}

// finishAgain ends a run that was killed before its settlement, or after it. Nothing is left to train.
func (s *Session) finishAgain(ctx context.Context) error {
	if s.Info.Network != "" {
		return inputError("", "%s: is an owner's part of a network; allowed is `sotto node` with this directory", s.Dir)
	}
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
	_, err := s.disk().FS.Stat(filepath.Join(s.Dir, runlog.ReportFile))
	missing := os.IsNotExist(err)
	if s.Info.Lab {
		if !missing {
			return nil, nil
		}
		return nil, s.report(ctx)
	}
	if err := s.openLedger(ctx); err != nil {
		return nil, err
	}
	known, err := s.ledger.Run(ctx, s.Info.ID)
	if err != nil {
		return nil, err
	}
	if known.State == ledger.StateSettled {
		if _, sealed := known.Settlement.Seal[runlog.ReportFile]; missing && !sealed { // of an earlier version, which wrote it last
			return nil, s.report(ctx)
		}
		return nil, nil
	}
	return s.settleDir(ctx)
}

// openLedger opens the ledger that the run reserved in.
func (s *Session) openLedger(ctx context.Context) (err error) {
	if s.ledger == nil {
		s.ledger, err = s.disk().findLedger(ctx, cmp.Or(s.env.Ledger, s.Info.Ledger))
	}
	return err
}

// TakeOver is takeOver for an owner of a network, whose journal is in its directory.
func (s *Session) TakeOver(ctx context.Context) error {
	rec, err := s.disk().Record(s.Info, s.Dir)
	if err != nil {
		return err
	}
	if err := s.takeOver(ctx, rec); err != nil {
		return err
	}
	s.Info.Ledger = s.ledger.Where()
	return s.disk().WriteInfo(s.Dir, s.Info)
}

// takeOver proves the right to go on: the data is what the budget was reserved for, and the directory has
// the one-time token, which is swapped for a new one. rec is the run log of the directory.
func (s *Session) takeOver(ctx context.Context, rec *runlog.Record) error {
	err := s.openLedger(ctx)
	if place := cmp.Or(s.env.Ledger, s.Info.Ledger); err != nil && s.Info.LedgerHead == "" && rec.Charged() == 0 && s.nothingAt(place) {
		// The run never reserved: its new ledger found no room for the first entry and went, and the process died before it removed this directory.
		s.ledger, err = s.disk().openLedger(ctx, place)
	}
	if err != nil {
		return err
	}
	if s.Info.Lab {
		return s.takeOverLab(ctx)
	}
	old, err := s.currentToken(ctx)
	if err != nil {
		return err
	}
	plan, err := planHash(s.Job)
	if err != nil {
		return err
	}
	known, err := s.ledger.Run(ctx, s.Info.ID)
	var dataset ledger.Dataset
	if err == nil {
		dataset, err = s.ledger.Dataset(ctx, known.Dataset)
	}
	switch b := s.Info.Budget; {
	case errors.Is(err, ledger.ErrUnknownRun) && rec.Charged() == 0 && s.sameLedger():
		// Killed after the directory was made and before the budget was reserved.
		s.token = old
		return s.reserve(ctx)
	case errors.Is(err, ledger.ErrUnknownRun):
		return inputError("", "%s: this ledger knows no reservation of run %s; --ledger names the one that it began with", s.ledger.Where(), s.Info.ID)
	case err != nil:
		return err
	case known.Dataset != s.Info.Dataset || known.Caps != ledger.Caps{Epsilon: b.Epsilon, Delta: b.Delta}:
		return inputError("", "%s: found budget (ε %v, δ %v) of dataset %q; the ledger reserved %v of %q", filepath.Join(s.Dir, runlog.InfoFile), b.Epsilon, b.Delta, s.Info.Dataset, known.Caps, known.Dataset)
	case dataset.Unit != s.Info.Unit || dataset.Adjacency != b.Adjacency:
		return inputError("", "%s: found unit %q under %v; the ledger counts %q by %q under %v", filepath.Join(s.Dir, runlog.InfoFile), s.Info.Unit, b.Adjacency, dataset.Name, dataset.Unit, dataset.Adjacency)
	case len(known.Plan) > 0 && !bytes.Equal(known.Plan, plan):
		return inputError("", "%s: found another plan than the one that the budget was reserved for", filepath.Join(s.Dir, runlog.InfoFile))
	case !bytes.Equal(known.Mark, contentMark(s.ledger, s.opened)):
		return s.otherTable()
	}
	s.token, err = s.swapToken(ctx, old, rec.Events)
	return err
}

// nothingAt says that no file is at the place of a ledger.
func (s *Session) nothingAt(place string) bool {
	_, err := s.disk().FS.Stat(place)
	return place != "" && !strings.Contains(place, "://") && errors.Is(err, os.ErrNotExist)
}

func (s *Session) otherTable() error {
	table := data.Public(s.Job.Spec.Data)
	if s.shards != nil {
		table = "the workers' rows"
	}
	return inputError("", "%s: is not the table that this run began with; its budget was reserved for that one. Use that table, or a new run directory", table)
}

// loaded checks that the rows of a finished run came once more.
func (s *Session) loaded(ctx context.Context) error {
	if _, err := s.Load(ctx); err != nil {
		return err
	}
	if err := s.openLedger(ctx); err != nil {
		return err
	}
	if s.Info.Lab {
		return s.accessed(ctx)
	}
	known, err := s.ledger.Run(ctx, s.Info.ID)
	if err == nil && !bytes.Equal(known.Mark, contentMark(s.ledger, s.opened)) {
		err = s.otherTable()
	}
	return err
}

// accessed checks that a lab run, which reserves nothing, has the rows whose access the ledger recorded for it.
func (s *Session) accessed(ctx context.Context) error {
	marks, err := s.ledger.Accessed(ctx, s.Info.ID)
	if err == nil && len(marks) > 0 && !slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Equal(mark, contentMark(s.ledger, s.opened)) }) {
		err = s.otherTable()
	}
	return err
}

// FromProgram says whether another program gives the rows at path by a descriptor, as Python does, so that they come only from it.
// Standard input is not of that kind: a shell can give the same rows again.
func FromProgram(path string) bool {
	return readfile.Inherited(path) && path != "-" && path != "/dev/stdin"
}

// sameLedger reports whether the open ledger is the one that the run began with.
func (s *Session) sameLedger() bool {
	now, before := s.ledger.Where(), s.Info.Ledger
	if now == before || before == "" && s.Job.Owner != nil { // an owner that has not reserved yet
		return true
	}
	a, err := s.disk().FS.Stat(now)
	b, worse := s.disk().FS.Stat(before)
	return err == nil && worse == nil && s.disk().FS.SameFile(a, b)
}

// swapToken replaces the one-time token of a run and its directory, which holds these charged batches
// (R7). The new one is on disk before the ledger knows it, so a crash in between loses nothing.
func (s *Session) swapToken(ctx context.Context, old string, charged []runlog.Charges) (string, error) {
	disk, path := s.disk().FS, filepath.Join(s.Dir, runlog.TokenFile)
	fresh := ledger.NewToken()
	if err := newfile.ReplaceOn(disk, path+pending, 0o600, []byte(fresh+"\n")); err != nil {
		return "", err
	}
	if err := s.ledger.Resume(ctx, s.Info.ID, old, fresh, ledgerCharges(charged)); err != nil {
		return "", err
	}
	if err := disk.Rename(path+pending, path); err != nil {
		return "", err
	}
	return fresh, disk.SyncDir(s.Dir)
}

// takeOverLab checks that this is a lab run, whose access Take records again (R3). A run that reserved a
// budget is not one, whatever its run.json says.
func (s *Session) takeOverLab(ctx context.Context) error {
	_, err := s.ledger.Run(ctx, s.Info.ID)
	switch {
	case errors.Is(err, ledger.ErrUnknownRun):
		if err := s.reservedNothing(); err != nil {
			return err
		}
		return s.accessed(ctx)
	case err == nil:
		return s.noLabRun()
	}
	return err
}

// reservedNothing checks that a run that claims to be a lab run has no token.
func (s *Session) reservedNothing() error {
	if _, err := s.disk().FS.Stat(filepath.Join(s.Dir, runlog.TokenFile)); !os.IsNotExist(err) {
		return s.noLabRun()
	}
	return nil
}

func (s *Session) noLabRun() error {
	return inputError("", "%s: says that this is a lab run, but it reserved a budget", filepath.Join(s.Dir, runlog.InfoFile))
}

const pending = ".next" // a token that the ledger may or may not know yet

// currentToken returns the token of a run directory: the pending one if a resume was killed after the
// swap, otherwise the other. A pending token that is current is renamed first, since the next swap writes
// its own pending token.
func (s *Session) currentToken(ctx context.Context) (string, error) {
	disk, path := s.disk().FS, filepath.Join(s.Dir, runlog.TokenFile)
	next, err := readToken(disk, path+pending)
	if err == nil {
		err = s.ledger.Check(ctx, s.Info.ID, next)
	}
	switch {
	case err == nil:
		if err := disk.Rename(path+pending, path); err != nil {
			return "", err
		}
		return next, disk.SyncDir(s.Dir)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, ledger.ErrStaleToken), errors.Is(err, ledger.ErrUnknownRun), errors.Is(err, ledger.ErrSettled):
	default: // it may be the current one, so nothing may replace it
		return "", err
	}
	token, err := readToken(disk, path)
	if err != nil {
		return "", inputError("", "%v: without it the run can neither resume nor settle", err)
	}
	if token == "" { // with none, Reserve makes one that the directory does not have
		return "", inputError("", "%s: is empty: without the token the run can neither resume nor settle", path)
	}
	return token, nil
}

func readToken(disk vfs.FS, path string) (string, error) {
	b, err := readfile.AllOn(disk, path, readfile.Short)
	return strings.TrimSpace(string(b)), err
}

// OpenLedger opens a ledger and creates it if it does not exist. A location that cannot hold a ledger is
// an *InputError.
func OpenLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return machine.openLedger(ctx, where)
}

// ErrNoLedger says that the user has no ledger yet.
var ErrNoLedger = errors.New("there is no ledger yet; the first run makes it")

// FindLedger opens an existing ledger. A missing file is an *InputError, and nothing is created. "" is the
// user's own; if that does not exist, the error wraps ErrNoLedger.
func FindLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return machine.findLedger(ctx, where)
}

// ViewLedger is FindLedger for commands that only read; it writes nothing.
func ViewLedger(ctx context.Context, where string) (*ledger.Ledger, error) {
	return reachLedger(ctx, where, ledger.View)
}

// OwnLedger is ViewLedger for the ledger that a finished run or an evaluation itself names. Where that is not at hand, or is not the one that the run
// saw, there is none, and why says so.
func OwnLedger(ctx context.Context, dir string) (l *ledger.Ledger, why string, err error) {
	var id, place, head string
	if IsEvaluation(dir) {
		e, err := runlog.ReadEvaluation(dir)
		if err != nil {
			return nil, "", &InputError{"", err}
		}
		id, place = e.ID, e.Ledger
	} else {
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			return nil, "", &InputError{"", err}
		}
		if info.Lab {
			return nil, "", nil // nothing is reserved for it
		}
		id, place, head = info.ID, info.Ledger, info.LedgerHead
	}
	if place == "" {
		return nil, "the directory names no ledger", nil
	}
	if l, err = ViewLedger(ctx, place); err != nil {
		if ctx.Err() != nil {
			return nil, "", err
		}
		return nil, fmt.Sprintf("the ledger that the directory names is not at hand (%v)", err), nil
	}
	_, err = l.Run(ctx, id)
	if !errors.Is(err, ledger.ErrUnknownRun) {
		return l, "", err
	}
	// A ledger with the entry that the run saw should know the run. Another machine may have another ledger at the same place.
	if h, err := headOf(head); err == nil && l.Contains(ctx, h) == nil {
		return l, "", nil
	}
	return nil, fmt.Sprintf("%s, which the directory names, knows neither it nor the ledger entry before it, so it may be another machine's", l.Where()), l.Close()
}

func reachLedger(ctx context.Context, where string, open func(context.Context, string) (*ledger.Ledger, error)) (*ledger.Ledger, error) {
	l, err := open(ctx, where)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, os.ErrNotExist) && where == "":
		return nil, &InputError{"", ErrNoLedger}
	case errors.Is(err, os.ErrNotExist) && !strings.Contains(where, "://"):
		return nil, inputError("", "ledger %s: is not there; allowed is one that a run or `sotto ledger budget` has made", where)
	case postgres.IsURL(where) || ctx.Err() != nil:
		return nil, err
	}
	return nil, LedgerError(err)
}

// LedgerError wraps what a person can correct in an *InputError: a location that is no ledger or may not
// be written, an argument that a ledger refuses. Errors of the machine or a server stay as they are.
func LedgerError(err error) error {
	var lite interface{ Code() int }
	var server interface{ SQLState() string }
	var network *net.OpError
	var broken *ledger.ChainError
	switch {
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case 8, 14, 26: // read-only, cannot be opened, is no database
		default:
			return err
		}
	case errors.As(err, &server):
		switch server.SQLState() {
		case "42501", "25006": // may not write, is read-only
		default:
			return err
		}
	case errors.As(err, &network), errors.As(err, &broken), errors.Is(err, context.Canceled):
		return err
	}
	return &InputError{"", err}
}
