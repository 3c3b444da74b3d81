package journal

import (
	"errors"
	"fmt"
	"io"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/trace"
)

// ErrApart: the journal and the method do not say the same.
var ErrApart = errors.New("the journal holds other numbers than the method now computes: it was made by another version of sotto or on another kind of machine")

// A Replay answers a method from a journal as far as it goes, in the place of the door and in that of the peers.
type Replay struct {
	Turns *Reader // nil: none
	// Same says whether what the journal sent is what the method now sends; nil: Equal.
	Same func(sent, now []float64) bool

	turn  *Turn // read, and not mixed yet
	ended bool
}

// Over is the door behind the journal; nil: none. The meter pays for what the journal answers, too.
func (r *Replay) Over(facts oracle.Public, door oracle.Oracle, meter account.Meter) oracle.Oracle {
	var batches []Batch // of the turn that is replayed
	return &replay.Oracle{Facts: facts, Then: door, Meter: meter, Next: func() (replay.Released, error) {
		if len(batches) == 0 {
			if r.turn != nil {
				return replay.Released{}, fmt.Errorf("round %d: %w", r.turn.Round, ErrApart)
			}
			turn, err := r.next()
			if err != nil {
				return replay.Released{}, err
			}
			if turn == nil {
				return replay.Released{}, io.EOF
			}
			if batches = turn.Batches; len(batches) == 0 {
				return replay.Released{}, fmt.Errorf("round %d: %w", turn.Round, ErrApart)
			}
		}
		b := batches[0]
		batches = batches[1:]
		return replay.Released{Event: b.Event, Answers: b.Answers}, nil
	}}
}

// next is the turn to replay; nil: there is none left.
func (r *Replay) next() (*Turn, error) {
	if r.Turns == nil || r.ended || r.turn != nil {
		return r.turn, nil
	}
	turn, err := r.Turns.Next()
	if err == io.EOF {
		r.ended = true
		return nil, r.Turns.Close()
	}
	r.turn = turn
	return turn, err
}

// Mix is the turn as the journal holds it, in which the method now sends m; nil: the journal ends before it. m becomes the owner's vector after
// the turn where the journal knows that.
func (r *Replay) Mix(turn gossip.Turn, m []float64) (*Turn, error) {
	past, err := r.next()
	if err != nil || past == nil {
		return nil, err
	}
	r.turn = nil
	same := r.Same
	if same == nil {
		same = Equal
	}
	if past.Round != turn.T || !same(past.Sent, m) {
		return nil, fmt.Errorf("round %d: %w", turn.T, ErrApart)
	}
	if past.Done {
		copy(m, past.State)
	}
	return past, nil
}

// Record is what a journal charged and released, as the record of a run.
func Record(path string) (*trace.Record, error) {
	r, err := Read(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	rec := &trace.Record{}
	for {
		turn, err := r.Next()
		if err == io.EOF {
			rec.Torn = r.offset < r.size
			return rec, nil
		}
		if err != nil {
			return nil, err
		}
		for _, b := range turn.Batches {
			rec.Released++
			if last := len(rec.Events) - 1; last >= 0 && privacy.Equal(rec.Events[last].Event, b.Event) {
				rec.Events[last].Count++
				continue
			}
			rec.Events = append(rec.Events, trace.Charges{First: rec.Charged(), Count: 1, Event: b.Event})
		}
	}
}
