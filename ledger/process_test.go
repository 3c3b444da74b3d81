package ledger

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

func TestTwoProcessesNeverOverspend(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		contend(t, where, budget(3.7, 0.9), "")
	})
}

// Under a filter, runs that settle for all of their plan give nothing back.
func TestTwoProcessesNeverOverspendAFilter(t *testing.T) {
	onEach(t, func(t *testing.T, where string) {
		// 37 runs of 10 batches, and half a run.
		spent := account.NewTally(account.ZCDPCurrency{}, privacy.AddRemove)
		must(t, spent.Hold("all", privacy.Repeated{Count: 375, Of: privacy.Gaussian{Sigma: filterSigma}}))
		contend(t, where, budget(spent.Epsilon(1e-5), 1e-5), InZCDP)
	})
}

func contend(t *testing.T, where string, b privacy.Budget, currency string) {
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

// B6: a crowd of processes reserves without an error, each in its turn, and to the
// last part of the budget. With -long it is 32 processes of 1,000 reservations, of which
// one in a hundred may take 5 seconds.
func TestB6Crowd(t *testing.T) {
	processes, tries := 6, 15
	if *long {
		processes, tries = 32, 1000
	}
	admits := processes * tries * 9 / 10
	where := filepath.Join(t.TempDir(), "ledger.db")
	l := open(t, where)
	must(t, l.SetBudget(t.Context(), "shared", "record", "", budget(float64(admits)/1000, 0.5)))
	var ends sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	admitted, refused := 0, 0
	var begin []func(string)
	for i := range processes {
		cmd, out, say := start(t, "crowd", where, fmt.Sprint("p", i), fmt.Sprint(tries))
		if !out.Scan() || out.Text() != "ready" {
			t.Fatal("a child did not start")
		}
		begin = append(begin, say)
		ends.Go(func() {
			for out.Scan() {
				var verdict string
				var ns int64
				_, err := fmt.Sscan(out.Text(), &verdict, &ns)
				mu.Lock()
				if err != nil {
					t.Errorf("found %q: %v", out.Text(), err)
				}
				if verdict == "admitted" {
					admitted++
				} else {
					refused++
				}
				took = append(took, time.Duration(ns))
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err) // its words are on the standard error
			}
		})
	}
	began := time.Now()
	for _, say := range begin {
		say("go")
	}
	ends.Wait()
	all := time.Since(began)
	if admitted != admits || refused != processes*tries-admits {
		t.Errorf("%d runs were admitted and %d refused; the budget admits %d of %d", admitted, refused, admits, processes*tries)
	}
	d, err := l.Dataset(t.Context(), "shared")
	must(t, err)
	if d.Runs != admits || d.Spent.Epsilon > d.Budget.Epsilon {
		t.Errorf("the ledger has %d runs and %v of %v", d.Runs, d.Spent, d.Budget)
	}
	verify(t, l)
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	at := func(part float64) time.Duration {
		return took[int(part*float64(len(took)-1))].Round(100 * time.Microsecond)
	}
	t.Logf("%d processes × %d reservations in %v: p50 %v, p99 %v, most %v", processes, tries, all.Round(time.Millisecond), at(0.5), at(0.99), at(1))
	if *long && at(0.99) > 5*time.Second {
		t.Errorf("one reservation in a hundred takes more than %v", at(0.99))
	}
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
		must(t, l.Resume(ctx, "held", token, next, nil)) // and it can go on
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
