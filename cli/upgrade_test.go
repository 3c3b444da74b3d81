package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/run/runlog"
)

// earlierBuild is earlierFiles of testdata/upgrade.
func earlierBuild(t *testing.T) (dir string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	return earlierFiles(t, "upgrade")
}

// earlierFiles is a copy of the files of an earlier build (a directory of testdata), and a command that works in it with
// data and state directories of its own.
func earlierFiles(t *testing.T, files string) (dir string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	if packed, _ := filepath.Glob(filepath.Join("testdata", files, "files.tar.*")); len(packed) == 1 {
		unpack(t, packed[0], dir)
	} else if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", files, "files"))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Name() == "run.json" {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte("@DIR@"), []byte(filepath.ToSlash(dir))), 0o600); err != nil {
				return err
			}
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) *exec.Cmd {
		c := sotto(t, args...)
		c.Dir, c.Stderr = dir, nil
		c.Env = append(c.Env, "XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_STATE_HOME="+filepath.Join(home, "state"))
		return c
	}
}

// ledgerOf is the ledger of a directory of testdata/upgrade.
func ledgerOf(name string) string {
	switch {
	case strings.HasPrefix(name, "node"):
		return name + ".db"
	case strings.HasSuffix(name, "-zcdp"), strings.HasSuffix(name, "-filtered"):
		return "zcdp.db"
	case strings.HasSuffix(name, "-gdp"):
		return "gdp.db"
	case strings.HasSuffix(name, "-rdp"):
		return "rdp.db"
	case name == "lab":
		return "lab.db"
	}
	return "caps.db"
}

// What an earlier build wrote is read, verified, resumed and settled as its own build would have done it.
func TestUpgrade(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	broken := []string{"int-caps", "int-rdp", "int-filtered", "int-states", "kill-caps", "kill-rdp", "kill-filtered", "kill-states"}
	run := func(t *testing.T, command func(...string) *exec.Cmd, args ...string) string {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("sotto %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	t.Run("ledgers", func(t *testing.T) {
		t.Parallel()
		_, command := earlierBuild(t)
		for _, l := range []string{"caps.db", "zcdp.db", "gdp.db", "rdp.db", "node.db", "node-killed.db"} {
			if said := run(t, command, "ledger", "verify", "--ledger", l); !strings.Contains(said, "the chain holds") {
				t.Errorf("%s: %s", l, said)
			}
			if said := run(t, command, "ledger", "list", "--ledger", l); !strings.Contains(said, "clinic") {
				t.Errorf("%s: %s", l, said)
			}
			if said := run(t, command, "ledger", "show", "clinic", "--ledger", l); !strings.Contains(said, "clinic") {
				t.Errorf("%s: %s", l, said)
			}
		}
	})
	t.Run("finished", func(t *testing.T) {
		t.Parallel()
		_, command := earlierBuild(t)
		for _, name := range []string{"finished", "finished-zcdp", "finished-gdp", "finished-rdp", "tuned", "node", "lab"} {
			run(t, command, "verify", name, "--ledger", ledgerOf(name))
			run(t, command, "verify", name)
			if name != "node" {
				run(t, command, "report", name)
				run(t, command, "predict", "--model", name, "--data", "heldout.csv", "--out", name+".csv")
			}
		}
	})
	t.Run("packed", func(t *testing.T) {
		t.Parallel()
		_, command := earlierBuild(t)
		run(t, command, "fit", "spec.yaml", "--quiet", "--data", "patients.pack", "--ledger", "caps.db", "--out", "new", "--set", "method.name=sgd", "--set", "method.steps=5")
		run(t, command, "verify", "new", "--ledger", "caps.db")
	})
	for _, name := range broken {
		t.Run("resume/"+name, func(t *testing.T) {
			t.Parallel()
			_, command := earlierBuild(t)
			run(t, command, "fit", "--quiet", "--resume", name)
			run(t, command, "verify", name, "--ledger", ledgerOf(name))
			run(t, command, "ledger", "verify", "--ledger", ledgerOf(name))
		})
	}
	for _, name := range append(broken, "node-killed") {
		t.Run("settle/"+name, func(t *testing.T) {
			t.Parallel()
			_, command := earlierBuild(t)
			if said := run(t, command, "ledger", "settle", name, "--ledger", ledgerOf(name)); !strings.Contains(said, "is settled") {
				t.Errorf("says %s", said)
			}
			run(t, command, "ledger", "verify", "--ledger", ledgerOf(name))
		})
	}
}

// partOf is the part of clinic's lifetime budget that a ledger says is held or settled.
func partOf(t *testing.T, command func(...string) *exec.Cmd, ledger string) float64 {
	t.Helper()
	out, err := command("ledger", "show", "clinic", "--ledger", ledger, "--json").Output()
	var d struct {
		Dataset struct {
			Part *float64 `json:"part"`
		} `json:"dataset"`
	}
	if err == nil {
		err = json.Unmarshal(out, &d)
	}
	if err != nil || d.Dataset.Part == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return *d.Dataset.Part
}

// A run that an earlier build reserved and broke off settles for what it charged where
// its plan repeats one batch, and otherwise for its whole plan.
func TestB1UpgradedSettlement(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for name, cheaper := range map[string]bool{"int-rdp": true, "kill-rdp": true, "int-filtered": false} {
		_, command := earlierBuild(t)
		before := partOf(t, command, ledgerOf(name))
		if out, err := command("ledger", "settle", name, "--ledger", ledgerOf(name)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if after := partOf(t, command, ledgerOf(name)); (after < before-1e-9) != cheaper || after > before {
			t.Errorf("%s: %v of the budget was held, %v after the settlement", name, before, after)
		}
	}
}

// The forgery of the review: the events of a run that was killed are rewritten to others, fewer or cheaper.
// Its settlement costs what the ledger recorded or the whole plan, and it does not resume.
func TestB1RewrittenEvents(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	dir, command := earlierBuild(t)
	out := filepath.Join(dir, "run")
	const l = "rdp.db"
	fit := command("fit", "spec.yaml", "--quiet", "--ledger", l, "--out", "run", "--set", "method.name=blsgd", "--set", "method.batch=200", "--set", "method.steps=4000")
	if err := fit.Start(); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		st, err := os.Stat(filepath.Join(out, "steps.jsonl"))
		if err != nil {
			return 0
		}
		return st.Size()
	}
	for end := time.Now().Add(5 * time.Minute); size() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	fit.Process.Kill()
	fit.Wait()
	rec, err := runlog.Read(out)
	if err != nil || rec.Charged() == 0 {
		t.Fatalf("%v, %v", rec, err)
	}
	held := partOf(t, command, l)
	events := filepath.Join(out, "events.jsonl")
	honest, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	// As many batches, all of the cheaper kind of the plan: an ordered part of it.
	cheap := strings.SplitN(string(honest), "\n", 3)[1]
	forged := regexp.MustCompile(`"first":\d+,"count":\d+`).ReplaceAllString(cheap, fmt.Sprintf(`"first":0,"count":%d`, rec.Charged()))
	if err := os.WriteFile(events, []byte(forged+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	resume := command("fit", "--quiet", "--resume", "run")
	if said, err := resume.CombinedOutput(); err == nil || resume.ProcessState.ExitCode() != exitBudget || !strings.Contains(string(said), "not those that the ledger recorded") {
		t.Errorf("resumed: %v\n%s", err, said)
	}
	if now := partOf(t, command, l); now != held {
		t.Errorf("the forged directory moved what is held from %v to %v", held, now)
	}
	if said, err := command("ledger", "settle", "run", "--ledger", l).CombinedOutput(); err != nil || !strings.Contains(string(said), "for its whole plan, since its directory") {
		t.Fatalf("%v\n%s", err, said)
	}
	if now := partOf(t, command, l); now < held-1e-9 {
		t.Errorf("settled from a forged directory: %v of the budget was held, now %v", held, now)
	}
}

// Finished runs that the build of commit b308273 sealed in its ledgers still hold against them, and those that were killed go on
// or settle.
func TestUpgradeSealed(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	_, command := earlierFiles(t, "upgrade-sealed")
	run := func(args ...string) string {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		if err != nil {
			t.Errorf("sotto %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for _, name := range []string{"finished", "finished-zcdp", "finished-gdp", "finished-rdp", "tuned", "node"} {
		if said := run("verify", name, "--ledger", ledgerOf(name)); strings.Contains(said, "not checked against a ledger") {
			t.Errorf("%s: %s", name, said)
		}
	}
	run("verify", "lab")
	for _, name := range []string{"kill-caps", "kill-filtered"} {
		run("fit", "--quiet", "--resume", name)
		run("verify", name, "--ledger", ledgerOf(name))
	}
	run("ledger", "settle", "node-killed", "--ledger", "node-killed.db")
	for _, l := range []string{"caps.db", "zcdp.db", "gdp.db", "rdp.db", "node.db", "node-killed.db"} {
		run("ledger", "verify", "--ledger", l)
	}
	// Another ledger does not know the run.
	if out, err := command("verify", "finished", "--ledger", "zcdp.db").CombinedOutput(); err == nil {
		t.Errorf("verified against the ledger of others:\n%s", out)
	}
}
