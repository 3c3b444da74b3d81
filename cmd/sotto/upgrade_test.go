package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// earlierBuild is a copy of the files of an earlier build (testdata/upgrade), and a command that works in it with
// data and state directories of its own.
func earlierBuild(t *testing.T) (dir string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "upgrade", "files"))); err != nil {
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
