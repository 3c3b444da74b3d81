//go:build linux

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// Owners who add up masked sums end with one model, whichever of them dies where, and so do they if the hub does. No attempt is given up
// for a death before a presence or after a part, and at most one for a death between.
func TestSumNetwork(t *testing.T) {
	v := newVillage(t, "mode: sum, owners: 3, colluders: 1, retries: 12", time.Minute)
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
		if !slices.Equal(m.File.W, first.File.W) || m.File.Offset != first.File.Offset {
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
		if given := rec.Charged() - info.Result.Steps; info.Status != runlog.Finished || given < 0 || given > 12+2 { // the mean, the counts
			t.Errorf("owner %d: %s, %d steps, %d charges", i+1, info.Status, info.Result.Steps, rec.Charged())
		}
	}
}
