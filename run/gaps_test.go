package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run/runlog"
)

// broken is the directory of the run in from as a crash leaves it between two writes of a group: that many batches are charged, and
// some of them released. The budget is reserved.
func broken(t *testing.T, l *ledger.Ledger, from, to string, charged, released int) {
	t.Helper()
	info, err := runlog.ReadInfo(from)
	if err != nil {
		t.Fatal(err)
	}
	known, err := l.Run(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	info.ID, info.Status, info.Result, info.Finished = filepath.Base(to), runlog.Running, nil, nil
	plan, err := info.PlanEvent()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	rec, token := logOf(t, from), ledger.NewToken()
	w, err := runlog.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	in := rec.Open(nil)
	defer in.Close()
	i := 0
	for e := range rec.Batches() {
		if i == charged {
			break
		}
		if err := w.Charge(e); err != nil {
			t.Fatal(err)
		}
		if i < released {
			r, err := in.Next()
			if err == nil {
				err = w.Release(r.Answers)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		i++
	}
	_, err = l.Reserve(t.Context(), ledger.Reservation{
		Dataset: info.Dataset, Unit: info.Unit, Adjacency: info.Budget.Adjacency, Run: info.ID,
		Epsilon: info.Budget.Epsilon, Delta: info.Budget.Delta, Plan: plan, Token: token, Mark: known.Mark,
	})
	if info.Holdout != nil {
		key, failed := os.ReadFile(filepath.Join(from, runlog.HoldoutFile))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(to, runlog.HoldoutFile), key, 0o600))
	}
	if err := errors.Join(err, w.Close(), runlog.WriteInfo(to, info), os.WriteFile(filepath.Join(to, runlog.TokenFile), []byte(token), 0o600),
		l.Reach(t.Context(), info.ID, token, charged, ledgerCharges(logOf(t, to).Events))); err != nil {
		t.Fatal(err)
	}
}

// A run of a plan that alternates between kinds of releases goes on after any crash: what was charged and lost stays spent, and what
// the method asks next is found further on in the plan. Record, report and ledger agree that all of it is of the plan.
func TestBrokenRunsOfMixedPlans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more  string
		least int // steps of a run that lost one batch; what it still does tells that its later releases were found
	}{
		"blsgd":   {"{name: blsgd, steps: 4}", 3},
		"newton":  {"{name: newton, steps: 6, hessians: 3}", 3},
		"opt":     {"{name: opt, steps: 4, costs: plan, gradient: 0.01}", 3},
		"opt-ls":  {"{name: opt-ls, steps: 3, costs: plan, gradient: 0.01}", 2},
		"2opt":    {"{name: 2opt, first: 3, steps: 3, costs: plan, gradient: 0.01}", 5},
		"2opt-ls": {"{name: 2opt-ls, first: 2, steps: 2, costs: plan, gradient: 0.01}", 3},
		"gd-2ns":  {"{name: gd-2ns, steps: 4, gradient: 2, noise_multiplier: 1000}", 4},
		"nag-opt": {"{name: nag-opt, steps: 4}", 0}, // each step has its own noise: what was lost is not in the rest
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job, whole := begin(t, dir, "whole", "method: "+c.more)
			if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			all := logOf(t, whole).Charged()
			for charged := 1; charged <= all; charged++ {
				for _, lost := range []int{1, 3} {
					if lost > charged {
						continue
					}
					l := openLedger(t, dir)
					out := filepath.Join(dir, fmt.Sprintf("broken-%d-%d", charged, lost))
					broken(t, l, whole, out, charged, charged-lost)
					l.Close()
					info, err := Resume(t.Context(), out, Env{Workers: 1})
					if err != nil {
						t.Fatalf("%d charged, %d lost: %v", charged, lost, err)
					}
					if lost == 1 && info.Result.Steps < c.least && info.Result.Outcome != method.Converged.String() {
						t.Errorf("%d of %d charged, one lost: %d steps, want %d or more", charged, all, info.Result.Steps, c.least)
					}
					if n := logOf(t, out).Charged(); n < charged {
						t.Errorf("%d charged before, %d after", charged, n)
					}
					wantHolds(t, dir, out)
				}
			}
		})
	}
}

// checked is a context that ends at its n-th check by a function of that name.
type checked struct {
	context.Context
	by   string
	left int
	end  context.CancelFunc
}

func (c *checked) Err() error {
	if pc, _, _, ok := runtime.Caller(1); ok && strings.HasSuffix(runtime.FuncForPC(pc).Name(), c.by) {
		if c.left--; c.left < 0 {
			c.end()
		}
	}
	return c.Context.Err()
}

// A run whose one batch is a long solve can be stopped in the midst of it. Nothing was released and nothing written of the charge,
// so the batch is bought when the run goes on.
func TestStopWithinASolve(t *testing.T) {
	t.Parallel()
	const steps = 3
	for n := range steps + 1 {
		dir := t.TempDir()
		job, out := begin(t, dir, "run", fmt.Sprintf("method: {name: outpert, steps: %d}", steps), onlyUnder["outpert"]...)
		ctx, end := context.WithCancel(t.Context())
		_, _, err := Fit(&checked{ctx, ".Descend", n, end}, job, Env{Workers: 1})
		end()
		if n == steps {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantErr(t, err, ErrInterrupted)
		if c := logOf(t, out).Charged(); c != 0 {
			t.Errorf("stopped before step %d: %d charged", n+1, c)
		}
		info, err := Resume(t.Context(), out, Env{Workers: 1})
		if err != nil {
			t.Fatalf("stopped before step %d: %v", n+1, err)
		}
		if info.Result.Outcome != method.Done.String() || info.Result.Charged != 1 {
			t.Errorf("stopped before step %d: %+v", n+1, info.Result)
		}
		wantHolds(t, dir, out)
	}
}
