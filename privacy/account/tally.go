package account

import (
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/sottodp/sotto/privacy"
)

// A Tally adds up, in one currency, what runs on the same records cost over the
// records' life. A run first holds the most that it may release, and at its end
// settles for what was charged of it. Held and settled costs count alike, so the
// total bounds every release that was made at any moment, however runs overlap.
// A tally is not safe for concurrent use. PROOFS.md#tally.
type Tally struct {
	currency  Currency
	adjacency privacy.Adjacency
	settled   sums
	held      map[string]holding
	budget    privacy.Budget // last asked about
	limits    []float64      // of that budget
	last      [2]holding     // what was held and settled last: runs are often alike
}

type holding struct {
	plan privacy.Event // or another event
	cost []float64
}

// NewTally is a tally of nothing.
func NewTally(c Currency, adj privacy.Adjacency) *Tally {
	return &Tally{currency: c, adjacency: adj, held: map[string]holding{}}
}

// Clone is an independent copy.
func (t *Tally) Clone() *Tally {
	c := *t
	c.held = maps.Clone(t.held)
	return &c
}

// Currency is what the tally counts in.
func (t *Tally) Currency() Currency { return t.currency }

// Hold adds the whole cost of a run's plan, whether or not a budget covers it. An
// event without a theorem in the currency is an *UnsupportedError.
func (t *Tally) Hold(run string, plan privacy.Event) error {
	if _, ok := t.held[run]; ok {
		return fmt.Errorf("tally: run %q holds a plan already", run)
	}
	cost, err := t.cost(0, plan)
	if err != nil {
		return fmt.Errorf("tally: %w", err)
	}
	t.held[run] = holding{plan, cost}
	return nil
}

// cost is what an event costs, remembered at its own index.
func (t *Tally) cost(place int, e privacy.Event) ([]float64, error) {
	for _, l := range t.last {
		if l.plan != nil && privacy.Equal(l.plan, e) {
			return l.cost, nil
		}
	}
	cost, err := t.currency.cost(e, t.adjacency)
	if err == nil {
		t.last[place] = holding{e, cost}
	}
	return cost, err
}

// Settle replaces the plan that a run holds by what was charged of it: repetitions of
// batches, composed, of which the first exact batches are how the plan begins and
// the others follow in its order, where releases may be left out. Otherwise the error
// wraps ErrNotPlanned and nothing changes. Of a plan that is a
// filter it is what that filter admits, or the error wraps privacy.ErrExhausted.
func (t *Tally) Settle(run string, charged privacy.Event, exact int) error {
	h, ok := t.held[run]
	if !ok {
		return fmt.Errorf("tally: run %q holds no plan", run)
	}
	if err := t.within(h.plan, charged, exact); err != nil {
		return fmt.Errorf("tally: run %q: %w", run, err)
	}
	cost, err := t.cost(1, charged)
	if err != nil {
		return fmt.Errorf("tally: %w", err)
	}
	delete(t.held, run)
	t.settled = t.settled.plus(cost)
	return nil
}

// SettlePlan ends a run at the whole cost of the plan that it holds.
func (t *Tally) SettlePlan(run string) error {
	h, ok := t.held[run]
	if !ok {
		return fmt.Errorf("tally: run %q holds no plan", run)
	}
	delete(t.held, run)
	t.settled = t.settled.plus(h.cost)
	return nil
}

// total is the cost of all that was settled or is held.
func (t *Tally) total() []float64 {
	total := t.settled
	for _, h := range t.held {
		total = total.plus(h.cost)
	}
	if total == nil {
		total = make(sums, len(t.currency.limits(privacy.Budget{Epsilon: 1})))
	}
	return total.up()
}

// Part is the share of a budget that is held or settled: 1 is all of it, and +Inf means that the
// currency admits nothing under the budget.
func (t *Tally) Part(b privacy.Budget) float64 {
	if b != t.budget || t.limits == nil {
		t.budget, t.limits = b, t.currency.limits(b)
	}
	_, part := mostLeft(t.total(), t.limits)
	return part
}

// Covers says whether a budget covers all that is held or settled.
func (t *Tally) Covers(b privacy.Budget) bool { return within(t.Part(b), 1) }

// Epsilon is the least ε, at this δ, of a budget that covers all that is held or
// settled; +Inf if none does. What was settled depends on releases: the number is
// information, and a guarantee only if it was the budget beforehand.
func (t *Tally) Epsilon(delta float64) float64 {
	return math.Max(0, t.currency.epsilon(t.total(), delta))
}

// within says whether a run of that plan can have charged e.
func (t *Tally) within(plan, e privacy.Event, exact int) error {
	f, ok := plan.(privacy.Filtered)
	if !ok {
		return partOf(plan, e, exact)
	}
	if e == nil {
		return errors.New("no event given")
	}
	filter, err := newFiltered(f, t.adjacency)
	if err != nil {
		return err
	}
	return filter.Charge(e)
}

// partOf reports, by a nil error, that the releases of e are releases of the plan, in its order and
// in any grouping. The first exact batches of e skip none, except that queries of one part of a
// divided table may end early before another part is asked. Later batches may skip some, as an
// interrupted run does.
func partOf(plan, e privacy.Event, exact int) error {
	if e == nil {
		return errors.New("no event given")
	}
	if err := e.Validate(); err != nil {
		return err
	}
	if p, ok := plan.(privacy.Retried); ok {
		return partOfRetried(p, e, exact)
	}
	if p, ok := plan.(privacy.Repeated); ok {
		if c, ok := e.(privacy.Repeated); ok && c.Count <= p.Count && privacy.Equal(p.Of, c.Of) {
			return nil
		}
	}
	next := newCursor(plan)
	n := 0
	for i, part := range splitBatches(e, exact) {
		asked := newCursor(part)
		for want, more := asked.step(); more; want, more = asked.step() {
			found := false
			if i == 0 {
				at := next.clone(nil)
				planned, more := next.step()
				if found = more && sameLeaf(planned, want); !found && more && ofAnotherPart(planned, want) {
					next = at
					found = next.seek(want)
				}
			} else {
				found = next.seek(want)
			}
			if !found {
				return fmt.Errorf("release %d, %v: %w", n, want, ErrNotPlanned)
			}
			n++
		}
	}
	return nil
}

// ofAnotherPart says whether want is of one part of a divided table, and planned of another.
func ofAnotherPart(planned, want privacy.Event) bool {
	p, ok := planned.(privacy.Parallel)
	w, of := want.(privacy.Parallel)
	return ok && of && p.Name() != w.Name()
}

// splitBatches is the first n batches of e, which is repetitions of batches, composed, and the others.
func splitBatches(e privacy.Event, n int) (parts [2]privacy.Composed) {
	all, ok := e.(privacy.Composed)
	if !ok {
		all = privacy.Composed{e}
	}
	for _, part := range all {
		r, ok := part.(privacy.Repeated)
		if !ok {
			r = privacy.Repeated{Count: 1, Of: part}
		}
		first := min(r.Count, n)
		parts[0] = append(parts[0], privacy.Repeated{Count: first, Of: r.Of})
		parts[1] = append(parts[1], privacy.Repeated{Count: r.Count - first, Of: r.Of})
		n -= first
	}
	return parts
}
