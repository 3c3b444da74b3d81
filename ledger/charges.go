package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/privacy"
)

// The ledger keeps its own record of what each open run charged: settlements rest on it, and a run
// directory is only compared with it (rules.md, R25). The record is run-length coded in table
// sotto_charges; the settlement's entry takes it over. Like table sotto_progress it is outside the
// chain.

// Charges are Count equal batches of a run, the first of which has number First.
type Charges struct {
	First, Count int
	Event        privacy.Event
}

// A charge is a line of the record. Its event is "" if an earlier version recorded only the number
// of batches.
type charge struct {
	first, count int
	event        string
}

func (c charge) end() int { return c.first + c.count }

// lines are charges as lines of a record; equal neighbors are joined.
func lines(charged []Charges) ([]charge, error) {
	var all []charge
	for _, c := range charged {
		text, err := privacy.MarshalEvent(c.Event)
		switch {
		case err != nil:
			return nil, fmt.Errorf("charged events: %w", err)
		case c.First < 0 || c.Count < 1 || c.First > math.MaxInt-c.Count:
			return nil, fmt.Errorf("charged events: found %d batches from number %d on", c.Count, c.First)
		case len(all) > 0 && all[len(all)-1].end() != c.First:
			return nil, fmt.Errorf("charged events: found batch %d after %d batches", c.First, all[len(all)-1].end())
		}
		if n := len(all); n > 0 && all[n-1].event == string(text) {
			all[n-1].count += c.Count
			continue
		}
		all = append(all, charge{c.First, c.Count, string(text)})
	}
	return all, nil
}

// linesOf are the lines of charged events as a run directory and a settlement have them:
// repetitions, composed.
func linesOf(e privacy.Event) ([]charge, error) {
	parts, ok := e.(privacy.Composed)
	if !ok {
		parts = privacy.Composed{e}
	}
	var all []Charges
	batches := 0
	for _, part := range parts {
		r, ok := part.(privacy.Repeated)
		if !ok || !releases(r.Of) || r.Count > math.MaxInt/2-batches {
			return nil, fmt.Errorf("charged events: found %v; expected repetitions of batches", part)
		}
		if r.Count > 0 {
			all = append(all, Charges{batches, r.Count, r.Of})
			batches += r.Count
		}
	}
	return lines(all)
}

func end(all []charge) int {
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].end()
}

// known reports whether the events of all batches are recorded.
func known(all []charge) bool {
	return !slices.ContainsFunc(all, func(c charge) bool { return c.event == "" })
}

// begins reports whether the batches of some are a prefix of those of all.
func begins(some, all []charge) bool {
	if len(some) > len(all) || end(some) > end(all) {
		return false
	}
	for i, c := range some {
		if c.event != all[i].event || c.count > all[i].count || c.count < all[i].count && i < len(some)-1 {
			return false
		}
	}
	return true
}

// eventOf is a record as one event, in the form of [linesOf].
func eventOf(all []charge) (privacy.Event, error) {
	parts := privacy.Composed{}
	for _, c := range all {
		e, err := privacy.UnmarshalEvent([]byte(c.event))
		if err != nil {
			return nil, err
		}
		parts = append(parts, privacy.Repeated{Count: c.count, Of: e})
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

// beginsPlan reports whether a plan begins with these charges, batch by batch. It checks the directory of
// a run for which an earlier version recorded only the number of batches. In a plan of several kinds of
// batches the charges could name the cheaper ones, so only repetitions of one batch pass.
func beginsPlan(plan privacy.Event, charged []charge) (bool, error) {
	p, ok := plan.(privacy.Repeated)
	if !ok {
		return len(charged) == 0, nil
	}
	batch, err := privacy.MarshalEvent(p.Of)
	if err != nil {
		return false, err
	}
	return len(charged) == 0 || len(charged) == 1 && charged[0].count <= p.Count && charged[0].event == string(batch), nil
}

// record is what the ledger recorded of a run.
func (w *writer) record(run string) (all []charge, err error) {
	rows, err := w.tx.QueryContext(w.ctx, selectCharges, run)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c charge
		if err := rows.Scan(&c.first, &c.count, &c.event); err != nil {
			return nil, err
		}
		if c.first != end(all) || c.count < 1 {
			return nil, &ChainError{0,
				fmt.Sprintf("the record of what run %q charged is damaged after %d batches", run, end(all))}
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// extend adds to a run's record what it does not have yet.
func (w *writer) extend(run string, charged []charge) error {
	last, err := lastCharge(w.ctx, w.tx, run)
	if err != nil {
		return err
	}
	if len(charged) > 0 && charged[0].first > last.end() {
		return fmt.Errorf("run %q: charged batch %d after %d that are recorded", run, charged[0].first, last.end())
	}
	for _, c := range charged {
		switch over := last.end() - c.first; {
		case over >= c.count:
			continue
		case over > 0:
			c.first, c.count = c.first+over, c.count-over
		}
		if last.count > 0 && last.event == c.event {
			last.count += c.count
		} else {
			last = c
		}
		if _, err := w.tx.ExecContext(w.ctx, upsertCharge, run, last.first, last.count, last.event); err != nil {
			return err
		}
	}
	return nil
}

// adopted is the ledger's record of a run. If an earlier version reserved the run, there may be
// none: then adopted takes over what the directory shows if the plan begins with it, else only its
// number of batches.
func (w *writer) adopted(r run, shown []charge) ([]charge, error) {
	all, err := w.record(r.ID)
	if err != nil || r.recorded || len(all) > 0 || len(shown) == 0 {
		return all, err
	}
	sound := true
	if r.plan != nil { // under caps nothing rests on it
		if sound, err = beginsPlan(r.plan, shown); err != nil {
			return nil, err
		}
	}
	if !sound {
		shown = []charge{{0, end(shown), ""}}
	}
	return shown, w.extend(r.ID, shown)
}

// Reach records that the run is about to publish releases of its first batches batches, whose charges are
// durable in its directory. charged may begin anywhere in the record: Reach records what is new. charged
// may go beyond batches: then releases of those batches, too, may be published before the next call. Like
// [Ledger.Check] it refuses a token that is not current. Reach is one transaction: either a copy of the
// directory took over the run before, and this process stops, or no copy without those batches ever
// resumes (R7), and no settlement costs less (R25).
func (l *Ledger) Reach(ctx context.Context, run, token string, batches int, charged []Charges) error {
	new, err := lines(charged)
	if err != nil {
		return fmt.Errorf("run %q: %w", run, err)
	}
	return l.write(ctx, func(w *writer) error {
		if _, err := current(ctx, w.tx, run, token); err != nil {
			return err
		}
		if err := w.extend(run, new); err != nil {
			return err
		}
		if reached, _, err := w.reached(run); err != nil || batches <= reached {
			return err
		}
		_, err := w.tx.ExecContext(w.ctx, upsertProgress, run, batches)
		return err
	})
}

// Recorded counts the batches of an open run that the ledger recorded as charged.
func (l *Ledger) Recorded(ctx context.Context, run string) (int, error) {
	last, err := lastCharge(ctx, l.store.db, run)
	return last.end(), l.store.explain(err)
}

// lastCharge is the last line of a run's record; the zero value if it has none.
func lastCharge(ctx context.Context, q querier, run string) (c charge, err error) {
	_, err = found(q.QueryRowContext(ctx, selectLastCharge, run), &c.first, &c.count, &c.event)
	return c, err
}

// Bases of a settlement in a filter's currency.
const (
	// BasisRecord: the ledger's own record of what the run charged.
	BasisRecord = "record"
	// BasisPlan: the whole plan. The ledger's record is not full: an earlier version did not record
	// events, rows are missing, or the run may have drawn recorded batches again.
	BasisPlan = "plan"
	// BasisMismatch: the whole plan. The directory showed other events than the ledger recorded, or
	// more.
	BasisMismatch = "mismatch"
)

// full reports whether the record of an open run is all that it released. Its rows are outside the
// chain, so they must go as far as the run's entries and its progress say.
func (w *writer) full(r run, all []charge) (bool, error) {
	reached, there, err := w.reached(r.ID)
	lost := r.recorded && !there // Reserve made the row
	return !lost && !r.again && end(all) >= max(reached, r.least), err
}

// settlement returns the payload of a run's settle entry. s is what the directory shows.
func (w *writer) settlement(r run, d dataset, s Settlement) (settled, error) {
	p := settled{Settlement: s}
	var shown []charge
	if len(s.Charged) > 0 {
		e, err := privacy.UnmarshalEvent(s.Charged)
		if err == nil {
			shown, err = linesOf(e)
		}
		if err != nil || end(shown) != s.Batches {
			return p, fmt.Errorf("found charged events of run %q that are not those of %d batches: %w", r.ID, s.Batches, err)
		}
	} else if d.tally == nil {
		return p, nil
	}
	all, err := w.adopted(r, shown)
	var damaged *ChainError
	full := !errors.As(err, &damaged) || d.tally == nil // under caps nothing comes back
	if !full {
		err = nil
	} else if err == nil && d.tally != nil {
		full, err = w.full(r, all)
	}
	if err != nil {
		return p, err
	}
	full = full && known(all)
	if !full || !begins(shown, all) {
		p.Epsilon, p.Delta, p.Charged = r.Caps.Epsilon, r.Caps.Delta, nil
		if d.tally != nil {
			p.Currency, p.Basis = d.facts.Currency, BasisMismatch
			if !full {
				p.Basis = BasisPlan
			}
		}
		return p, nil
	}
	charged, err := eventOf(all)
	if err != nil {
		return p, err
	}
	plain, err := privacy.MarshalEvent(charged)
	if err != nil {
		return p, err
	}
	if p.Charged, err = pack(plain); err != nil {
		return p, err
	}
	if s.Cost != nil {
		if p.Epsilon, err = s.Cost(charged); err != nil {
			return p, err
		}
	}
	if d.tally != nil {
		p.Currency, p.Batches, p.Basis = d.facts.Currency, end(all), BasisRecord
	}
	return p, nil
}
