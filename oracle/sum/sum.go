// Package sum says what is added up of private records, over which sample and by whom. It holds no record: the table of
// this process (oracle/private), tables of other machines (oracle/remote) and the parts of several owners
// (gossip/pool) answer alike.
package sum

import (
	"context"
	"errors"
	"slices"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Summer adds up clipped whole numbers over a sample of private records. Local, the table in this process, is one;
// rows on other machines (oracle/remote) and audits, which put canaries among the rows (study/audit), are others.
//
// A Summer charges nothing, adds no noise and releases nothing: what it returns is private. The oracle calls Draw once
// the charge is in the journal, and adds noise, once, to what Take returns. Sums are exact modulo 2⁶⁴, so an oracle
// releases the same bits wherever the parts of a sum are added.
type Summer interface {
	// Rows is the number of records, as private as a table's.
	Rows() int
	// Draw draws the sample of the next sums.
	Draw(ctx context.Context, d Draw) error
	// Sum adds up s over the sample. The Sum belongs to the caller.
	Sum(ctx context.Context, s *Sum) error
	// Take sets dst to the numbers of the last sum from number from on. It is called once for each number, in their order.
	Take(dst []int64, from int)
}

// A Draw names a sample: the same key draws the same sample anywhere. It is secret.
type Draw struct {
	Sampler sample.Sampler
	Key     noise.Key
	Batch   int // number of the batch in the run
	Total   int // records that are drawn from
	From    int // number of the Summer's first record among them
}

// Own draws the sample and returns the records from number from on, n of them at most, numbered from 0, in dst's
// memory. all says that all are drawn.
func (d *Draw) Own(dst []int32, from, n int, src *noise.Source) (own []int32, all bool) {
	d.Key.Reset(src)
	total := d.Total
	if _, ok := d.Sampler.(sample.Poisson); ok { // whether a record is drawn does not depend on those after it
		total = min(total, from+n)
	}
	rows, all := d.Sampler.Draw(dst[:0], total, src)
	if all {
		return dst[:0], true
	}
	first, _ := slices.BinarySearch(rows, int32(from))
	end, _ := slices.BinarySearch(rows, int32(from+n))
	own = rows[:end-first]
	for i, row := range rows[first:end] {
		own[i] = row - int32(from)
	}
	return own, false
}

// A Kind is what a Sum adds up.
type Kind string

const (
	Gradients  Kind = "gradients" // clipped gradients at W
	Hessians   Kind = "curvature" // clipped Hessians at W: the upper triangle, row after row
	Decreases  Kind = "decreases" // of the loss from W to W + step·Along, for each step, within ±Bound
	Neighbors  Kind = "neighbors" // decreases from W by one parameter up (2j) or down (2j + 1) by Step
	Losses     Kind = "losses"    // at W, within [0, Bound]
	Wrong      Kind = "wrong"     // 0-1 losses at W, with Offset added to every margin
	Answers    Kind = "answers"   // at W, with Offset added to every margin: ½ for a wrong one, −½ for a right one
	Margins    Kind = "margins"   // at W and At: slopes and curvatures as functions of margins
	Within     Kind = "within"    // gradients at W: ½ for one within the bound of Clip, −½ for another
	Labels     Kind = "labels"    // above the lower bound of the label, within [0, Bound]
	Squares    Kind = "squares"   // of the distance of labels from Offset, within [0, Bound]
	Rows       Kind = "rows"      // clipped encoded rows
	Classes    Kind = "classes"   // records of each class
	Scores     Kind = "scores"    // at W: records in the cells of Score, or its sums of errors
	CellTotals Kind = "totals"    // the sums of a first release
)

// A Sum says what to add up over a sample. All of it is public.
type Sum struct {
	Of Kind
	// Unit is what the numbers are multiples of; of Hessians, the unit of a record's vector, whose square that is. The
	// sensitivity is stated in it, so a Summer refuses another one than its own. 0: plain float64s, for Local in the lab
	// only.
	Unit         float64
	Clip         clip.Rule           // of gradients, rows and Hessians; of Within, the norm
	Center       []float64           // of gradients: a point that is taken from every row; nil: none
	Shift        float64             // of gradients: is added to all margins
	Augmentation oracle.Augmentation // of gradients
	Bound        float64             // of losses, answers, labels and decreases
	Offset       float64             // of 0-1 losses and answers; what labels are taken from, of squares
	Margins      oracle.Margins      // of margins, at
	At           []float64           // the shifts, the factor and the offsets
	W            []float64           // of rows: any, one number for each feature
	Along        []float64
	Steps        []float64
	Step         float64
	Score        oracle.Score // of scores, of so many Classes
	Classes      int
	Totals       oracle.Totals // of a first release; Numbers is its length
	Numbers      int
	Again        bool // the last Sum was along the same line
}

// Len is how many numbers the sum has.
func (s *Sum) Len() int {
	switch s.Of {
	case Gradients, Rows:
		return len(s.W)
	case Hessians:
		return oracle.HessLen(len(s.W))
	case Margins:
		return s.Margins.Len(oracle.Public{Classes: len(s.At) / 2})
	case Decreases:
		return len(s.Steps)
	case Neighbors:
		return 2 * len(s.W)
	case Classes:
		return s.Classes
	case Scores:
		return s.Score.Len(s.Classes)
	case CellTotals:
		return s.Numbers
	}
	return 1
}

// A Pool adds up the parts of all owners of a network, so that only their sum can be read (network.mode: sum). A
// part is an owner's exact sum with its share of noise (mech.Share); the Pool masks it, so what it is given is private
// and what it returns is public. For each attempt at a batch the oracle calls Meet, then charges, and then calls Sum
// once for each query.
type Pool interface {
	// Meet waits until all owners are there for the next attempt. Nothing was charged for it. held says that an earlier
	// process of this owner charged the attempt and masked a part of it: it is not charged again. Owners make as many
	// attempts as they all have planned, retries included; after that the error wraps privacy.ErrExhausted.
	Meet(ctx context.Context) (held bool, err error)
	// Sum returns the sum of all owners' parts modulo 2⁶⁴, n numbers, valid until the next call. part makes the owner's;
	// it is not called for a part that an earlier process masked. asked is a hash of what all owners must agree on beside
	// what was released before. ErrGivenUp says that an owner's part is missing and the attempt is over for all owners:
	// the oracle meets, charges and draws again.
	Sum(ctx context.Context, asked [32]byte, n int, part func() ([]int64, error)) ([]int64, error)
}

// ErrGivenUp is returned by a Pool when the owners have given an attempt up.
var ErrGivenUp = errors.New("sum: an owner's part is missing; the attempt was given up")
