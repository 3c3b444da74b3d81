package transport

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// ErrApart: the journal and the method disagree.
var ErrApart = errors.New("the journal holds other numbers than the method now computes: it was made by another version of sotto or on another kind of machine")

// A Replay answers a method from a journal, instead of the oracle and the peers, until the journal
// ends.
type Replay struct {
	Journal *runlog.JournalReader // nil: nothing to replay
	// Same reports whether the vector in the journal is the one that the method now sends; nil compares
	// bits.
	Same func(sent, now []float64) bool

	next  *runlog.Activation // read, and not mixed yet
	ended bool
}

// sameBits reports whether two vectors have the same bits.
func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// Oracle answers from the journal, then from the oracle behind it; nil: none. The meter is charged
// for what the journal answers, too.
func (r *Replay) Oracle(facts oracle.Public, behind oracle.Oracle, meter account.Meter) oracle.Oracle {
	var batches []runlog.JournalBatch // of the activation that is replayed
	return &replay.Oracle{Facts: facts, Then: behind, Meter: meter, Next: func() (replay.Released, error) {
		if len(batches) == 0 {
			if r.next != nil {
				return replay.Released{}, fmt.Errorf("round %d: %w", r.next.Round, ErrApart)
			}
			a, err := r.read()
			switch {
			case err != nil:
				return replay.Released{}, err
			case a == nil:
				return replay.Released{}, io.EOF
			case len(a.Batches) == 0:
				return replay.Released{}, fmt.Errorf("round %d: %w", a.Round, ErrApart)
			}
			batches = a.Batches
		}
		b := batches[0]
		batches = batches[1:]
		return replay.Released{Event: b.Event, Answers: b.Answers}, nil
	}}
}

// read returns the activation to replay; nil after the last.
func (r *Replay) read() (*runlog.Activation, error) {
	if r.Journal == nil || r.ended || r.next != nil {
		return r.next, nil
	}
	a, err := r.Journal.Next()
	if err == io.EOF {
		r.ended = true
		return nil, r.Journal.Close()
	}
	r.next = a
	return a, err
}

// Mix returns the activation in the journal for which the method now sends m; nil after the journal's
// end. If the journal knows how the activation ended, Mix sets m to the owner's vector after it.
func (r *Replay) Mix(act gossip.Activation, m []float64) (*runlog.Activation, error) {
	past, err := r.read()
	if err != nil || past == nil {
		return nil, err
	}
	r.next = nil
	same := r.Same
	if same == nil {
		same = sameBits
	}
	if past.Round != act.T || !same(past.Sent, m) {
		return nil, fmt.Errorf("round %d: %w", act.T, ErrApart)
	}
	if past.Done {
		copy(m, past.State)
	}
	return past, nil
}
