// Package sample holds the ways to draw a batch of records. A sampler both draws the
// batch and states the event that amplifies what was asked of it: what is claimed is what
// is done.
package sample

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Sampler draws a batch of a table's records.
type Sampler interface {
	// Event states what is released when inner, all that is asked of one batch, is asked of
	// a batch so drawn (S-2a).
	Event(inner privacy.Event) privacy.Event
	// Draw draws a batch from a table of n records, 0 ≤ n < 2³¹: either all is true
	// and rows is nil, or rows holds the batch's record numbers, ascending. Rows reuses
	// dst's memory where it suffices, whatever dst held. An invalid sampler, or a table
	// too large, is a programming error and panics.
	Draw(dst []int32, n int, src *noise.Source) (rows []int32, all bool)
	// Size is the public size of a batch for a table of that nominal number of rows: the
	// divisor of a mean. It is never the size of a batch that was drawn, which is private.
	Size(rows int) float64
	// Check says whether the sampler is valid and whether its batches make sense under the
	// relation. Whether there is a theorem for the event is the accountant's to say.
	Check(adj privacy.Adjacency) error
}

var _, _, _ Sampler = Full{}, Poisson{}, Fixed{}

// maxRows is the most records that an int32 can number.
const maxRows = math.MaxInt32

// Full takes every record, every time.
type Full struct{}

// Event is inner: nothing is amplified.
func (Full) Event(inner privacy.Event) privacy.Event { return inner }

// Draw says all, and draws nothing from src, which may be nil.
func (Full) Draw(_ []int32, n int, _ *noise.Source) (rows []int32, all bool) {
	checkRows(n)
	return nil, true
}

// Size is rows.
func (Full) Size(rows int) float64 { return float64(rows) }

// Check accepts each valid relation.
func (Full) Check(adj privacy.Adjacency) error { return checkAdjacency(adj) }

// Poisson takes each record with probability Rate, independently of all others; so the size
// of a batch is random, and may be 0. Rate is above 0 and at most 1; at 1 Poisson is Full in
// every respect. The zero value is invalid.
type Poisson struct{ Rate float64 }

// Event is privacy.PoissonSampled at the same Rate, or inner at rate 1.
func (p Poisson) Event(inner privacy.Event) privacy.Event {
	if p.Rate == 1 {
		return inner
	}
	return privacy.PoissonSampled{Rate: p.Rate, Of: inner}
}

// Draw skips from each record taken to the next by a geometric gap, so that the cost is in
// proportion to the batch, not the table. The gaps have the exact law of the coins that
// they stand for, with the probability exactly the float64 Rate, up to
// noise.SamplerDistance each (noise.Trials.Heads). A batch of the first rows of a table is the first rows of its batch.
func (p Poisson) Draw(dst []int32, n int, src *noise.Source) (rows []int32, all bool) {
	if err := p.validate(); err != nil {
		panic(err.Error())
	}
	checkRows(n)
	if p.Rate == 1 {
		return nil, true
	}
	return noise.NewTrials(p.Rate).Heads(dst[:0], int64(n), src), false
}

// Size is Rate·rows, the mean size of a batch from a table of that many rows.
func (p Poisson) Size(rows int) float64 { return p.Rate * float64(rows) }

// Check accepts each valid relation: there are theorems for both (R17).
func (p Poisson) Check(adj privacy.Adjacency) error {
	if err := p.validate(); err != nil {
		return err
	}
	return checkAdjacency(adj)
}

func (p Poisson) validate() error {
	if !(p.Rate > 0 && p.Rate <= 1) {
		return fmt.Errorf("poisson: rate is %v; choose a number above 0 and up to 1", p.Rate)
	}
	return nil
}

func checkAdjacency(adj privacy.Adjacency) error {
	if err := adj.Validate(); err != nil {
		return fmt.Errorf("sample: %w", err)
	}
	return nil
}

// checkRows names no number: the size of a table may be private (R9).
func checkRows(n int) {
	if n < 0 || n > maxRows {
		panic("sample: a table must have from 0 to 2³¹−1 records")
	}
}
