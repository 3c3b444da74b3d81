//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// Owners who add up masked sums end with one model, whichever of them dies where, and so do they if the hub does. No attempt is given up
// for a death before a presence or after a part, and at most one for a death between.
func TestSumNetwork(t *testing.T) {
	v := newVillage(t, "mode: sum, owners: 3, colluders: 1, retries: 12", time.Minute)
	lost, _ := v.owner(0, "")
	lost.Args = append(lost.Args, "--hub", "nats://localhost:1")
	lost.Run()
	if _, err := os.Stat(v.d.Owner(0, "part")); lost.ProcessState.ExitCode() != exitInput || !os.IsNotExist(err) {
		t.Fatalf("an owner without a hub: %v, and its directory: %v", lost.ProcessState, err)
	}
	v.startHub()
	sums := func(i int) int64 {
		st, err := os.Stat(filepath.Join(v.d.Owner(i, "part"), runlog.SumsFile))
		if err != nil {
			return 0
		}
		return st.Size()
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			points := [][]string{{"modelled:1", "finished:1"}, {"settled:1"}, {}}[i]
			lives := v.live(i, func(life int) string {
				if life < len(points) {
					return points[life]
				}
				return ""
			}, func(c *exec.Cmd) {
				if i != 2 {
					return
				}
				if before := sums(i); before < 15_000 { // killed again and again, wherever it is
					go func() {
						for sums(i) <= before+2_000 && c.Process.Signal(syscall.Signal(0)) == nil {
							time.Sleep(time.Millisecond)
						}
						c.Process.Signal(syscall.SIGKILL)
					}()
				}
			})
			if want := len(points) + 1; lives < want {
				t.Errorf("owner %d had %d lives; want %d or more", i+1, lives, want)
			}
		})
	}
	needs.Until(t, "some sums", func() bool { return sums(0) > 10_000 })
	v.killHub()
	v.startHub()
	all.Wait()

	first, err := run.LoadModel(v.d.Owner(0, "part"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		dir := v.d.Owner(i, "part")
		m, err := run.LoadModel(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.File.W, first.File.W) || !slices.Equal(m.File.Offset, first.File.Offset) {
			t.Errorf("owner %d has another model than owner 1", i+1)
		}
		info, err := runlog.ReadInfo(dir)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := info.Record(dir)
		if err != nil {
			t.Fatal(err)
		}
		found, err := party.Verify(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if !f.Holds && f.Detail != run.WithoutLedger {
				t.Errorf("owner %d: %s: %s", i+1, f.What, f.Detail)
			}
		}
		if given := rec.Charged() - info.Result.Steps; info.Status != runlog.Finished || given < 0 || given > 12+2 { // the mean, the counts
			t.Errorf("owner %d: %s, %d steps, %d charges", i+1, info.Status, info.Result.Steps, rec.Charged())
		}
	}

	// Another directory of an owner that has come is refused before it reserves, and the same command again changes nothing.
	spent := func() string {
		t.Helper()
		b, err := sotto(t, "ledger", "show", "clinic", "--ledger", v.d.Owner(0, "ledger.db"), "--json").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := spent()
	begun, err := runlog.ReadInfo(v.d.Owner(0, "part"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		exit int
		says string // in what it prints
	}{{filepath.Join(t.TempDir(), "other"), 2, "another directory"}, {v.d.Owner(0, "part"), 0, fmt.Sprintf("in %[1]d steps of %[1]d", begun.Result.Steps)}, {v.d.Owner(1, "part"), 2, "belongs to another training"}} {
		p, stderr := v.owner(0, "")
		p.Args = append(p.Args, "--dir", c.dir, "--json=false", "--quiet=false")
		p.Stdout = stderr
		err := p.Run()
		if exit := p.ProcessState.ExitCode(); exit != c.exit || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("--dir %s: exit code %d (%v), %s; want %d and %q", c.dir, exit, err, stderr, c.exit, c.says)
		}
	}
	if after := spent(); after != before {
		t.Errorf("the ledger has changed from %s to %s", before, after)
	}

	verify := func(owners ...int) (string, error) {
		var out bytes.Buffer
		args := []string{"verify"}
		for _, i := range owners {
			args = append(args, v.d.Owner(i, "part"))
		}
		c := root()
		c.SetArgs(args)
		c.SetOut(&out)
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	var status bytes.Buffer
	st := root()
	st.SetArgs([]string{"net", "status", v.d.Owner(0, "part")})
	st.SetOut(&status)
	if err, want := st.ExecuteContext(t.Context()), fmt.Sprintf(": finished, %d of %[1]d steps, run ", begun.Result.Steps); err != nil || !strings.Contains(status.String(), want) {
		t.Errorf("the status is %q, %v; want %q", status.String(), err, want)
	}
	if out, err := verify(2, 0, 1); err != nil || !strings.Contains(out, "each that of the parts of all 3 owners") {
		t.Errorf("all owners: %v\n%s", err, out)
	}
	if out, err := verify(2, 0); err != nil || !strings.Contains(out, "of all 3 owners (2 are here)") {
		t.Errorf("two owners: %v\n%s", err, out)
	}
	if _, err := verify(0, 0); !as[*run.InputError](err) || !strings.Contains(err.Error(), "is of the same owner") {
		t.Errorf("one owner twice: %v", err)
	}
	// A copy whose sums are another owner's.
	sums0, err := os.ReadFile(filepath.Join(v.d.Owner(0, "part"), runlog.SumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.d.Owner(1, "part"), runlog.SumsFile), sums0, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := verify(2, 0, 1); exitCode(err) != 1 || !strings.Contains(out, "is of the same owner as") {
		t.Errorf("another owner's sums: %v\n%s", err, out)
	}
	// The run of one owner does not go on by itself.
	dir := v.d.Owner(2, "part")
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	info.Status = runlog.Interrupted
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
	c := root()
	c.SetArgs([]string{"fit", "--resume", dir})
	if err := c.ExecuteContext(t.Context()); exitCode(err) != 2 || !strings.Contains(err.Error(), "repeat `sotto node` with the same --dir") {
		t.Errorf("resumed alone: %v", err)
	}
}
