package ledger

import (
	"context"
	"fmt"
	"slices"
)

// mostAccesses is how many of a dataset's accesses without a guarantee its state lists: the last ones.
const mostAccesses = 100

// Recent is the [Ledger.History] up to the last entry, with the last runs only, at most that many, and the last
// accesses. It reads the entries after the checkpoint, so it does not check the chain before it.
func (l *Ledger) Recent(ctx context.Context, name string, runs int) (*History, error) {
	b, err := l.books(ctx)
	if err != nil {
		return nil, err
	}
	d := b.dataset(name)
	if d.name == "" && d.seen == "" {
		return nil, fmt.Errorf("dataset %q: %w", name, ErrUnknownDataset)
	}
	h := &History{Unprotected: d.accesses, UnprotectedBefore: d.unguarded - len(d.accesses)}
	h.Earlier = max(0, d.early-h.UnprotectedBefore)
	err = each(ctx, l.store.db, func(e Entry) error {
		var r run
		err := r.apply(e)
		h.Runs = append(h.Runs, r.Run)
		return err
	}, selectReservations, name, b.head.Seq, runs)
	if err != nil {
		return nil, l.store.explain(err)
	}
	slices.Reverse(h.Runs)
	h.RunsBefore = d.runs - len(h.Runs)
	h.state(b.head, &d)
	return h, nil
}

// A RunAfter is a run, and what all runs up to it had reserved, under caps.
type RunAfter struct {
	Run
	After Caps
}

// LastRuns lists up to n runs on a dataset, without the last skip ones, in the order of their reservations; all is how
// many there are.
func (l *Ledger) LastRuns(ctx context.Context, dataset string, skip, n int) (list []RunAfter, all int, err error) {
	b, err := l.books(ctx)
	if err != nil {
		return nil, 0, err
	}
	d := b.dataset(dataset)
	after := d.spent
	err = each(ctx, l.store.db, func(e Entry) error {
		var r run
		if err := r.apply(e); err != nil {
			return err
		}
		if skip--; skip < 0 {
			list = append(list, RunAfter{r.Run, after.caps()})
		}
		after.take(r.Caps)
		return nil
	}, selectReservations, dataset, b.head.Seq, skip+n)
	for i := range list {
		var r run
		if err == nil {
			r, err = loadRun(ctx, l.store.db, list[i].ID)
			list[i].Run = r.Run
		}
	}
	slices.Reverse(list)
	return list, d.runs, l.store.explain(err)
}

// LastEntries lists up to n entries of a dataset, without the last skip ones, in the order of the chain; all is how
// many there are.
func (l *Ledger) LastEntries(ctx context.Context, dataset string, skip, n int) (list []Entry, all int, err error) {
	if err := l.store.db.QueryRowContext(ctx, countDataset, dataset).Scan(&all); err != nil {
		return nil, 0, l.store.explain(err)
	}
	rows, err := l.store.db.QueryContext(ctx, selectLastSeqs, dataset, skip+n)
	if err != nil {
		return nil, 0, l.store.explain(err)
	}
	defer rows.Close()
	var at []int64 // of both, so more than are wanted
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return nil, 0, l.store.explain(err)
		}
		at = append(at, seq)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, l.store.explain(err)
	}
	slices.Sort(at)
	at = at[:max(0, len(at)-skip)]
	if at = at[max(0, len(at)-n):]; len(at) == 0 {
		return nil, all, nil
	}
	err = each(ctx, l.store.db, func(e Entry) error { list = append(list, e); return nil }, selectSpan, dataset,
		at[0], at[len(at)-1])
	return list, all, l.store.explain(err)
}
