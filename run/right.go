package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// A right is that by which a session uses its rows: a reservation in the budget of their dataset, or the record of an
// access of the lab. A session has it before it has any row (Session.Take).
//
// The order of a start is made for crashes: directory, token, run.json, reservation, ready, rows. The directory comes
// before the ledger, so that after a crash between the two either nothing is reserved, or the directory has what a
// resume needs.
type right interface {
	// purpose is what the rows are opened for, and why, where the ledger says it.
	purpose() (access.Purpose, string)
	// begin makes it for a new run. begun says that the ledger may know the run, so that its directory stays.
	begin(context.Context) (begun bool, err error)
	// holds checks, before any row is read, that a directory is that of such a run.
	holds() error
	// takeOver proves it for a run that goes on, whose directory has that run log: the table is the one that the run began
	// with.
	takeOver(context.Context, *runlog.Record) error
	// reach records charges in the ledger before their releases are published.
	reach(ctx context.Context, batches int, charged []ledger.Charges) error
	// settle ends it for the charges of a run log, and seals the directory.
	settle(context.Context, *runlog.Record) error
	// settled says whether it has ended, and whether what ended it has sealed the report.
	settled(context.Context) (ended, sealed bool, err error)
	// same says whether the open table is the one that the run began with.
	same(context.Context) error
	// life is what the report says of the dataset's; nil: nothing.
	life(context.Context) (*ledger.History, error)
}

// setRight sets the session's, which a directory's run.json or a spec says.
func (s *Session) setRight(ofLab bool) {
	s.right = &reservation{s: s}
	if ofLab {
		s.right = labAccess{s}
	}
}

// A reservation is the right of a run that is charged: the ledger holds its budget, and the directory the one-time
// token for it (R7).
type reservation struct {
	s     *Session
	token string
}

func (r *reservation) purpose() (access.Purpose, string) {
	if r.s.Job.Owner != nil {
		return access.Party, ""
	}
	return access.Train, ""
}

func (r *reservation) begin(ctx context.Context) (begun bool, err error) {
	s := r.s
	r.token = ledger.NewToken()
	if err := newfile.ReplaceOn(s.disk().FS, filepath.Join(s.Dir, runlog.TokenFile), 0o600,
		[]byte(r.token+"\n")); err != nil {
		return false, err
	}
	if err := s.disk().WriteInfo(s.Dir, s.Info); err != nil {
		return false, err
	}
	if err := r.reserve(ctx); err != nil {
		return errors.Is(err, ledger.ErrUncertain), err
	}
	s.crash("reserved")
	return true, nil
}

// reserve reserves the run's cap in the dataset's budget.
func (r *reservation) reserve(ctx context.Context) error {
	s := r.s
	asked := s.Job.Reservation(s.Info.ID)
	asked.Mark, asked.Parts, asked.Token = contentMark(s.ledger, s.opened), PartMarks(s.ledger, s.opened), r.token
	_, err := s.ledger.Reserve(ctx, asked)
	if s.env.reserved != nil {
		err = s.env.reserved(err)
	}
	return reserveError(err)
}

// reserveError is an error of a reservation: a plan without a theorem in the dataset's currency is a mistake in the
// input.
func reserveError(err error) error {
	var unsupported *account.UnsupportedError
	if errors.As(err, &unsupported) {
		return &InputError{Err: err}
	}
	return err
}

func (*reservation) holds() error { return nil }

func (r *reservation) takeOver(ctx context.Context, log *runlog.Record) error {
	s := r.s
	err := s.openLedger(ctx)
	if place := cmp.Or(s.env.Ledger, s.Info.Ledger); err != nil && s.Info.LedgerHead == "" && log.Charged() == 0 &&
		s.nothingAt(place) {
		// The run never reserved: its new ledger found no room for the first entry and went, and the process died before it
		// removed this directory.
		s.ledger, err = s.disk().openLedger(ctx, place)
	}
	if err != nil {
		return err
	}
	old, err := s.currentToken(ctx)
	if err != nil {
		return err
	}
	known, err := s.ledger.Run(ctx, s.Info.ID)
	if errors.Is(err, ledger.ErrUnknownRun) {
		if log.Charged() == 0 && s.sameLedger() {
			// Killed after the directory was made and before the budget was reserved.
			r.token = old
			return r.reserve(ctx)
		}
		return inputError("", "%s: this ledger knows no reservation of run %s; --ledger names the one that it began with",
			s.ledger.Where(), s.Info.ID)
	}
	if err == nil {
		err = r.reserved(ctx, known)
	}
	if err == nil {
		r.token, err = s.swapToken(ctx, old, log.Events)
	}
	return err
}

// reserved checks that the ledger reserved what run.json says, for the open table.
func (r *reservation) reserved(ctx context.Context, known ledger.Run) error {
	s, b, file := r.s, r.s.Info.Budget, filepath.Join(r.s.Dir, runlog.InfoFile)
	plan, err := planHash(s.Job)
	if err != nil {
		return err
	}
	dataset, err := s.ledger.Dataset(ctx, known.Dataset)
	switch {
	case err != nil:
		return err
	case known.Dataset != s.Info.Dataset || known.Caps != ledger.Caps{Epsilon: b.Epsilon, Delta: b.Delta}:
		return inputError("", "%s: the budget is %v of dataset %q; the ledger reserved %v of %q", file,
			ledger.Caps{Epsilon: b.Epsilon, Delta: b.Delta}, s.Info.Dataset, known.Caps, known.Dataset)
	case dataset.Unit != s.Info.Unit || dataset.Adjacency != b.Adjacency:
		return inputError("", "%s: the unit is %q under %v; the ledger counts %q by %q under %v", file, s.Info.Unit,
			b.Adjacency, dataset.Name, dataset.Unit, dataset.Adjacency)
	case len(known.Plan) > 0 && !bytes.Equal(known.Plan, plan):
		return inputError("", "%s: has another plan than the one that the budget was reserved for", file)
	}
	return s.isTable(known.Mark)
}

func (r *reservation) same(ctx context.Context) error {
	known, err := r.s.ledger.Run(ctx, r.s.Info.ID)
	if err != nil {
		return err
	}
	return r.s.isTable(known.Mark)
}

func (r *reservation) reach(ctx context.Context, batches int, charged []ledger.Charges) error {
	return r.s.ledger.Reach(ctx, r.s.Info.ID, r.token, batches, charged)
}

// settle settles for the events that the ledger recorded, which it compares with those of the run log (R25). No file of
// the directory may change afterward. A dataset that counts in caps keeps the whole reservation charged, and the events
// are information.
func (r *reservation) settle(ctx context.Context, log *runlog.Record) error {
	s, info := r.s, r.s.Info
	charged, err := privacy.MarshalEvent(log.Event())
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
	return s.ledger.Settle(ctx, info.ID, r.token,
		ledger.Settlement{Batches: log.Charged(), Outcome: outcomeOf(info), Cost: cost, Delta: info.Budget.Delta,
			Charged: charged, Seal: seal})
}

func (r *reservation) settled(ctx context.Context) (ended, sealed bool, err error) {
	if err := r.s.openLedger(ctx); err != nil {
		return false, false, err
	}
	known, err := r.s.ledger.Run(ctx, r.s.Info.ID)
	if err != nil || known.State != ledger.StateSettled {
		return false, false, err
	}
	_, sealed = known.Settlement.Seal[runlog.ReportFile] // earlier versions wrote the report last
	return true, sealed, nil
}

// recentRuns is how many of a dataset's runs the report of a run may list.
const recentRuns = 100

func (r *reservation) life(ctx context.Context) (*ledger.History, error) {
	if r.s.ledger == nil {
		return nil, nil
	}
	return r.s.ledger.Recent(ctx, r.s.Info.Dataset, recentRuns)
}

// ledgerCharges converts the charges of a directory to the ledger's type.
func ledgerCharges(events []runlog.Charges) []ledger.Charges {
	all := make([]ledger.Charges, len(events))
	for i, c := range events {
		all[i] = ledger.Charges(c)
	}
	return all
}

// nothingAt says that no file is at the place of a ledger.
func (s *Session) nothingAt(place string) bool {
	_, err := s.disk().FS.Stat(place)
	return place != "" && !strings.Contains(place, "://") && errors.Is(err, os.ErrNotExist)
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

// labAccess is the right of a run of the lab: it reserves nothing, and the ledger has its access as one without a
// guarantee (R3), each time that it takes its rows.
type labAccess struct{ s *Session }

// recordedLab is the warning in a lab run's run.json.
const recordedLab = "this lab run stands in the ledger of the dataset as not private; its lifetime statement says so from now on"

func (l labAccess) purpose() (access.Purpose, string) {
	switch spec := l.s.Job.Spec; {
	case l.s.Job.Owner != nil:
		return access.Lab, "lab run in a network"
	case spec.Privacy.Off:
		return access.Lab, "lab run without noise"
	case spec.Seed != nil:
		return access.Lab, "lab run with seeded noise"
	}
	return access.Lab, "lab run"
}

func (l labAccess) begin(context.Context) (bool, error) {
	l.s.Info.Warnings = append(l.s.Info.Warnings, recordedLab)
	l.s.Info.Result = &runlog.Result{LabCounts: l.s.counts}
	return false, nil
}

// takeOver also checks that the run is of the lab: one that reserved a budget is not, whatever its run.json says.
func (l labAccess) takeOver(ctx context.Context, _ *runlog.Record) error {
	if err := l.s.openLedger(ctx); err != nil {
		return err
	}
	switch _, err := l.s.ledger.Run(ctx, l.s.Info.ID); {
	case err == nil:
		return l.s.noLabRun()
	case !errors.Is(err, ledger.ErrUnknownRun):
		return err
	}
	if err := l.holds(); err != nil {
		return err
	}
	return l.same(ctx)
}

// holds: a run that reserved has a token.
func (l labAccess) holds() error {
	if _, err := l.s.disk().FS.Stat(filepath.Join(l.s.Dir, runlog.TokenFile)); !os.IsNotExist(err) {
		return l.s.noLabRun()
	}
	return nil
}

func (l labAccess) same(ctx context.Context) error {
	marks, err := l.s.ledger.Accessed(ctx, l.s.Info.ID)
	if err != nil || len(marks) == 0 {
		return err
	}
	return l.s.isTable(marks...)
}

func (labAccess) reach(context.Context, int, []ledger.Charges) error { return nil }

func (labAccess) settle(context.Context, *runlog.Record) error { return nil }

func (labAccess) settled(context.Context) (ended, sealed bool, err error) { return true, false, nil }

func (labAccess) life(context.Context) (*ledger.History, error) { return nil, nil }

func (s *Session) noLabRun() error {
	return inputError("", "%s: says that this is a lab run, but it reserved a budget",
		filepath.Join(s.Dir, runlog.InfoFile))
}

// isTable checks that the open table has one of the marks that the ledger has for the run.
func (s *Session) isTable(marks ...[]byte) error {
	own := contentMark(s.ledger, s.opened)
	if slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Equal(mark, own) }) {
		return nil
	}
	return inputError("",
		"%s: is not the table that this run began with; its budget was reserved for that one. Use that table, or a new run directory", s.env.Rows.where(s.Job))
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
	case errors.Is(err, os.ErrNotExist), errors.Is(err, ledger.ErrStaleToken), errors.Is(err, ledger.ErrUnknownRun),
		errors.Is(err, ledger.ErrSettled):
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

// planHash identifies the plan of a reservation, so that the run resumes with no other: releases under one plan
// say nothing about the cost under another.
func planHash(j *Job) ([]byte, error) {
	sum := sha256.New()
	if err := privacy.WriteEvent(sum, j.Plan); err != nil {
		return nil, err
	}
	return sum.Sum(nil), nil
}

// ReservationOf returns what the run in a directory reserved, but for what names it. A lab run reserves nothing.
func ReservationOf(dir string) (r ledger.Reservation, err error) {
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		return r, &InputError{Err: err}
	}
	if info.Lab {
		return r, inputError(dir, "found a lab run, which reserves nothing; give one that was charged")
	}
	r = ledger.Reservation{Dataset: info.Dataset, Unit: info.Unit, Adjacency: info.Budget.Adjacency,
		Epsilon: info.Budget.Epsilon, Delta: info.Budget.Delta, Shares: info.Shares()}
	r.Plan, err = info.PlanEvent()
	return r, err
}

// Admits opens the owner's ledger, creating it if necessary, and asks whether it would admit the
// run's reservation, unless it already has. name stands in for a missing run ID.
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
