//go:build linux

package cli

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/party"
)

// Owners draw the schedule's seed together. One that has committed to its share and does not show it ends the wait of the others with its
// name, before anything is spent; when it is back, all go on with the same shares.
func TestSeedIsDrawn(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 3, rows: 1300, rounds: 30", time.Second)
	v.startHub()
	var all sync.WaitGroup
	for i := range 3 { // all commit, and see that all have
		all.Go(func() {
			if c, stderr := v.owner(i, "committed:1"); c.Run() == nil || c.ProcessState.Exited() {
				t.Errorf("%v\n%s", c.ProcessState, stderr)
			}
		})
	}
	all.Wait()
	v.more = []string{"--join", "20s"}
	for i := range 2 {
		all.Go(func() {
			c, stderr := v.owner(i, "")
			if c.Run(); c.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "owner 3 has come, but does not show its share of the schedule's seed; no row was accessed") {
				t.Errorf("%v\n%s", c.ProcessState, stderr)
			}
		})
	}
	all.Wait()
	for i := range 3 {
		v.nothingSpent(i)
		for _, name := range []string{"part/journal.bin", "part/run.json"} {
			if _, err := os.Stat(v.d.Owner(i, name)); !os.IsNotExist(err) {
				t.Errorf("owner %d has %s: %v", i+1, name, err)
			}
		}
	}
	v.more = nil
	for i := range 3 {
		all.Go(func() {
			v.live(i, func(life int) string {
				if life == 0 {
					return "journaled:2" // and once more after the schedule is settled
				}
				return ""
			}, nil)
		})
	}
	all.Wait()
	v.check(v.all()...)
	first, err := party.ReadSchedule(v.d.Owner(0, "part"))
	if err != nil || first.Seed == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	for i := 1; i < 3; i++ {
		if s, err := party.ReadSchedule(v.d.Owner(i, "part")); err != nil || s.Seed != first.Seed {
			t.Errorf("owner %d has the seed %d, owner 1 %d; %v", i+1, s.Seed, first.Seed, err)
		}
	}
	// A new directory has another share.
	if err := os.RemoveAll(v.d.Owner(0, "part")); err != nil {
		t.Fatal(err)
	}
	c, stderr := v.owner(0, "")
	if c.Run(); c.ProcessState.ExitCode() != exitInput || !strings.Contains(stderr.String(), "has come to the hub from another directory") {
		t.Errorf("a new directory: %v\n%s", c.ProcessState, stderr)
	}
}
