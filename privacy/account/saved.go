package account

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sottodp/sotto/privacy"
)

// A SavedTally is what a tally holds, to be stored and read back without the events that were settled. Its
// numbers are those of the accounts that made it: see [Tally.Saved].
type SavedTally struct {
	Settled [][2]float64 // of each order the sum, and what rounding left of it
	Held    []SavedPlan  // by run
}

// A SavedPlan is what one run holds.
type SavedPlan struct {
	Run  string
	Plan privacy.Event
	Cost []float64 // of each order
}

// Saved is the tally's content. A later version of this package may compute other costs of the same events; a
// caller that stores them notes the version.
func (t *Tally) Saved() SavedTally {
	var s SavedTally
	for _, v := range t.settled {
		s.Settled = append(s.Settled, [2]float64{v.hi, v.lo})
	}
	for _, run := range slices.Sorted(maps.Keys(t.held)) {
		h := t.held[run]
		s.Held = append(s.Held, SavedPlan{run, h.plan, h.cost})
	}
	return s
}

// Restore puts into an empty tally what another one of the same currency and adjacency held.
func (t *Tally) Restore(s SavedTally) error {
	orders := len(t.currency.limits(privacy.Budget{Epsilon: 1}))
	if len(t.held) > 0 || t.settled != nil {
		return errors.New("tally: it is not empty")
	}
	if n := len(s.Settled); n != 0 && n != orders {
		return fmt.Errorf("tally: found %d sums; the currency has %d", n, orders)
	}
	for _, v := range s.Settled {
		if !(v[0] >= 0) {
			return fmt.Errorf("tally: found a sum of %v", v[0])
		}
		t.settled = append(t.settled, sum{v[0], v[1]})
	}
	for _, h := range s.Held {
		if _, twice := t.held[h.Run]; twice || h.Plan == nil || len(h.Cost) != orders {
			return fmt.Errorf("tally: the plan that run %q holds is damaged", h.Run)
		}
		for _, c := range h.Cost {
			if !(c >= 0) {
				return fmt.Errorf("tally: run %q holds a cost of %v", h.Run, c)
			}
		}
		t.held[h.Run] = holding{h.Plan, h.Cost}
	}
	return nil
}

// Near reports whether two tallies hold the same plans, and sums and costs that differ by at most a part of 1e-9:
// by the last digits of another platform.
func (s SavedTally) Near(o SavedTally) bool {
	near := func(a, b float64) bool { return a == b || max(a, b)-min(a, b) <= 1e-9*min(a, b) }
	return slices.EqualFunc(s.Settled, o.Settled, func(a, b [2]float64) bool { return near(a[0], b[0]) }) &&
		slices.EqualFunc(s.Held, o.Held, func(a, b SavedPlan) bool {
			return a.Run == b.Run && privacy.Equal(a.Plan, b.Plan) && slices.EqualFunc(a.Cost, b.Cost, near)
		})
}
