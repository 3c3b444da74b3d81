//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/compare"
)

// killSeedVariable repeats the moments of a test that failed.
const killSeedVariable = "SOTTO_TEST_KILL_SEED"

// A killing kills processes of one command, again and again, and looks at what they left.
type killing struct {
	t      *testing.T
	rand   *rand.Rand
	dir    string // all files of the command are below it
	home   string // ledger and state of the owner
	whole  int64  // bytes below dir when an unbroken process had ended
	left   int    // kills to do
	killed int    // processes that were killed before they ended
	ended  map[string]int
}

func newKilling(t *testing.T, seed uint64, kills int) *killing {
	k := &killing{t: t, rand: rand.New(rand.NewPCG(seed, uint64(len(t.Name())))), dir: t.TempDir(), home: t.TempDir(), left: kills, ended: map[string]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d repeats the moments of these kills", killSeedVariable, seed)
		}
		t.Logf("%d killed; %v", k.killed, k.ended)
	})
	return k
}

func (k *killing) command(args ...string) *exec.Cmd {
	c := sotto(k.t, args...)
	c.Env = append(os.Environ(), "XDG_DATA_HOME="+k.home, "XDG_STATE_HOME="+k.home)
	c.Stderr = nil
	return c
}

// bytes is how much is written below dir: how far a process has come, whatever the machine is at besides.
func (k *killing) bytes() (n int64) {
	filepath.WalkDir(k.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// measure lets a process end, and notes how much it wrote.
func (k *killing) measure(args ...string) {
	k.t.Helper()
	before := k.bytes()
	if out, err := k.command(args...).CombinedOutput(); err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	k.whole = k.bytes() - before
}

// kill starts a process and kills it at a random moment: some when they have written a random share of what an unbroken one
// writes, some after a random time, most of these before anything is written. It reports what the process had said if it
// ended before that, by itself.
func (k *killing) kill(args ...string) (ended bool, code int, said string) {
	k.t.Helper()
	var out bytes.Buffer
	c := k.command(args...)
	c.Stdout, c.Stderr = &out, &out
	before := k.bytes()
	if err := c.Start(); err != nil {
		k.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	if k.left > 0 {
		after := time.Duration(k.rand.Float64() * k.rand.Float64() * float64(time.Second))
		share := int64(k.rand.Float64() * float64(k.whole))
		byTime := k.rand.IntN(3) == 0
		late := time.Duration(k.rand.Float64() * float64(10*time.Millisecond)) // what is done after the last byte counts, too
		for start := time.Now(); !(byTime && time.Since(start) > after) && (byTime || k.bytes()-before < share); {
			select {
			case err := <-done:
				return k.exit(c, err, &out)
			case <-time.After(200 * time.Microsecond):
			}
		}
		select {
		case err := <-done:
			return k.exit(c, err, &out)
		case <-time.After(late):
		}
		c.Process.Kill()
	}
	return k.exit(c, <-done, &out)
}

func (k *killing) exit(c *exec.Cmd, err error, out *bytes.Buffer) (bool, int, string) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		k.killed++
		k.left--
		k.ended["killed"]++
		return false, -1, out.String()
	}
	code := c.ProcessState.ExitCode()
	k.ended[fmt.Sprint("exit ", code)]++
	return true, code, out.String()
}

// ledgerHolds says what is in the owner's ledger, which must be sound after each kill; nil where there is none yet.
func (k *killing) ledgerHolds() []ledger.Run {
	k.t.Helper()
	path := filepath.Join(k.home, "sotto", "ledger.db")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil
	}
	if out, err := k.command("ledger", "verify").CombinedOutput(); err != nil {
		k.t.Fatalf("the ledger after a kill: %v\n%s", err, out)
	}
	l, err := ledger.View(context.Background(), path)
	if err != nil {
		k.t.Fatal(err)
	}
	defer l.Close()
	runs, err := l.Runs(context.Background(), "clinic")
	if err != nil && !errors.Is(err, ledger.ErrUnknownDataset) {
		k.t.Fatal(err)
	}
	return runs
}

// TestEKill kills processes of each command that writes, at random moments, and goes on from what they left: no ledger is ever
// wrong, and each goes on or says why not. -long kills 300.
func TestEKill(t *testing.T) {
	race.Skip(t)
	seed := rand.Uint64()
	if text := os.Getenv(killSeedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	kills := 3 // of each command
	if *long {
		kills = 60
	}
	clinic, err := filepath.Abs("../examples/clinic")
	if err != nil {
		t.Fatal(err)
	}
	table := []string{"--data", filepath.Join(clinic, "patients.csv"), "--schema", filepath.Join(clinic, "schema.yaml")}
	spec := append(slices.Clone(table), "--model", "logistic", "--epsilon", "1", "--delta", "1e-5", "--adjacency", "add-or-remove", "--quiet")
	for name, test := range map[string]func(*killing){
		"fit":     func(k *killing) { k.fit(spec) },
		"tune":    func(k *killing) { k.tune(table) },
		"compare": func(k *killing) { k.compare(spec) },
		"pack":    func(k *killing) { k.pack(table) },
		"serve":   func(k *killing) { k.serve(spec) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKilling(t, seed, kills)
			test(k)
			if k.killed < kills {
				t.Errorf("%d of %d were killed", k.killed, kills)
			}
		})
	}
}

// fit: what is released is reserved for, once, and the run goes on to its end, its report included.
func (k *killing) fit(spec []string) {
	fit := func(out string) []string {
		return append([]string{"fit", "--out", out, "--method", "sgd", "--set", "method.steps=20000", "--set", "method.batch=64"}, spec...)
	}
	k.measure(fit(filepath.Join(k.dir, "whole"))...)
	for n := 0; k.left > 0; n++ {
		out := filepath.Join(k.dir, fmt.Sprint("run", n))
		for {
			args := []string{"fit", "--resume", out, "--quiet"}
			if _, err := os.Stat(filepath.Join(out, runlog.InfoFile)); err != nil {
				// Killed before there was anything to resume: the command says so, and nothing was spent.
				if _, err := os.Stat(out); err == nil {
					if b, err := k.command(args...).CombinedOutput(); exitOf(err) != exitInput || !strings.Contains(string(b), "is not a run directory") {
						k.t.Fatalf("%v\n%s", err, b)
					}
				}
				if err := os.RemoveAll(out); err != nil {
					k.t.Fatal(err)
				}
				args = fit(out)
			} else if k.rand.IntN(2) == 0 {
				args = append(args, "--ledger", filepath.Join(k.home, "sotto", "ledger.db"))
			}
			ended, code, said := k.kill(args...)
			runs := k.ledgerHolds()
			if ended && code != 0 {
				k.t.Fatalf("%v: exit code %d\n%s", args, code, said)
			}
			info, err := runlog.ReadInfo(out)
			if err != nil {
				continue
			}
			rec, err := runlog.Read(out)
			if err != nil {
				k.t.Fatal(err)
			}
			at := slices.IndexFunc(runs, func(r ledger.Run) bool { return r.ID == info.ID })
			switch {
			case at < 0 && (rec.Charged() > 0 || ended):
				k.t.Fatalf("%d batches are charged that nothing is reserved for", rec.Charged())
			case rec.Released > rec.Charged():
				k.t.Fatalf("%d releases, %d charges", rec.Released, rec.Charged())
			case !ended:
				continue
			}
			r := runs[at]
			alike, err := r.Settlement.Shows(rec.Event())
			if err != nil {
				k.t.Fatal(err)
			}
			if r.State != ledger.StateSettled || !alike || info.Status != runlog.Finished {
				k.t.Fatalf("ended as %s, in the ledger %s: %s\nwhere the directory charged %v", info.Status, r.State, r.Settlement.Charged, rec.Event())
			}
			break
		}
		if b, err := k.command("verify", out).CombinedOutput(); err != nil {
			k.t.Fatalf("verify: %v\n%s", err, b)
		}
		left, err := filepath.Glob(filepath.Join(out, ".*.[0-9]*"))
		if _, missing := os.Stat(filepath.Join(out, runlog.ReportFile)); err != nil || missing != nil || len(left) > 0 {
			k.t.Fatalf("report: %v; temporary files: %v, %v", missing, left, err)
		}
	}
}

func exitOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// tune: a search cannot go on, by design; it says so. Its budget is reserved as a whole or not at all, before anything is
// trained, and a search that ended is complete.
func (k *killing) tune(table []string) {
	file := filepath.Join(k.home, "tune.yaml")
	text := "model: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n" +
		"tune: {methods: [{name: sgd, steps: 300, batch: 64}, {name: sgd, steps: 600, batch: 64}]}\nschema: " + table[3] + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	tune := func(out string) []string {
		return append([]string{"tune", file, "--out", out, "--quiet"}, table...)
	}
	k.measure(tune(filepath.Join(k.dir, "whole"))...)
	reserved := len(k.ledgerHolds())
	for n := 0; k.left > 0; n++ {
		out := filepath.Join(k.dir, fmt.Sprint("tuned", n))
		ended, code, said := k.kill(tune(out)...)
		runs := k.ledgerHolds()
		if ended && code != 0 || len(runs) < reserved || len(runs) > reserved+1 || ended && len(runs) != reserved+1 {
			k.t.Fatalf("exit code %d, %d reservations where %d were\n%s", code, len(runs), reserved, said)
		}
		reserved = len(runs)
		info, err := runlog.ReadInfo(out)
		if err != nil { // nothing of the search is there
			if _, err := os.Stat(filepath.Join(out, runlog.ReportFile)); err == nil {
				k.t.Fatal("a report without a run")
			}
			if b, err := k.command("fit", "--resume", out).CombinedOutput(); exitOf(err) != exitInput || !strings.Contains(string(b), "is not a run directory") {
				k.t.Fatalf("resume of a search: %v\n%s", err, b)
			}
			continue
		}
		at := slices.IndexFunc(runs, func(r ledger.Run) bool { return r.ID == info.ID })
		if at < 0 || runs[at].State != ledger.StateSettled {
			k.t.Fatalf("a search left run.json, and the ledger has %+v", runs)
		}
		if b, err := k.command("fit", "--resume", out, "--quiet").CombinedOutput(); err != nil && !strings.Contains(string(b), "sotto:") {
			k.t.Fatalf("resume of a search that has ended: %v\n%s", err, b)
		}
	}
}

// compare: the same command goes on with the trainings that are there, to the same number.
func (k *killing) compare(spec []string) {
	const trainings = 12
	to := func(out string) []string {
		args := append([]string{"compare", "--out", out, "--methods", "sgd,gd", "--seeds", "6", "--split", "0.8", "--jobs", "1", "--set", "method.steps=400"}, spec...)
		return append(args, "--void")
	}
	k.measure(to(filepath.Join(k.dir, "whole"))...)
	for n := 0; k.left > 0; n++ {
		out := filepath.Join(k.dir, fmt.Sprint("compared", n))
		for {
			ended, code, said := k.kill(to(out)...)
			k.ledgerHolds()
			if ended && code == exitInput && strings.Contains(said, "holds no comparison") { // killed before it had begun
				if err := os.RemoveAll(out); err != nil {
					k.t.Fatal(err)
				}
				continue
			}
			if ended && code != 0 {
				k.t.Fatalf("exit code %d\n%s", code, said)
			}
			if ended {
				break
			}
		}
		b, err := os.ReadFile(filepath.Join(out, compare.RunsCSV))
		if lines := bytes.Count(b, []byte("\n")); err != nil || lines != trainings+1 {
			k.t.Fatalf("%d lines of %d trainings, %v", lines, trainings, err)
		}
	}
}

// pack: the table is there as a whole or not at all, and packing again gives the same.
func (k *killing) pack(table []string) {
	big := filepath.Join(k.home, "big.csv") // enough rows for some blocks
	rows, err := os.ReadFile(table[1])
	if err != nil {
		k.t.Fatal(err)
	}
	head, body, _ := bytes.Cut(rows, []byte("\n"))
	if err := os.WriteFile(big, slices.Concat(head, []byte("\n"), bytes.Repeat(body, 25)), 0o600); err != nil {
		k.t.Fatal(err)
	}
	declared, err := os.ReadFile(table[3])
	if err != nil {
		k.t.Fatal(err)
	}
	schema := filepath.Join(k.home, "big.yaml")
	if err := os.WriteFile(schema, bytes.Replace(declared, []byte("rows: 4000 "), []byte("rows: 100000 "), 1), 0o600); err != nil {
		k.t.Fatal(err)
	}
	pack := func(out string, more ...string) []string {
		return append([]string{"data", "pack", "--schema", schema, "--data", big, "--out", out}, more...)
	}
	whole := filepath.Join(k.dir, "whole.pack")
	k.measure(pack(whole)...)
	want, err := os.ReadFile(whole)
	if err != nil {
		k.t.Fatal(err)
	}
	same := func(out string) {
		k.t.Helper()
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			k.t.Fatalf("another table of %d bytes, %v", len(got), err)
		}
	}
	for n := 0; k.left > 0; n++ {
		out := filepath.Join(k.dir, fmt.Sprint("table", n, ".pack"))
		ended, code, said := k.kill(pack(out)...)
		if ended && code != 0 {
			k.t.Fatalf("exit code %d\n%s", code, said)
		}
		if _, err := os.Stat(out); err == nil || ended {
			same(out)
		}
		if b, err := k.command(pack(out, "--force")...).CombinedOutput(); err != nil {
			k.t.Fatalf("again: %v\n%s", err, b)
		}
		same(out)
		left, err := filepath.Glob(filepath.Join(k.dir, ".table*"))
		if err != nil {
			k.t.Fatal(err)
		}
		for _, f := range append(left, out) {
			os.Remove(f)
		}
	}
}

// serve: it only reads; a second one comes up on what the first one left.
func (k *killing) serve(spec []string) {
	run := filepath.Join(k.dir, "run")
	if b, err := k.command(append([]string{"fit", "--out", run, "--set", "method.steps=5"}, spec...)...).CombinedOutput(); err != nil {
		k.t.Fatalf("%v\n%s", err, b)
	}
	before := k.bytes()
	for k.left > 0 {
		c := k.command("serve", k.dir)
		out, err := c.StdoutPipe()
		if err != nil {
			k.t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			k.t.Fatal(err)
		}
		link := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(out).ReadString('\n')
			link <- line
		}()
		if k.rand.IntN(2) == 0 { // one that has come up
			if line := <-link; !strings.Contains(line, "/?token=") {
				k.t.Fatalf("no link: %q", line)
			}
			time.Sleep(time.Duration(k.rand.Float64() * float64(20*time.Millisecond)))
		} else {
			time.Sleep(time.Duration(k.rand.Float64() * float64(200*time.Millisecond)))
		}
		c.Process.Kill()
		k.exit(c, c.Wait(), new(bytes.Buffer))
		if runs := k.ledgerHolds(); len(runs) != 1 || runs[0].State != ledger.StateSettled {
			k.t.Fatalf("the ledger has %+v", runs)
		}
		if after := k.bytes(); after != before {
			k.t.Fatalf("%d bytes below the folder that is served, where %d were", after, before)
		}
	}
	needs.Until(k.t, "a page after the kills", func() bool {
		c := k.command("serve", k.dir)
		out, err := c.StdoutPipe()
		if err != nil || c.Start() != nil {
			return false
		}
		defer c.Wait()
		defer c.Process.Kill()
		line, _ := bufio.NewReader(out).ReadString('\n')
		return strings.Contains(line, "/?token=")
	})
}
