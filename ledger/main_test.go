package ledger

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/privacy"
)

var long = flag.Bool("long", false, "let 32 processes make 1,000 reservations each, some minutes")
var every = flag.Int64("every", 0, "write a checkpoint after so many entries, in place of the usual number")

// The test binary is also the other process of the tests that need one.
func TestMain(m *testing.M) {
	if n, err := strconv.ParseInt(os.Getenv("SOTTO_LEDGER_EVERY"), 10, 64); err == nil {
		machine.Every = n
	}
	if role := os.Getenv("SOTTO_LEDGER_CHILD"); role != "" {
		if err := child(role, os.Args[1], os.Args[2:]...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if *every > 0 {
		machine.Every = *every
		os.Setenv("SOTTO_LEDGER_EVERY", strconv.FormatInt(*every, 10))
	}
	checks := "12" // each step of a property commits; -rapid.checks asks for more
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	flag.Set("rapid.checks", checks)
	os.Exit(needs.Home(m))
}

// filterSigma is the noise of the runs in tests of filters: each batch is ρ = 5e-5.
const filterSigma = 100

func child(role, where string, args ...string) error {
	ctx := context.Background()
	l, err := Open(ctx, where)
	if err != nil {
		return err
	}
	defer l.Close()
	switch role {
	case "race": // NAME COUNT [FILTER]: tries COUNT runs of 0.1, prints the name of each that was admitted
		count, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n')
		for i := range count {
			r := reservation("shared", fmt.Sprintf("%s-%d", args[0], i))
			time.Sleep(time.Duration(i%4) * time.Millisecond) // SQLite's waiter sleeps: leave it gaps
			end := Settlement{Outcome: Done}
			if len(args) > 2 {
				r.Plan = privacy.Repeated{Count: 10, Of: privacy.Gaussian{Sigma: filterSigma}}
				end.Charged, end.Batches = json.RawMessage(`{"event":"repeated","count":10,"of":{"event":"gaussian","sigma":100}}`), 10
			}
			token, err := l.Reserve(ctx, r)
			switch {
			case errors.Is(err, privacy.ErrExhausted):
				continue
			case err != nil:
				return err
			}
			fmt.Println(r.Run)
			if i%3 == 0 {
				if r.Plan != nil {
					if err := l.Reach(ctx, r.Run, token, 10, batchesOf(10, filterSigma)); err != nil {
						return err
					}
				}
				if err := l.Settle(ctx, r.Run, token, end); err != nil {
					return err
				}
			}
		}
	case "crowd": // NAME COUNT: tries COUNT runs of 0.001, prints for each "admitted" or "refused" and the nanoseconds it took
		count, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n')
		for i := range count {
			r := reservation("shared", fmt.Sprintf("%s-%d", args[0], i))
			r.Epsilon, r.Delta = 0.001, 0
			began := time.Now()
			_, err := l.Reserve(ctx, r)
			verdict := "admitted"
			if errors.Is(err, privacy.ErrExhausted) {
				verdict = "refused"
			} else if err != nil {
				return err
			}
			fmt.Println(verdict, time.Since(began).Nanoseconds())
		}
	case "hold": // reserves, prints the token, and waits to be killed
		token, err := l.Reserve(ctx, reservation("clinic", "held"))
		if err != nil {
			return err
		}
		fmt.Println(token)
		select {}
	case "loop": // reserves until it is killed
		for i := 0; ; i++ {
			r := reservation("clinic", fmt.Sprintf("loop-%d", i))
			if len(args) > 0 { // another prefix
				r.Run = fmt.Sprint(args[0], "-", i)
			}
			r.Epsilon = 1e-6
			if _, err := l.Reserve(ctx, r); err != nil {
				return err
			}
			fmt.Println(r.Run)
		}
	case "read-only": // the caller may read the file and not write it
		if _, err := l.Datasets(ctx); err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if n, err := l.Verify(ctx); err != nil || n == 0 {
			return fmt.Errorf("verifying: %d, %w", n, err)
		}
		_, err := l.Reserve(ctx, reservation("clinic", "denied"))
		fmt.Println(err)
	}
	return nil
}

// start runs this test binary as a child in a role.
func start(t *testing.T, role string, args ...string) (*exec.Cmd, *bufio.Scanner, func(string)) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "SOTTO_LEDGER_CHILD="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGKILL) })
	return cmd, bufio.NewScanner(out), func(line string) { fmt.Fprintln(in, line) }
}

// onEach runs a test against every kind of database, each time on a new one.
func onEach(t *testing.T, test func(t *testing.T, where string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "ledger.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, newSchema(t)) })
}

// another is a new place of the same kind.
func another(t *testing.T, where string) string {
	if postgres.IsURL(where) {
		return newSchema(t)
	}
	return filepath.Join(t.TempDir(), "ledger.db")
}

func open(t testing.TB, where string) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func reservation(dataset, run string) Reservation {
	return Reservation{Dataset: dataset, Unit: "record", Adjacency: privacy.AddRemove, Run: run, Epsilon: 0.1, Delta: 1e-7}
}

func budget(epsilon, delta float64) privacy.Budget {
	return privacy.Budget{Epsilon: epsilon, Delta: delta, Adjacency: privacy.AddRemove}
}

// tester is a test or a rapid property.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t tester, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("found the error %v; want %v", err, want)
	}
}

func reserve(t testing.TB, l *Ledger, r Reservation) string {
	t.Helper()
	token, err := l.Reserve(t.Context(), r)
	must(t, err)
	return token
}

func verify(t testing.TB, l *Ledger) int {
	t.Helper()
	n, err := l.Verify(t.Context())
	must(t, err)
	return n
}

// forget makes l, and the next process that opens its ledger, as one that never saw it.
func forget(t testing.TB, l *Ledger) {
	t.Helper()
	l.prefix = prefix{}
	if err := os.Remove(l.witness.headFile(l.witness.id)); !errors.Is(err, os.ErrNotExist) {
		must(t, err)
	}
}
