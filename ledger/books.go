package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// books holds the state of all datasets after the chain's entries up to head. Once shared, it never
// changes: extend copies what later entries modify.
type books struct {
	head     Head
	time     time.Time // of that entry
	datasets map[string]*dataset
	restored []Restoration
	own      map[string]bool // the datasets that no other books share
}

func newBooks() *books {
	return &books{head: Head{0, noHash}, datasets: map[string]*dataset{}, own: map[string]bool{}}
}

// apply adds the next entry of the chain; d is nil for an entry about the whole ledger. After an error the books must
// not be used.
func (b *books) apply(e Entry) (d *dataset, err error) {
	if e.Seq != b.head.Seq+1 {
		return nil, fmt.Errorf("it follows entry %d: entries are missing or moved", b.head.Seq)
	}
	if e.Prev != b.head.Hash {
		return nil, errors.New("it does not follow the entry before it: one of the two was replaced")
	}
	b.head, b.time = Head{e.Seq, e.Hash}, e.Time
	if e.Kind == KindRestore {
		r, err := restoration(e)
		b.restored = append(slices.Clip(b.restored), r)
		return nil, err
	}
	if !b.own[e.Dataset] {
		var c dataset
		if shared := b.datasets[e.Dataset]; shared != nil {
			c = shared.clone()
		}
		b.datasets[e.Dataset], b.own[e.Dataset] = &c, true
	}
	d = b.datasets[e.Dataset]
	return d, d.apply(e)
}

// extend returns books with the entries that were appended since; b itself if there are none.
func (b *books) extend(ctx context.Context, q querier) (*books, error) {
	next := b
	err := each(ctx, q, func(e Entry) error {
		if next == b {
			next = &books{b.head, b.time, maps.Clone(b.datasets), b.restored, map[string]bool{}}
		}
		_, err := next.apply(e)
		return err
	}, selectAfter, b.head.Seq)
	return next, err
}

// dataset is a copy, which the caller may change; the zero value for a name without entries.
func (b *books) dataset(name string) (d dataset) {
	if shared := b.datasets[name]; shared != nil {
		d = shared.clone()
	}
	d.restored = b.restored
	return d
}

// clone is a copy that shares nothing that apply and take change.
func (d *dataset) clone() dataset {
	c := *d
	c.spent, c.sharing = d.spent.clone(), d.sharing.clone()
	if d.tally != nil {
		c.tally = d.tally.Clone()
	}
	c.marks, c.owned, c.accessed = slices.Clip(d.marks), slices.Clip(d.owned), slices.Clip(d.accessed)
	c.accesses = slices.Clip(d.accesses)
	c.restored, c.resumed = slices.Clip(d.restored), maps.Clone(d.resumed)
	return c
}

// at is m[key], made if it is not there.
func at[T any](m map[string]*T, key string) *T {
	if m[key] == nil {
		m[key] = new(T)
	}
	return m[key]
}

// A prefix caches what a Ledger has read of the chain, so that a process reads each entry once;
// without it, 32,000 reservations would read half a billion entries. It is valid while the chain
// holds its last entry, which each use checks first.
type prefix struct {
	mu    sync.Mutex
	last  headSeen // the last entry that a transaction read or wrote
	books *books   // nil: nothing was read
	saved int64    // the entry of the stored checkpoint, as far as this process knows
	size  int      // bytes of its state
}

// head is the last entry that a transaction read or wrote; the zero value if none.
func (p *prefix) head() headSeen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// reach notes a committed entry.
func (p *prefix) reach(h Head, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Seq > p.last.Head.Seq {
		p.last = headSeen{Head: h, Time: at}
	}
}

// known returns the cached books; nil if there are none.
func (p *prefix) known() *books {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.books
}

// remember caches b, books of committed entries that were extended from began.
func (p *prefix) remember(b, began *books) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.books == nil || p.books == began || b.head.Seq > p.books.head.Seq {
		p.books = b
	}
}

// checkpoint is the entry of the stored checkpoint, and the size of its state, as far as this process knows.
func (p *prefix) checkpoint() (seq int64, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.saved, p.size
}

// note notes the entry of the stored checkpoint, and the size of its state.
func (p *prefix) note(seq int64, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saved, p.size = seq, size
}

// books reads what came since the Ledger was last asked.
func (l *Ledger) books(ctx context.Context) (*books, error) {
	began, b, err := l.begin(ctx, l.store.db)
	if err == nil {
		b, err = b.extend(ctx, l.store.db)
	}
	if err != nil {
		return nil, l.store.explain(err)
	}
	l.prefix.remember(b, began)
	return b, nil
}

// begin gives the books from which to go on: those that are remembered, where the chain still holds their last entry,
// or those of the stored checkpoint. known are the remembered ones.
func (l *Ledger) begin(ctx context.Context, q querier) (known, from *books, err error) {
	if known = l.prefix.known(); known != nil {
		err := l.continues(ctx, q, headSeen{Head: known.head})
		if !errors.Is(err, ErrWitness) {
			return known, known, err
		}
		// The database was overwritten with a copy. Writers have been refused; a reader shows what is there now.
	}
	from, err = l.load(ctx, q)
	return known, from, err
}

// state are the books up to the last entry, those of this transaction included.
func (w *writer) state() (*books, error) {
	if w.books != nil && w.books.head == w.head {
		return w.books, nil
	}
	known, b, err := (*books)(nil), w.books, error(nil)
	if b == nil {
		known, b, err = w.l.begin(w.ctx, w.tx)
	}
	if err == nil {
		b, err = b.extend(w.ctx, w.tx)
	}
	if err != nil {
		return nil, err
	}
	if w.books = b; b.head == w.began {
		w.l.prefix.reach(w.began, w.now)
		w.l.prefix.remember(b, known)
	}
	return b, nil
}

// dataset is a copy of the state of a dataset, with what this transaction appended.
func (w *writer) dataset(name string) (dataset, error) {
	b, err := w.state()
	if err != nil {
		return dataset{}, err
	}
	return b.dataset(name), nil
}
