package sample

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Allocation divides the records among the batches of an epoch: each is in one of them, equally likely in each and
// independent of the others. Batches is at least 2. Batch is the number of the batch that is drawn, from 0. The oracle
// sets it, and methods leave it 0. All batches of an epoch are drawn from the same stream.
type Allocation struct{ Batches, Batch int }

var _ Sampler = Allocation{}

// Event is privacy.Allocated: inner is asked of each batch, and this is the event of the whole epoch.
func (a Allocation) Event(inner privacy.Event) privacy.Event {
	return privacy.Allocated{Batches: a.Batches, Of: inner}
}

// Draw draws the places of all records, at one word each or a little more, and returns the records of the one batch.
// Places keeps those of the others, too.
func (a Allocation) Draw(dst []int32, n int, src *noise.Source) (rows []int32, all bool) {
	var p Places
	p.Draw(a, n, src)
	return p.Rows(dst, a.Batch), false
}

// Size is rows/Batches, the mean size of a batch from a table of that many rows.
func (a Allocation) Size(rows int) float64 { return float64(rows) / float64(a.Batches) }

// Check accepts add-or-remove.
func (a Allocation) Check(adj privacy.Adjacency) error {
	if err := a.validate(); err != nil {
		return err
	}
	if err := checkAdjacency(adj); err != nil {
		return err
	}
	if adj != privacy.AddRemove {
		return fmt.Errorf("allocation: adjacency is %v; choose %v, as random allocation is proven for no other", adj,
			privacy.AddRemove)
	}
	return nil
}

func (a Allocation) validate() error {
	if a.Batches < 2 || a.Batches > maxRows || a.Batch < 0 || a.Batch >= a.Batches {
		return fmt.Errorf("allocation: batch %d of %d; choose 2 batches or more, numbered from 0", a.Batch, a.Batches)
	}
	return nil
}

// Places are where the records of a table are in one epoch of random allocation, which is private.
type Places struct {
	first []int32 // of each batch, the first record; -1: none
	next  []int32 // of each record, the next one in its batch; -1: none
}

// Draw draws them for a table of n records.
func (p *Places) Draw(a Allocation, n int, src *noise.Source) {
	if err := a.validate(); err != nil {
		panic(err.Error())
	}
	checkRows(n)
	if cap(p.next) < n {
		p.next = make([]int32, n)
	}
	p.next = p.next[:n]
	p.first = make([]int32, a.Batches)
	last := make([]int32, a.Batches)
	for i := range last {
		p.first[i], last[i] = -1, -1
	}
	for row := range p.next {
		batch := src.Below(uint64(a.Batches))
		if before := last[batch]; before < 0 {
			p.first[batch] = int32(row)
		} else {
			p.next[before] = int32(row)
		}
		p.next[row], last[batch] = -1, int32(row)
	}
}

// Rows are the records of a batch, ascending, in dst's memory where it suffices.
func (p *Places) Rows(dst []int32, batch int) []int32 {
	dst = dst[:0]
	for row := p.first[batch]; row >= 0; row = p.next[row] {
		dst = append(dst, row)
	}
	return dst
}

// Format prints no more than what it is.
func (p *Places) Format(f fmt.State, _ rune) { fmt.Fprint(f, "sample.Places") }
