package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/internal/vfs"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
)

// The test binary is also the process that gets killed.
func TestMain(m *testing.M) {
	if verb := os.Getenv("SOTTO_RUN_CHILD"); verb != "" {
		err := child(verb, os.Args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		switch {
		case errors.Is(err, privacy.ErrExhausted):
			os.Exit(3)
		case err != nil:
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(needs.Home(m))
}

// child fits the spec or resumes the directory, and says which steps it is told of.
func child(verb, what string) error {
	env := Env{Workers: 1, Progress: func(p Progress) { fmt.Println("durable", p.Step) }}
	if verb == "resume" {
		_, err := Resume(context.Background(), what, env)
		return err
	}
	spec, err := LoadSpec(what, nil)
	if err != nil {
		return err
	}
	job, err := Prepare(spec)
	if err != nil {
		return err
	}
	fmt.Sscan(os.Getenv("SOTTO_RUN_STATE_EVERY"), &job.StateEvery)
	_, _, err = Fit(context.Background(), job, env)
	return err
}

func process(verb, what string) *exec.Cmd {
	c := exec.Command(os.Args[0], what)
	c.Env = append(os.Environ(), "SOTTO_RUN_CHILD="+verb)
	return c
}

// clinicSpec writes a spec over examples/clinic that runs into dir/name.
func clinicSpec(t *testing.T, dir, name, more string) (spec, out string) {
	t.Helper()
	example, err := filepath.Abs(filepath.Join("..", "examples", "clinic"))
	if err != nil {
		t.Fatal(err)
	}
	spec, out = filepath.Join(dir, name+".yaml"), filepath.Join(dir, name)
	text := fmt.Sprintf("data: %s/patients.csv\nschema: %s/schema.yaml\nmodel: {name: logistic}\nledger: %s\nout: %s\n"+
		"privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n%s\n", example, example, filepath.Join(dir, "ledger.db"), out, more)
	if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return spec, out
}

// poisson is a method that runs for about that many seconds.
func poisson(seconds float64) string {
	return fmt.Sprintf("method: {name: sgd, steps: %d, batch: 256, rate: 0.5}", int(seconds*22000)/slowdown())
}

// killed starts a process, kills it after a while, and says whether it had ended
// well before, and the last step that it told of.
func killed(t *testing.T, c *exec.Cmd, after time.Duration) (done bool, told int) {
	t.Helper()
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { c.Process.Kill() })
	err := c.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		t.Fatalf("the process ended by itself: %v\n%s", err, stderr.String())
	}
	lines := bufio.NewScanner(&out)
	for lines.Scan() {
		fmt.Sscanf(lines.Text(), "durable %d", &told)
	}
	return err == nil, told
}

// next is the process that goes on with a run, from whatever is there.
func next(t *testing.T, spec, out string) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat(filepath.Join(out, runlog.InfoFile)); err == nil {
		return process("resume", out)
	}
	// Killed before there was anything to resume: nothing has been spent.
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	return process("fit", spec)
}

func delay(kill int) time.Duration {
	if kill%3 == 0 {
		return rand.N(50 * time.Millisecond)
	}
	return rand.N(700 * time.Millisecond)
}

func logOf(t *testing.T, dir string) *runlog.Record {
	t.Helper()
	r, err := runlog.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sameFile(t *testing.T, a, b, name string) {
	t.Helper()
	x, err := os.ReadFile(filepath.Join(a, name))
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(filepath.Join(b, name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s of the broken run differs from the unbroken one's", name)
	}
}

const kills = 15 // of each test

const never = math.MaxInt64 // to wait before a kill

// A seeded run that is killed at any moment and resumed, again and again, ends
// bit-equal to an unbroken one, whether it keeps all releases or saves states.
func TestKilledSeededRunEndsAsUnbroken(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	t.Run("all", func(t *testing.T) { killedSeeded(t, 0, "") })
	t.Run("states", func(t *testing.T) { killedSeeded(t, 150, "") })
	t.Run("holdout", func(t *testing.T) { killedSeeded(t, 150, "holdout: 0.2\n") })
}

func killedSeeded(t *testing.T, every int, more string) {
	t.Parallel()
	dir := t.TempDir()
	lab := "lab: true\nseed: 5\n" + more + poisson(1.5)
	saving := fmt.Sprint("SOTTO_RUN_STATE_EVERY=", every)
	spec, whole := clinicSpec(t, dir, "whole", lab)
	c := process("fit", spec)
	c.Env = append(c.Env, saving)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := model.Read(filepath.Join(whole, runlog.ModelFile))
	if err != nil {
		t.Fatal(err)
	}
	for n, k := 0, 0; k < kills; n++ {
		spec, out := clinicSpec(t, dir, fmt.Sprint("broken", n), lab)
		for {
			after := delay(k)
			if k >= kills {
				after = never
			}
			c := next(t, spec, out)
			c.Env = append(c.Env, saving)
			if done, _ := killed(t, c, after); done {
				break
			}
			k++
		}
		if !maps.Equal(hashes(t, whole), hashes(t, out)) {
			t.Error("the broken run left other files than the unbroken one")
		}
		if a, b := logOf(t, whole).Event(), logOf(t, out).Event(); !privacy.Equal(a, b) {
			t.Errorf("charged %v, the unbroken run %v", b, a)
		}
		got, err := model.Read(filepath.Join(out, runlog.ModelFile))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.W) != fmt.Sprint(want.W) {
			t.Error("the parameters differ")
		}
	}
}

// A run with secure noise that is killed at any moment never charges more than
// its plan, releases nothing that was not charged, tells of nothing that is not
// durable (R5), and reserves once.
func TestKilledSecureRunSpendsNothingTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := t.Context()
	for n, k := 0, 0; k < kills; n++ {
		spec, out := clinicSpec(t, dir, fmt.Sprint("run", n), poisson(1.5))
		charged, released := 0, 0
		for {
			after := delay(k)
			if k >= kills {
				after = never
			}
			done, told := killed(t, next(t, spec, out), after)
			if _, err := os.Stat(filepath.Join(out, runlog.InfoFile)); err != nil {
				k++
				continue
			}
			info, err := runlog.ReadInfo(out)
			if err != nil {
				t.Fatal(err)
			}
			r := logOf(t, out)
			switch {
			case r.Charged() > info.MaxSteps:
				t.Fatalf("%d batches charged of a plan of %d", r.Charged(), info.MaxSteps)
			case r.Charged() < charged || r.Released < released:
				t.Fatalf("%d charges and %d releases were durable, now %d and %d", charged, released, r.Charged(), r.Released)
			case r.Released > r.Charged():
				t.Fatalf("%d releases, %d charges", r.Released, r.Charged())
			case told > r.Released:
				t.Fatalf("told of step %d, %d are durable", told, r.Released)
			}
			charged, released = r.Charged(), r.Released
			if done {
				if info.Status != runlog.Finished || info.Result.Charged != charged || info.Result.Steps != released {
					t.Errorf("status %s, result %+v; the record has %d charges and %d releases", info.Status, info.Result, charged, released)
				}
				break
			}
			k++
		}
		l := openLedger(t, dir)
		runs, err := l.Runs(ctx, "clinic")
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != n+1 || runs[n].State != ledger.StateSettled || runs[n].Caps.Epsilon != 1 {
			t.Errorf("%d runs in the ledger, want %d; the last: %+v", len(runs), n+1, runs[len(runs)-1])
		}
		if _, err := l.Verify(ctx); err != nil {
			t.Error(err)
		}
		l.Close()
	}
}

func openLedger(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Two processes at once, a budget for one: one runs, the other is refused.
func TestTwoProcessesOneBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLedger(t, dir)
	if err := l.SetBudget(t.Context(), "clinic", "record", "", privacy.Budget{Epsilon: 1.5, Delta: 1e-3, Adjacency: privacy.AddRemove}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	codes := make(chan int)
	for i := range 2 {
		spec, _ := clinicSpec(t, dir, fmt.Sprint("run", i), "")
		c := process("fit", spec)
		go func() {
			c.Run()
			codes <- c.ProcessState.ExitCode()
		}()
	}
	if a, b := <-codes, <-codes; a+b != 3 || a*b != 0 {
		t.Errorf("exit codes %d and %d, want 0 and 3", a, b)
	}
	left := 0
	for i := range 2 {
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprint("run", i))); err == nil {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d run directories, want one", left)
	}
}

// begin prepares a run in this process.
func begin(t *testing.T, dir, name, more string, overrides ...Override) (*Job, string) {
	t.Helper()
	file, out := clinicSpec(t, dir, name, more)
	spec, err := LoadSpec(file, overrides)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	return job, out
}

// stopped begins a run in this process and stops it once its first group is durable.
func stopped(t *testing.T, dir, more string) (out string) {
	t.Helper()
	job, out := begin(t, dir, "run", more)
	ctx, stop := context.WithCancel(t.Context())
	_, _, err := Fit(ctx, job, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
	return out
}

// stopAt makes an Env that calls do at the n-th progress.
func stopAt(n int, do func()) Env {
	return Env{Workers: 1, Progress: func(Progress) {
		if n--; n == 0 {
			do()
		}
	}}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// wantErr fails unless err wraps want.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("found error %v; want one that wraps %v", err, want)
	}
}

func TestStopResumeAndCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", poisson(4))
	ctx, stop := context.WithCancel(t.Context())
	held := false
	info, _, err := Fit(ctx, job, stopAt(1, func() {
		_, err := Resume(t.Context(), out, Env{})
		held = err != nil && strings.Contains(err.Error(), "another process is at work on this run")
		stop()
	}))
	wantErr(t, err, ErrInterrupted)
	if !held {
		t.Error("a directory that is in use was not refused")
	}
	if info.Status != runlog.Interrupted {
		t.Errorf("status %q", info.Status)
	}
	copyDir(t, out, out+"-copy")

	// The original goes on, a little: the copy's token is worth nothing now.
	ctx, stop = context.WithCancel(t.Context())
	_, err = Resume(ctx, out, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
	_, err = Resume(t.Context(), out+"-copy", Env{})
	wantErr(t, err, ledger.ErrStaleToken)
	if _, err = Resume(t.Context(), out, Env{}); err != nil {
		t.Fatal(err)
	}
	_, err = Resume(t.Context(), out+"-copy", Env{})
	wantErr(t, err, ledger.ErrSettled)
	if _, err = Resume(t.Context(), out, Env{}); err != nil { // nothing is left to do
		t.Error(err)
	}
	if r := logOf(t, out); r.Charged() != info.MaxSteps || r.Released != info.MaxSteps {
		t.Errorf("%d charges and %d releases of a run of %d steps", r.Charged(), r.Released, info.MaxSteps)
	}
}

// A copy taken while the run goes on holds the current token. The first to come
// publishes; the other publishes nothing of what the first has released (R7).
func TestLiveCopies(t *testing.T) {
	t.Parallel()
	t.Run("the copy is behind", func(t *testing.T) {
		t.Parallel()
		job, out := begin(t, t.TempDir(), "run", poisson(4))
		n := 0
		_, _, err := Fit(t.Context(), job, Env{Workers: 1, Progress: func(Progress) {
			switch n++; n {
			case 1:
				copyDir(t, out, out+"-copy")
			case 2:
				_, err := Resume(t.Context(), out+"-copy", Env{})
				wantErr(t, err, ledger.ErrBehind)
				// Nor may it say what the run cost: it does not know.
				_, _, err = Abandon(t.Context(), out+"-copy", "")
				wantErr(t, err, ledger.ErrBehind)
			}
		}})
		if err != nil || n < 2 {
			t.Errorf("the run itself: %v, after %d groups", err, n)
		}
	})
	t.Run("the copy is first", func(t *testing.T) {
		t.Parallel()
		job, out := begin(t, t.TempDir(), "run", poisson(4))
		released := 0
		_, _, err := Fit(t.Context(), job, stopAt(1, func() {
			copyDir(t, out, out+"-copy")
			released = logOf(t, out).Released
			ctx, stop := context.WithCancel(t.Context())
			_, err := Resume(ctx, out+"-copy", stopAt(1, stop))
			wantErr(t, err, ErrInterrupted)
		}))
		wantErr(t, err, ledger.ErrStaleToken)
		if n := logOf(t, out).Released; n != released {
			t.Errorf("the original released %d batches after it was taken over", n-released)
		}
		if _, err := Resume(t.Context(), out+"-copy", Env{}); err != nil {
			t.Error(err)
		}
	})
}

// A run that is stopped while it reads leaves nothing: no directory, no ledger.
func TestStopWhileLoading(t *testing.T) {
	dir := t.TempDir()
	job, _ := begin(t, dir, "run", "")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, _, err := Fit(ctx, job, Env{})
	wantErr(t, err, ErrNotBegun)
	var names []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		names = append(names, d.Name())
		return err
	})
	if len(names) != 2 { // dir and the spec
		t.Errorf("found %v", names)
	}
}

// A crash between the directory and the reservation, and one between the
// directory's end and the ledger's: both resume.
func TestCrashBesideTheLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
	if _, _, err := Fit(t.Context(), job, Env{}); err != nil {
		t.Fatal(err)
	}
	// As it stood before the last line of the ledger was written.
	db := filepath.Join(dir, "ledger.db")
	info, err := runlog.ReadInfo(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(db, db+".settled"); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Accept(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	token, err := readToken(vfs.OS{}, filepath.Join(out, runlog.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	if _, err := l.Reserve(t.Context(), ledger.Reservation{Dataset: "clinic", Unit: "record", Adjacency: privacy.AddRemove, Run: info.ID, Epsilon: 1, Delta: 1e-5, Token: token}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Resume(t.Context(), out, Env{}); err != nil {
		t.Fatal(err)
	}
	l = openLedger(t, dir)
	defer l.Close()
	r, err := l.Run(t.Context(), info.ID)
	if err != nil || r.State != ledger.StateSettled || r.Settlement.Outcome != ledger.Done {
		t.Errorf("%+v, %v", r, err)
	}

	// Before the first: the directory is there, the ledger knows nothing of it.
	info.ID, info.Status, info.Result, info.Finished = "fresh", runlog.Running, nil, nil
	fresh := filepath.Join(dir, "fresh")
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := runlog.Create(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), runlog.WriteInfo(fresh, info), os.WriteFile(filepath.Join(fresh, runlog.TokenFile), []byte(ledger.NewToken()), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(t.Context(), fresh, Env{}); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Run(t.Context(), "fresh"); err != nil || r.State != ledger.StateSettled || r.Caps.Epsilon != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Killed twice around the swap of the token: after the ledger knew the new one, and
// then before it knew the next.
func TestCrashesAroundTheToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", poisson(4))
	ctx, stop := context.WithCancel(t.Context())
	info, _, err := Fit(ctx, job, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
	path := filepath.Join(out, runlog.TokenFile)
	old, err := readToken(vfs.OS{}, path)
	if err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	defer l.Close()
	known := ledger.NewToken()
	if err := errors.Join(os.WriteFile(path+pending, []byte(known), 0o600), l.Resume(t.Context(), info.ID, old, known, ledgerCharges(logOf(t, out).Events))); err != nil {
		t.Fatal(err)
	}
	if token, err := (&Session{ledger: l, Dir: out, Info: info}).currentToken(t.Context()); err != nil || token != known {
		t.Fatalf("token %q, %v; want the pending one", token, err)
	}
	if err := os.WriteFile(path+pending, []byte(ledger.NewToken()), 0o600); err != nil { // killed here
		t.Fatal(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	_, err = Resume(ctx, out, stopAt(1, stop))
	wantErr(t, err, ErrInterrupted)
}

// refuses is a file system on which files of one name cannot be opened.
type refuses struct {
	vfs.OS
	name string
}

func (r refuses) OpenFile(name string, flag int, mode fs.FileMode) (vfs.File, error) {
	if filepath.Base(name) == r.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("input/output error")}
	}
	return r.OS.OpenFile(name, flag, mode)
}

// A pending token that cannot be read may be the current one: nothing may be written over it.
func TestUnreadableToken(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	out := stopped(t, t.TempDir(), poisson(4))
	path := filepath.Join(out, runlog.TokenFile) + pending
	before := ledger.NewToken()
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	on := disk{runlog.Disk{FS: refuses{name: filepath.Base(path)}}, ledger.Disk{FS: vfs.OS{}}}
	if _, err := Resume(t.Context(), out, Env{disk: &on}); err == nil || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("err = %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != before {
		t.Errorf("the pending token is now %q, %v", now, err)
	}
	if _, err := Resume(t.Context(), out, Env{}); err != nil {
		t.Error(err)
	}
}

// Releases that are missing although steps followed from them are damage, and the run does not go on without them.
func TestResumeMissesReleases(t *testing.T) {
	t.Parallel()
	out := stopped(t, t.TempDir(), poisson(4))
	if err := os.Truncate(filepath.Join(out, runlog.ReleasesFile), 1000); err != nil {
		t.Fatal(err)
	}
	charged := logOf(t, out).Charged()
	if _, err := Resume(t.Context(), out, Env{}); err == nil || !strings.Contains(err.Error(), "is damaged: steps.jsonl holds") {
		t.Errorf("err = %v", err)
	}
	if now := logOf(t, out).Charged(); now != charged {
		t.Errorf("%d batches were charged, now %d", charged, now)
	}
	if _, _, err := Abandon(t.Context(), out, ""); err != nil {
		t.Error(err)
	}
}

// What was reserved and what the directory says must agree.
func TestResumeRefusesAnotherBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := stopped(t, dir, poisson(4))
	info, err := runlog.ReadInfo(out)
	if err != nil {
		t.Fatal(err)
	}
	info.Budget.Epsilon = 5
	if err := runlog.WriteInfo(out, info); err != nil {
		t.Fatal(err)
	}
	_, err = Resume(t.Context(), out, Env{})
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "the ledger reserved (ε 1, δ 0.00001)") {
		t.Errorf("found error %v", err)
	}
}

// slowdown is about by how much the race detector slows the loop over steps.
func slowdown() int { return race.Slower(8) }
