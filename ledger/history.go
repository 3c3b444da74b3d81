package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"math"
)

// A History is what a ledger holds of one dataset up to an entry, in a form that others may see: what was reserved, and
// every access without a guarantee. It holds no content mark, no figure of what was charged, and nothing of other
// datasets.
type History struct {
	Head  Head
	Facts Dataset // without figures that depend on what runs released: Spent, Left, Part and Statement
	Runs  []Run   // in the order of their reservations, as they were reserved
	// Unprotected are all accesses without a guarantee under the dataset's name, also those before it entered.
	Unprotected []Access
	// so many of them came before the dataset entered; they end the guarantee only of a run on the same rows
	Earlier int
	// how many runs and accesses came before those that are listed; 0 but for [Ledger.Recent]
	RunsBefore, UnprotectedBefore int

	// Total bounds all runs up to Head together: under caps the sum of their own budgets, rounded up; under a filter the
	// largest budget that was ever set, which bounds future runs, too. Nil where there is no guarantee; Why then says why.
	Total *Caps
	Why   string
}

// History gives the history of a dataset up to that entry, or up to the last one if upTo is nil. It checks the chain up
// to there; a [*ChainError] says that it is broken, or that upTo is no entry of it. The error wraps [ErrUnknownDataset]
// if the dataset had no entry by then.
func (l *Ledger) History(ctx context.Context, name string, upTo *Head) (*History, error) {
	h, err := l.history(ctx, name, upTo)
	return h, l.store.explain(err)
}

func (l *Ledger) history(ctx context.Context, name string, upTo *Head) (*History, error) {
	tx, err := l.store.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}) // one snapshot
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	_, _, end, err := readHead(ctx, tx)
	if err != nil {
		return nil, err
	}
	if upTo == nil {
		upTo = &end
	}
	h := &History{}
	head := Head{0, noHash}
	var d dataset
	runs, order := map[string]*run{}, []string(nil)
	err = each(ctx, tx, func(e Entry) error {
		if e.Seq > upTo.Seq {
			return nil
		}
		if e.Seq != head.Seq+1 || e.Prev != head.Hash {
			return fmt.Errorf("it does not follow entry %d: entries are missing, moved or exchanged", head.Seq)
		}
		head = Head{e.Seq, e.Hash}
		if e.Dataset != name && e.Kind != KindRestore {
			return nil
		}
		if err := d.apply(e); err != nil {
			return err
		}
		switch e.Kind {
		case KindReserve:
			order = append(order, e.Run)
			return at(runs, e.Run).apply(e)
		case KindAccess, KindNotPrivate:
			if e.Kind == KindAccess {
				h.Earlier++
			}
			n, err := payload[notPrivate](e)
			h.Unprotected = append(h.Unprotected, Access{Since: e.Time, Run: e.Run, Why: n.Why})
			return err
		}
		return nil
	}, selectAll)
	switch {
	case err != nil:
		return nil, err
	case head != *upTo:
		return nil, &ChainError{upTo.Seq, "the ledger does not hold this entry"}
	case d.name == "" && d.seen == "":
		return nil, fmt.Errorf("dataset %q: %w", name, ErrUnknownDataset)
	}
	for _, id := range order {
		h.Runs = append(h.Runs, runs[id].Run)
	}
	h.state(head, &d)
	return h, nil
}

// state fills in what follows from the state at an entry.
func (h *History) state(head Head, d *dataset) {
	h.Head, h.Facts = head, d.view()
	h.Facts.Spent, h.Facts.Left, h.Facts.Part, h.Facts.Statement, h.Facts.Open = Caps{}, nil, nil, "", 0
	h.Total, h.Why = d.lifetime()
}

// lifetime bounds all runs so far together, or says why nothing does.
func (d *dataset) lifetime() (total *Caps, why string) {
	switch {
	case d.ended() != nil:
		return nil, fmt.Sprintf("on %s the records were accessed without one (%s)", day(d.ended().Since), d.ended().Why)
	case len(d.restored) > 0:
		return nil, "the ledger was restored without entries that it had; no statement covers the charges in them"
	case d.over != "":
		return nil, fmt.Sprintf("by the accounts of this version run %q went beyond the lifetime budget", d.over)
	case d.tally != nil && d.largest == nil:
		return nil, "no lifetime budget was set"
	case d.tally != nil:
		return d.largest, ""
	}
	c := d.spent.above()
	return &c, ""
}

// above returns caps that are at least the sum, equal to it where a float64 prints as it.
func (t *total) above() Caps {
	c := t.caps()
	for decimal(c.Epsilon).Cmp(&t.epsilon) < 0 {
		c.Epsilon = math.Nextafter(c.Epsilon, math.Inf(1))
	}
	for decimal(c.Delta).Cmp(&t.delta) < 0 {
		c.Delta = math.Nextafter(c.Delta, 1)
	}
	return c
}
