package transporttest

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	schedules = flag.Int("schedules", 0, "simulate so many schedules of a network, in place of a few hundred")
	firstSeed = flag.Uint64("seed", 1, "of the first simulated schedule")
)

// Schedules simulates n schedules, unless a flag says how many, until one finds a violation. Of each name, so many or
// more must be counted in a schedule on average, and at least one in all.
func Schedules(t *testing.T, n int, simulate func(seed uint64) *Schedule, atLeast map[string]float64) {
	t.Helper()
	n = cmp.Or(*schedules, n)
	start, all := time.Now(), map[string]int{}
	for k := range n {
		s := simulate(*firstSeed + uint64(k))
		for name, times := range s.Tally {
			all[name] += times
		}
		all["events"] += len(s.Trace)
		if n == 1 {
			t.Log(strings.Join(s.Trace, "\n"))
		}
		if len(s.Found) > 0 {
			dir, _ := os.Getwd()
			t.Fatalf("seed %d:\n%s\nrepeat: go test %s -run '^%s$' -schedules 1 -seed %d -v",
				s.Seed, strings.Join(s.Found, "\n"), dir, t.Name(), s.Seed)
		}
		if (k+1)%1000 == 0 || k+1 == n {
			t.Logf("%d schedules, %.0f in a second", k+1, float64(k+1)/time.Since(start).Seconds())
			for _, name := range slices.Sorted(maps.Keys(all)) {
				t.Logf("%8d %s", all[name], name)
			}
		}
	}
	for name, each := range atLeast {
		if n >= 40 && float64(all[name]) < max(1, each*float64(n)) {
			t.Errorf("too little happens in %d schedules: %q %d times", n, name, all[name])
		}
	}
}

// Repeats checks that schedules are the same each time, event by event.
func Repeats(t *testing.T, seeds []uint64, simulate func(seed uint64) *Schedule) {
	t.Helper()
	for _, seed := range seeds {
		first, again := simulate(seed).Trace, simulate(seed).Trace
		slices.Sort(first) // of one instant, any order
		slices.Sort(again)
		if !slices.Equal(first, again) {
			t.Errorf("seed %d: %d events, then %d", seed, len(first), len(again))
		}
	}
}

// Finds checks that each planted bug is found within so many schedules.
func Finds(t *testing.T, within map[string]int, simulate func(seed uint64, bug string) *Schedule) {
	t.Helper()
	for bug, most := range within {
		n, found := 0, ""
		for ; n < most && found == ""; n++ {
			if s := simulate(*firstSeed+uint64(n), bug); len(s.Found) > 0 {
				found = s.Found[0]
			}
		}
		if found == "" {
			t.Errorf("%s: not found in %d schedules", bug, n)
		}
		t.Logf("%s: found in schedule %d: %s", bug, n, found)
	}
}
