package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// A Restoration says that the owner accepted a ledger that lacks entries, or that could not be
// compared with the witness. What the missing entries charged is not counted.
type Restoration struct {
	Found string     `json:"found"`           // Missing, Emptied, Another, Older, Forked or Unreadable
	Last  Head       `json:"last"`            // the last entry that was seen before; of none where that is not known
	Seen  *time.Time `json:"seen,omitempty"`  // the time of that entry
	Head  Head       `json:"head"`            // the last entry of what was accepted; of none for a new ledger
	Until *time.Time `json:"until,omitempty"` // the time of that entry
	At    time.Time  `json:"-"`               // of the restoration
}

// ErrNothingLost: the ledger continues what the witness saw.
var ErrNothingLost = errors.New("there is nothing to accept: the ledger continues what was last seen here")

// Accept opens a ledger that Open refuses with a [*WitnessError], and records in its chain what was
// expected and found; from then on the statements of all datasets say so. If the ledger is missing
// or its file empty, Accept makes a new one. It refuses a file that holds something else, which has
// to be moved away first.
func Accept(ctx context.Context, where string) (Restoration, error) {
	return machine.Accept(ctx, where)
}

// Accept is [Accept] on the disk.
func (d Disk) Accept(ctx context.Context, where string) (Restoration, error) {
	s, err := d.connect(where, making)
	if err != nil {
		return Restoration{}, err
	}
	defer s.db.Close()
	l := &Ledger{store: s, witness: newWitness(s), now: time.Now}
	r, err := l.accept(ctx)
	return r, s.explain(err)
}

func (l *Ledger) accept(ctx context.Context) (r Restoration, err error) {
	err = l.open(ctx, reading)
	var lost *WitnessError
	if err == nil {
		return r, ErrNothingLost
	} else if !errors.As(err, &lost) {
		return r, err
	}
	r = Restoration{Found: lost.Found, Last: lost.Last, Head: Head{0, noHash}}
	if r.Last == (Head{}) {
		r.Last = Head{0, noHash}
	}
	if !lost.Time.IsZero() {
		r.Seen = &lost.Time
	}
	found := l.find(ctx)
	switch {
	case found == nil:
		if err := l.prepare(ctx, writing); err != nil {
			return r, err
		}
		err := each(ctx, l.store.db, func(e Entry) error {
			r.Head, r.Until = Head{e.Seq, e.Hash}, &e.Time
			return nil
		}, selectLast)
		if err != nil {
			return r, err
		}
		err = l.restore(ctx, r)
		if err != nil {
			return r, err
		}
	case errors.Is(found, os.ErrNotExist) || l.store.empty():
		if err := l.make(ctx, &r); err != nil {
			return r, err
		}
		if err := l.prepare(ctx, writing); err != nil {
			return r, err
		}
	default:
		return r, fmt.Errorf("%w. Move the file away, then accept that the ledger is missing", found)
	}
	r.At = l.now().UTC()
	return r, l.noteHead(ctx, true)
}

// restore appends the entry, which format 1 does not have. A checkpoint may be of entries that the ledger lacks.
func (l *Ledger) restore(ctx context.Context, r Restoration) error {
	_, err := l.transact(ctx, func(w *writer) error {
		if err := w.upgrade(); err != nil {
			return err
		}
		if err := w.dropCheckpoint(); err != nil {
			return err
		}
		return w.append(KindRestore, "", "", r)
	})
	return err
}

// Words describes what the restoration means for the ledger's statements.
func (r Restoration) Words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "The ledger was restored on %s ", day(r.At))
	before := ""
	if r.Seen != nil {
		before = " until " + day(*r.Seen)
	}
	switch {
	case r.Head.Seq == 0:
		fmt.Fprintf(&b, "without its entries; charges recorded%s are missing.", before)
	case r.Found == Older && r.Until != nil && r.Seen != nil:
		fmt.Fprintf(&b, "from a copy; charges recorded between %s and %s are missing.", day(*r.Until), day(*r.Seen))
	case r.Found == Unreadable:
		b.WriteString("without a comparison with what was seen of it before; charges may be missing.")
	default:
		fmt.Fprintf(&b, "from another one; charges recorded%s that it does not hold are missing.", before)
	}
	return b.String()
}
