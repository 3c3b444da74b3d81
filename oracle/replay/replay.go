// Package replay is an oracle that answers from a run's record and holds no
// data. A method is post-processing of its answers, so a run is a fold over its
// releases: replaying them gives the same iterates, bit for bit on the same
// platform. That is how a broken run is resumed without a second access and how a
// finished one is verified, and it shows that no method reads rows.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/sample"
)

// ErrEnd is returned by Batch when the record is used up and no oracle follows.
var ErrEnd = errors.New("replay: the record ends here")

// A Released batch: what was charged for it and what was answered.
type Released struct {
	Event   privacy.Event
	Answers [][]float64
	Lost    []privacy.Event // what was charged before it and never released, since the batch before
}

// Oracle replays a record, then hands over to Then.
type Oracle struct {
	Facts oracle.Public
	Part  string // of the table, as the oracle of the run charged it; "": the whole
	// Next yields the record, batch by batch, and at its end io.EOF, with what was lost behind the last. The answers may
	// be Next's own: they are read before the next call.
	Next func() (Released, error)
	Then oracle.Oracle // nil: the end of the record is ErrEnd
	// Meter, when set, is charged with all of the record, so that what was refused on the way is refused again. Without
	// one, what the record does not hold is an error.
	Meter account.Meter

	ahead    Released // the next of the record, if there is one
	there    bool
	over     bool
	replayed int
	open     []oracle.Query
	refined  bool
	choice   *oracle.Choice // for Then, once it follows
}

// Each yields the batches of a record that is in memory.
func Each(record []Released) func() (Released, error) {
	return func() (Released, error) {
		if len(record) == 0 {
			return Released{}, io.EOF
		}
		next := record[0]
		record = record[1:]
		return next, nil
	}
}

// Replayed counts the batches answered from the record so far.
func (o *Oracle) Replayed() int { return o.replayed }

// Public returns Facts.
func (o *Oracle) Public() oracle.Public { return o.Facts }

// Batch returns the next batch of the record. What is asked must cost what the
// record says, or more than the meter has left: anything else means another method or other settings.
func (o *Oracle) Batch(ctx context.Context, s sample.Sampler, queries ...oracle.Query) (oracle.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.peek(); err != nil {
		return nil, err
	}
	switch {
	case o.over && o.Then == nil:
		return nil, ErrEnd
	case o.over:
		if o.choice != nil {
			if err := oracle.Refine(ctx, o.Then, *o.choice); err != nil {
				return nil, err
			}
			o.choice = nil
		}
		return o.Then.Batch(ctx, s, queries...)
	}
	rec := o.ahead
	cost := privacy.InPart(o.Part, o.Facts.Cost(s, queries))
	if _, allocated := s.(sample.Allocation); allocated && rec.Event == (privacy.Continued{}) {
		cost = rec.Event // whether the epoch before has a batch left, the meter says that is charged with the whole record
	}
	if !privacy.Equal(cost, rec.Event) {
		if o.Meter != nil {
			if err := o.Meter.Charge(cost); errors.Is(err, privacy.ErrExhausted) {
				return nil, err
			}
		}
		return nil, fmt.Errorf("replay: batch %d asks for %v, the record holds %v", o.replayed, cost, rec.Event)
	}
	if len(rec.Answers) > len(queries) {
		return nil, fmt.Errorf("replay: batch %d holds %d answers to %d queries", o.replayed, len(rec.Answers), len(queries))
	}
	if err := o.charge(rec.Event); err != nil {
		return nil, err
	}
	o.there = false
	o.replayed++
	o.open = append(o.open[:0], queries...)
	return &batch{o: o, number: o.replayed, answers: rec.Answers}, nil
}

// Refine implements oracle.Refiner. The record's answers are those of an oracle that was told the same, so only Then is
// told, once it follows.
func (o *Oracle) Refine(_ context.Context, c oracle.Choice) error {
	if err := c.Check(o.Facts); err != nil {
		return err
	}
	if o.refined {
		return errors.New("replay: rows are refined once; their encoding was chosen before")
	}
	o.refined, o.choice = true, &oracle.Choice{Pairs: slices.Clone(c.Pairs), Lines: c.Lines}
	return nil
}

// peek reads the next batch of the run log, unless it was read.
func (o *Oracle) peek() error {
	if o.there || o.over {
		return nil
	}
	next, err := o.Next()
	if err != nil && err != io.EOF {
		return err
	}
	o.ahead, o.there, o.over = next, err == nil, err == io.EOF
	return o.charge(next.Lost...)
}

// charge charges again what the record says was charged.
func (o *Oracle) charge(events ...privacy.Event) error {
	if o.Meter == nil {
		return nil
	}
	for _, e := range events {
		if err := o.Meter.Charge(e); err != nil {
			// No refusal: a record that does not fit is an error.
			return fmt.Errorf("replay: batch %d of the record: its charges do not fit the plan: %v", o.replayed, err)
		}
	}
	return nil
}

type batch struct {
	o       *Oracle
	number  int
	answers [][]float64
}

// take marks q as asked and returns the next answer, of n numbers: answers stand in the order
// in which they were asked.
func (b *batch) take(q oracle.Query, n int) ([]float64, error) {
	if b.number != b.o.replayed {
		return nil, oracle.ErrStale
	}
	i := slices.Index(b.o.open, q)
	switch {
	case i < 0:
		return nil, oracle.ErrNotCharged
	case len(b.answers) == 0:
		return nil, ErrEnd
	}
	a := b.answers[0]
	b.o.open, b.answers = slices.Delete(b.o.open, i, i+1), b.answers[1:]
	if len(a) != n {
		return nil, fmt.Errorf("replay: batch %d: an answer of %d numbers to %T, which has %d", b.number-1, len(a), q, n)
	}
	return a, nil
}

// Grad returns the recorded gradient.
func (b *batch) Grad(q oracle.Grad, w []float64) ([]float64, error) {
	n := len(w)
	if q.Centered {
		n = b.o.Facts.Dim // behind them is the center
	}
	return b.take(q, n)
}

// Mean returns the recorded mean row.
func (b *batch) Mean(q oracle.Mean) ([]float64, error) { return b.take(q, b.o.Facts.Features()) }

// Totals returns the recorded sums.
func (b *batch) Totals(q oracle.Totals) ([]float64, error) {
	if err := q.Fits(b.o.Facts); err != nil { // of a forged run
		return nil, err
	}
	return b.take(q, q.Len(b.o.Facts))
}

// Hess returns the recorded Hessian.
func (b *batch) Hess(q oracle.Hess, w []float64) ([]float64, error) {
	return b.take(q, oracle.HessLen(len(w)))
}

// Search returns the recorded outcome.
func (b *batch) Search(q oracle.Search, along oracle.Line) (int, error) {
	if err := along.Check(q, len(along.From)); err != nil {
		return 0, err
	}
	a, err := b.take(q, 1)
	if err != nil {
		return 0, err
	}
	return oracle.FoundIn(a, len(along.Steps))
}

// Select returns the recorded choice.
func (b *batch) Select(q oracle.Select, among oracle.Candidates) (int, error) {
	n, err := oracle.CheckChoice(q, among, b.o.Facts)
	if err != nil {
		return 0, err
	}
	a, err := b.take(q, 1)
	if err != nil {
		return 0, err
	}
	return oracle.Chosen(a, n)
}

// Loss returns the recorded loss.
func (b *batch) Loss(q oracle.Loss, w []float64) (float64, error) {
	a, err := b.take(q, 1)
	if err != nil {
		return 0, err
	}
	return a[0], nil
}

// Score returns the recorded numbers.
func (b *batch) Score(q oracle.Score, w []float64) ([]float64, error) {
	return b.take(q, q.Len(b.o.Facts.Classes))
}

// Margins returns the recorded sums.
func (b *batch) Margins(q oracle.Margins, at []float64) ([]float64, error) {
	if err := q.Fits(b.o.Facts, at); err != nil {
		return nil, err
	}
	return b.take(q, q.Len(b.o.Facts))
}

// Minimize returns the recorded parameters.
func (b *batch) Minimize(q oracle.Minimize) ([]float64, error) { return b.take(q, b.o.Facts.Dim) }
