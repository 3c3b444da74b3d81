package run

import (
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/run/runlog"
)

// A finished run does not show how many batches were done in each half second: its charges are the same, fast or slow.
func TestFinishedRunHidesItsPace(t *testing.T) {
	race.Skip(t) // as for other tests on the simulated disk
	sim := newSimulation(t)
	for _, kind := range []int{0, 2} {
		files := map[string]string{}
		calls := map[int]bool{}
		for seed := range uint64(3) { // each of which has another pace
			w, err := play(t, sim, schedule{seed: seed, states: kind}, nil)
			if err != nil {
				t.Fatal(err)
			}
			calls[w.calls[0]] = true
			files[string(w.disk.Peek(filepath.Join(simDir, runlog.EventsFile)))] = ""
		}
		if len(calls) == 1 {
			t.Error("all runs made the same calls, so their groups of batches were the same")
		}
		if len(files) != 1 {
			t.Errorf("%d different files of charges: %q", len(files), files)
		}
	}
}
