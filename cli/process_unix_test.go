//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/run/runlog"
)

// Ctrl-C stops a run cleanly: exit code 130, how to go on, a status that says so;
// and it goes on. So does a request to terminate.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	steps := 160_000 // some seconds
	if race.Enabled {
		steps = 30_000
	}
	shared := []string{"--ledger", filepath.Join(dir, "l.db"), "--quiet"}
	c := sotto(t, append([]string{"fit", "../examples/clinic/sotto.yaml", "--out", out, "--set", "method.steps=" + strconv.Itoa(steps), "--set", "method.batch=64"}, shared...)...)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		size := func() int64 {
			st, err := os.Stat(filepath.Join(out, runlog.ReleasesFile))
			if err != nil {
				return 0
			}
			return st.Size()
		}
		var stderr bytes.Buffer
		c.Stderr = &stderr
		before := size()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		needs.Until(t, "a step", func() bool { return size() > before })
		c.Process.Signal(sig)
		err := c.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
			t.Fatalf("%v ends with %v, want exit code %d\n%s", sig, err, exitInterrupted, stderr.String())
		}
		if want := "sotto: the run was stopped; it can be resumed. Go on with: sotto fit --resume " + out + "\n"; stderr.String() != want {
			t.Errorf("says %q, want %q", stderr.String(), want)
		}
		if i, err := runlog.ReadInfo(out); err != nil || i.Status != runlog.Interrupted {
			t.Errorf("run.json: %+v, %v", i, err)
		}
		c = sotto(t, append([]string{"fit", "--resume", out}, shared...)...)
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if i, err := runlog.ReadInfo(out); err != nil || i.Status != runlog.Finished || i.Result.Charged != steps || i.Result.Steps != steps {
		t.Errorf("run.json: %+v, %v", i, err)
	}
}

// The bar of the first step: fit needs at most 2.5 times the encoded table and
// 50 MB. 200,000 rows of 60 columns are 46 MiB encoded.
func TestMemory(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	const rows, columns = 200_000, 60
	dir := t.TempDir()
	var schema strings.Builder
	schema.WriteString("dataset: wide\nrows: 200000\nformat: {kind: csv}\ncolumns:\n")
	for i := range columns {
		schema.WriteString("  - {name: c" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ", type: numeric, min: 0, max: 1}\n")
	}
	schema.WriteString("  - {name: y, type: label, classes: [no, yes]}\n")
	path := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(path, []byte(schema.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := data.LoadSchema(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "wide.csv"))
	if err != nil {
		t.Fatal(err)
	}
	row := strings.Repeat("0.5,", columns)
	var b bytes.Buffer
	for _, c := range s.Columns[:columns] {
		b.WriteString(c.Name + ",")
	}
	b.WriteString("y\n")
	for i := range rows {
		b.WriteString(row + []string{"no", "yes"}[i%2] + "\n")
		if b.Len() > 1<<20 {
			b.WriteTo(f)
		}
	}
	b.WriteTo(f)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	encoded := int64(rows) * int64(s.Dim()*4+8)
	for _, method := range []string{"method.batch=0", "method.batch=256"} {
		// The collector of a process that gets little of a busy machine falls behind: the least peak of some runs counts.
		bar, peak := encoded*5/2+50<<20, int64(math.MaxInt64)
		for try := 0; try < 8 && peak > bar; try++ {
			c := sotto(t, "fit", "--data", f.Name(), "--schema", path, "--model", "logistic", "--epsilon", "1", "--delta", "1e-6", "--adjacency", "add-or-remove",
				"--ledger", filepath.Join(dir, fmt.Sprintf("l-%s-%d.db", method, try)), "--out", filepath.Join(dir, fmt.Sprintf("run-%s-%d", method, try)),
				"--set", "method.steps=200", "--set", method, "--set", "hats=none", "--json")
			own := measured(t, c)
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(out) {
				t.Errorf("found %s", out)
			}
			peak = min(peak, own())
			t.Logf("%s: a peak of %d MiB for an encoded table of %d MiB; the bar is %d", method, peak>>20, encoded>>20, bar>>20)
		}
		if peak > bar {
			t.Errorf("%s: every run has a peak above the bar", method)
		}
	}
}
