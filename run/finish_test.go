package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
)

// reporting is an Env whose report is a file with that text.
func reporting(text string) Env {
	return Env{Workers: 1, Report: func(dir string, _ *ledger.History) error {
		return os.WriteFile(filepath.Join(dir, runlog.ReportFile), []byte(text), 0o600)
	}}
}

// stateOf is what the ledger in dir knows of a run.
func stateOf(t *testing.T, dir, id string) ledger.Run {
	t.Helper()
	l := openLedger(t, dir)
	defer l.Close()
	r, err := l.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEKilledAroundTheSettlement: a run that ends before its report, or between that and its settlement, is finished by a
// resume, and one that ended after it has nothing left to do.
func TestEKilledAroundTheSettlement(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"secure": "", "lab": "lab: true\nseed: 5\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job, out := begin(t, dir, "run", more)
			killed := errors.New("killed")
			info, _, err := Fit(t.Context(), job, Env{Workers: 1, Report: func(string, *ledger.History) error { return killed }})
			wantErr(t, err, killed)
			if lab := more != ""; !lab {
				if s := stateOf(t, dir, info.ID).State; s == ledger.StateSettled {
					t.Fatal("settled before the report")
				}
			}
			report := filepath.Join(out, runlog.ReportFile)
			for _, text := range []string{"first", "second"} {
				info, err := Resume(t.Context(), out, reporting(text))
				if err != nil || info.Result == nil || info.Result.Steps == 0 {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(report); err != nil || string(b) != "first" {
					t.Errorf("found the report %q, %v; want the first, which is sealed", b, err)
				}
			}
			if more != "" {
				return
			}
			r := stateOf(t, dir, info.ID)
			if r.State != ledger.StateSettled || r.Settlement.Outcome != ledger.Done || r.Settlement.Seal[runlog.ReportFile] == "" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestEKilledBeforeTheReservation: a directory whose budget was never reserved goes on with the ledger that it names, also
// where the command line names it again, and with no other.
func TestEKilledBeforeTheReservation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "ledger.db")
	link := filepath.Join(dir, "link.db")
	other := filepath.Join(dir, "other.db")
	l, err := ledger.Open(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for i, c := range []struct {
		name string
		good bool
	}{{db, true}, {link, true}, {other, false}, {"", true}} {
		job, out := begin(t, dir, "run"+string(rune('0'+i)), "")
		env := Env{Workers: 1}
		env.reserved = func(error) error { return ledger.ErrUncertain }
		if _, _, err := Fit(t.Context(), job, env); !errors.Is(err, ledger.ErrUncertain) {
			t.Fatal(err)
		}
		info, err := runlog.ReadInfo(out)
		if err != nil {
			t.Fatal(err)
		}
		info.ID += "-unknown" // as if the reservation had never come
		if err := runlog.WriteInfo(out, info); err != nil {
			t.Fatal(err)
		}
		os.Symlink(db, link)
		_, err = Resume(t.Context(), out, Env{Workers: 1, Ledger: c.name})
		if good := err == nil; good != c.good {
			t.Errorf("%q: %v", c.name, err)
		}
		if c.good && stateOf(t, dir, info.ID).State != ledger.StateSettled {
			t.Error("the run is not settled")
		}
	}
}

// TestB5UncertainReservation: a reservation that ends with an error after its commit leaves the directory with its token, and
// a resume goes on under that reservation. One that is refused leaves nothing.
func TestB5UncertainReservation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	env := Env{Workers: 1}
	env.reserved = func(err error) error {
		return errors.Join(err, ledger.ErrUncertain, errors.New("fsync: input/output error"))
	}
	info, at, err := Fit(t.Context(), job, env)
	if !errors.Is(err, ledger.ErrUncertain) || at != out || info == nil {
		t.Fatal(err, at)
	}
	if s := stateOf(t, dir, info.ID).State; s == ledger.StateSettled {
		t.Fatal("a run that has not begun is settled")
	}
	if info, err = Resume(t.Context(), out, Env{Workers: 1}); err != nil || info.LedgerHead == "" {
		t.Fatal(err, info)
	}
	l := openLedger(t, dir)
	runs, err := l.Runs(t.Context(), "clinic")
	l.Close()
	if err != nil || len(runs) != 1 || runs[0].State != ledger.StateSettled {
		t.Errorf("%+v, %v", runs, err)
	}

	job, out = begin(t, dir, "refused", "")
	env.reserved = func(error) error { return errors.New("could not be reached") }
	if _, _, err := Fit(t.Context(), job, env); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Error("a refused run left its directory", err)
	}
}

// TestETemporaryFiles: what killed writers of whole files left is removed by a resume and by a settlement.
func TestETemporaryFiles(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"resume", "settle"} {
		dir := t.TempDir()
		out := stopped(t, dir, poisson(2))
		left := []string{".run.json.123", ".model.json.4", ".resume.token.next.1234567890", ".report.html.7"}
		for _, name := range append(left, ".mine.5", ".run.json.txt") {
			if err := os.WriteFile(filepath.Join(out, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if how == "resume" {
			_, err = Resume(t.Context(), out, Env{Workers: 1})
		} else {
			_, _, err = Abandon(t.Context(), out, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range left {
			if _, err := os.Stat(filepath.Join(out, name)); !os.IsNotExist(err) {
				t.Errorf("%s: %s is still there: %v", how, name, err)
			}
		}
		for _, name := range []string{".mine.5", ".run.json.txt"} {
			if _, err := os.Stat(filepath.Join(out, name)); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}

// TestELedgerDeletedMidRun: the run stops and says what is the matter; with the ledger back it goes on.
func TestELedgerDeletedMidRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", poisson(4))
	db := filepath.Join(dir, "ledger.db")
	moved := map[string]string{}
	_, _, err := Fit(t.Context(), job, stopAt(1, func() {
		files, err := filepath.Glob(db + "*")
		if err != nil {
			t.Error(err)
		}
		for _, f := range files {
			moved[f] = filepath.Join(dir, "away-"+filepath.Base(f))
			if err := os.Rename(f, moved[f]); err != nil {
				t.Error(err)
			}
		}
	}))
	if !errors.Is(err, ledger.ErrGone) || strings.Contains(err.Error(), "read-only") || strings.Contains(err.Error(), "readonly") {
		t.Fatal(err)
	}
	if _, err := Resume(t.Context(), out, Env{Workers: 1}); err == nil || !strings.Contains(err.Error(), "the ledger is missing") {
		t.Error(err)
	}
	for f, away := range moved {
		if err := os.Rename(away, f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Resume(context.WithoutCancel(t.Context()), out, Env{Workers: 1}); err != nil {
		t.Error(err)
	}
}

// A run whose machine's clock is set back by a year, here between a stop and its resume, is as good as any other.
func TestClockIsSetBack(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, dir)
	job, out := begin(t, dir, "run", poisson(1.5))
	ctx, stop := context.WithCancel(t.Context())
	_, _, err := Fit(ctx, job, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
	info, err := runlog.ReadInfo(out)
	if err != nil {
		t.Fatal(err)
	}
	info.Started = info.Started.AddDate(1, 0, 0)
	if err := runlog.WriteInfo(out, info); err != nil {
		t.Fatal(err)
	}
	if info, err = Resume(t.Context(), out, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if info.Finished.Before(info.Started) {
		t.Errorf("it ended at %v, before it began at %v", info.Finished, info.Started)
	}
	if found, err := Verify(t.Context(), out, l); err != nil || !allHold(found) {
		t.Errorf("%v, %v", found, err)
	}
}
