package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

func TestTwoProcessesNeverOverspend(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		race(t, where, budget(3.7, 0.9), "")
	})
}

// Under a filter, runs that settle for all of their plan give nothing back.
func TestTwoProcessesNeverOverspendAFilter(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		// 37 runs of 10 batches, and half a run.
		spent := account.NewTally(account.ZCDPCurrency{}, privacy.AddRemove)
		must(t, spent.Hold("all", privacy.Repeated{Count: 375, Of: privacy.Gaussian{Sigma: filterSigma}}))
		race(t, where, budget(spent.Epsilon(1e-5), 1e-5), InZCDP)
	})
}

func race(t *testing.T, where string, b privacy.Budget, currency string) {
	t.Helper()
	const admits, tries = 37, 50
	type result struct {
		runs []string
		err  error
	}
	results := make(chan result, 2)
	var begin []func(string)
	var started []chan bool
	for _, name := range []string{"a", "b"} {
		cmd, out, say := start(t, "race", append([]string{where, name, fmt.Sprint(tries)}, strings.Fields(currency)...)...) // both may make the tables
		begin = append(begin, say)
		ready := make(chan bool, 1)
		started = append(started, ready)
		go func() {
			ready <- out.Scan() && out.Text() == "ready"
			var r result
			for out.Scan() {
				r.runs = append(r.runs, out.Text())
			}
			r.err = cmd.Wait()
			results <- r
		}()
	}
	for _, ready := range started {
		if !<-ready {
			t.Fatal("a child did not start")
		}
	}
	l := open(t, where)
	must(t, l.SetBudget(t.Context(), "shared", "record", currency, b))
	for _, say := range begin {
		say("go")
	}
	admitted := map[string]bool{}
	var each []int
	for range 2 {
		r := <-results
		must(t, r.err)
		each = append(each, len(r.runs))
		for _, run := range r.runs {
			admitted[run] = true
		}
	}
	d, err := l.Dataset(t.Context(), "shared")
	must(t, err)
	full := d.Part == nil && d.Spent.Epsilon == d.Budget.Epsilon || d.Part != nil && *d.Part > 0.98 && *d.Part <= 1
	if len(admitted) != admits || d.Runs != admits || !full {
		t.Errorf("%d and %d runs were admitted, the ledger says %d and %v; the budget admits %d", each[0], each[1], d.Runs, d.Spent, admits)
	}
	t.Logf("the two processes got %v", each)
	for run := range admitted {
		if _, err := l.Run(t.Context(), run); err != nil {
			t.Error(err)
		}
	}
	verify(t, l)
}

func TestKilledProcessLeavesItsReservation(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		ctx := t.Context()
		l := open(t, where)
		must(t, l.SetBudget(ctx, "clinic", "record", "", budget(0.15, 0.9)))
		cmd, out, _ := start(t, "hold", where)
		if !out.Scan() {
			t.Fatal("the child reserved nothing")
		}
		token := out.Text()
		must(t, cmd.Process.Kill()) // SIGKILL
		cmd.Wait()

		wantError(t, errorOnly(l.Reserve(ctx, reservation("clinic", "greedy"))), privacy.ErrExhausted)
		run, err := l.Run(ctx, "held")
		must(t, err)
		if run.State != StateOpen || run.Caps.Epsilon != 0.1 {
			t.Errorf("found %+v", run)
		}
		next := NewToken()
		must(t, l.Resume(ctx, "held", token, next, 0)) // and it can go on
		must(t, l.Settle(ctx, "held", next, Settlement{Outcome: Abandoned}))
		verify(t, l)
	})
}

// Whatever a process said it had reserved is there after it was killed at any
// moment; the last one may be there without having been said.
func TestKillAtAnyMoment(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		l := open(t, where)
		for round := range 4 {
			cmd, out, _ := start(t, "loop", where)
			said := 0
			timer := time.AfterFunc(time.Duration(30+17*round)*time.Millisecond, func() { cmd.Process.Kill() })
			for out.Scan() {
				said++
				if out.Text() != fmt.Sprint("loop-", said-1) {
					t.Fatalf("found %q", out.Text())
				}
			}
			timer.Stop()
			cmd.Wait()
			verify(t, l)
			runs, err := l.Runs(t.Context(), "clinic")
			must(t, err)
			if len(runs) != said && len(runs) != said+1 {
				t.Errorf("%d runs were reserved, the ledger has %d", said, len(runs))
			}
			// The next child begins at loop-0 again, so it needs a new ledger.
			l.Close()
			where = another(t, where)
			l = open(t, where)
		}
	})
}
