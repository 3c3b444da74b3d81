package run

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// filterLedger gives the clinic a lifetime budget in a currency.
func filterLedger(t *testing.T, dir, currency string) {
	t.Helper()
	l := openLedger(t, dir)
	defer l.Close()
	if err := l.SetBudget(t.Context(), "clinic", "record", currency, privacy.Budget{Epsilon: 5, Delta: 1e-4, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
}

// part is how much of the lifetime budget is held or settled, by a ledger that holds.
func part(t *testing.T, dir string) float64 {
	t.Helper()
	l := openLedger(t, dir)
	defer l.Close()
	if _, err := l.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := l.Dataset(t.Context(), "clinic")
	if err != nil {
		t.Fatal(err)
	}
	return *d.Part
}

// Under a filter a run that was given up costs what it charged. A copy of its
// directory from before knows of less, and cannot settle for that.
func TestFilterSettlesForWhatWasCharged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filterLedger(t, dir, ledger.InRDP)
	job, out := begin(t, dir, "run", poisson(8))
	ctx, stop := context.WithCancel(t.Context())
	n, held := 0, 0.0
	_, _, err := Fit(ctx, job, Env{Workers: 1, Progress: func(Progress) {
		switch n++; n {
		case 1:
			copyDir(t, out, out+"-copy")
			held = part(t, dir)
		case 2:
			stop()
		}
	}})
	wantErr(t, err, ErrInterrupted)
	if !(held > 0.01 && held < 0.9) || part(t, dir) != held {
		t.Fatalf("the run holds %v of the budget, then %v", held, part(t, dir))
	}
	_, _, err = Abandon(t.Context(), out+"-copy", "")
	wantErr(t, err, ledger.ErrBehind)
	if after := part(t, dir); after != held {
		t.Errorf("the copy moved what is held from %v to %v", held, after)
	}
	info, err := runlog.ReadInfo(out)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := Abandon(t.Context(), out, "")
	if err != nil {
		t.Fatal(err)
	}
	charged := logOf(t, out).Charged()
	if want := held * float64(charged) / float64(info.MaxSteps); charged == 0 || charged >= info.MaxSteps || math.Abs(*d.Part-want) > 1e-9*want {
		t.Errorf("%d of %d batches of a run that held %v cost %v; want %v", charged, info.MaxSteps, held, *d.Part, want)
	}
	_, err = Resume(t.Context(), out, Env{})
	wantErr(t, err, ledger.ErrSettled)
}

// A killed process leaves its plan held. Resumed to its end, the run has cost all
// of it.
func TestKilledRunUnderAFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filterLedger(t, dir, ledger.InRDP)
	spec, out := clinicSpec(t, dir, "run", poisson(1.5))
	held := 0.0
	for i := 0; ; i++ {
		after := 700 * time.Millisecond
		if i >= 3 {
			after = never
		}
		done, _ := killed(t, next(t, spec, out), after)
		now := part(t, dir)
		switch {
		case held == 0:
			held = now // 0 still, if it was killed before it had reserved
		case now != held:
			t.Fatalf("after kill %d %v of the budget is held or settled, before %v", i, now, held)
		}
		if done {
			break
		}
	}
	info, err := runlog.ReadInfo(out)
	if err != nil || info.Status != runlog.Finished || !(held > 0.01 && held < 0.9) || logOf(t, out).Charged() != info.MaxSteps {
		t.Errorf("%+v, %v; it held %v", info, err, held)
	}
	l := openLedger(t, dir)
	defer l.Close()
	found, err := Verify(t.Context(), out, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !f.Holds {
			t.Errorf("%s does not hold: %s", f.What, f.Detail)
		}
	}
}

// A plan that the dataset's currency has no theorem for is refused by name, before
// anything is written or looked at.
func TestFilterRefusesWhatItHasNoTheoremFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filterLedger(t, dir, ledger.InZCDP)
	job, out := begin(t, dir, "run", poisson(1))
	_, _, err := Fit(t.Context(), job, Env{})
	var unsupported *account.UnsupportedError
	var input *InputError
	if !errors.As(err, &unsupported) || !errors.As(err, &input) {
		t.Errorf("found %v", err)
	}
	if part(t, dir) != 0 {
		t.Error("something is held")
	}
	if l, err := filepath.Glob(filepath.Join(out, "*")); err != nil || len(l) != 0 {
		t.Errorf("found %v, %v", l, err)
	}
}

// A ledger that is named and not there is not made.
func TestMistypedLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := stopped(t, dir, poisson(4))
	missing := filepath.Join(dir, "mistyped.db")
	var input *InputError
	if _, err := Resume(t.Context(), out, Env{Ledger: missing}); !errors.As(err, &input) {
		t.Errorf("resume: %v", err)
	}
	if _, _, err := Abandon(t.Context(), out, missing); !errors.As(err, &input) {
		t.Errorf("settle: %v", err)
	}
	if found, _ := filepath.Glob(missing + "*"); len(found) != 0 {
		t.Errorf("made %v", found)
	}
}

type coded struct {
	error
	code int
}

func (c coded) Code() int { return c.code }

type stated struct {
	error
	state string
}

func (s stated) SQLState() string { return s.state }

// What a person can mend in a ledger is their mistake; a full disk is not.
func TestLedgerErrors(t *testing.T) {
	said := errors.New("said")
	for _, c := range []struct {
		err  error
		mine bool
	}{
		{coded{said, 8}, true}, {coded{said, 8 | 4<<8}, true}, {coded{said, 14}, true}, {coded{said, 26}, true}, {coded{said, 5}, false}, {coded{said, 13}, false},
		{stated{said, "42501"}, true}, {stated{said, "25006"}, true}, {stated{said, "53100"}, false},
		{&net.OpError{Op: "dial", Err: said}, false}, {&ledger.ChainError{Why: "said"}, false}, {context.Canceled, false}, {said, true},
	} {
		var input *InputError
		if got := LedgerError(c.err); errors.As(got, &input) != c.mine || !errors.Is(got, c.err) {
			t.Errorf("%#v: %#v", c.err, got)
		}
	}
}
