//go:build unix

package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/parent"
	"github.com/sottodp/sotto/run/runlog"
)

// D5: a command that was told of its parent stops when the parent ends, and the run
// can be resumed, also where nobody reads its output any more.
func TestD5ParentEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	shared := []string{"--ledger", filepath.Join(dir, "l.db"), "--quiet"}
	c := sotto(t, append([]string{"fit", "../examples/clinic/sotto.yaml", "--out", out, "--set", "method.steps=160000", "--set", "method.batch=64"}, shared...)...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	output, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.ExtraFiles, c.Stdout, c.Stderr = []*os.File{read}, end, end
	c.Env = append(c.Environ(), parent.Variable+"=3")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read.Close()
	end.Close()
	needs.Until(t, "a step", func() bool {
		st, err := os.Stat(filepath.Join(out, runlog.ReleasesFile))
		return err == nil && st.Size() > 100
	})
	output.Close() // as all that a killed process has
	write.Close()
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Fatalf("ends with %v, want exit code %d", err, exitInterrupted)
	}
	if i, err := runlog.ReadInfo(out); err != nil || i.Status != runlog.Interrupted {
		t.Fatalf("run.json: %+v, %v", i, err)
	}
}

func TestD5NoParent(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, text := range []string{"", "x", "-1", "99", strconv.Itoa(3)} {
		var stderr bytes.Buffer
		c := sotto(t, "version")
		c.ExtraFiles, c.Stderr, c.Env = []*os.File{f}, &stderr, append(c.Environ(), parent.Variable+"="+text)
		var exit *exec.ExitError
		if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitInput || !strings.Contains(stderr.String(), parent.Variable) {
			t.Errorf("%s=%q: %v, %s", parent.Variable, text, err, stderr.String())
		}
	}
}
