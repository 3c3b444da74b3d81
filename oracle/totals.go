package oracle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// Totals asks for the sums of the first release: for each cell c of the label the sum Σ_i h_c(y_i)·ψ(x_i), plus noise.
// ψ(x) is 1, then x, the features of the encoded row, then, where Pairs is above 0, products of features:
// x_a·x_b/‖x_L‖ for a < b, row after row of the upper triangle. L is Public.Paired, the lines and first waves of
// columns, and x_L is the row without its other features; where it is 0, so are the products.
//
// h is the class, 1 in its cell and 0 in the others, or of a numeric label its bumps (schema.Bumps): centers are at
// equal distances from LabelMin to LabelMin + LabelSpan. So h ≥ 0 sums to 1. One cell holds all records, whatever
// their labels are; so rows need none.
//
// The noise has one standard deviation for all numbers of (Count·NormBound, x, Pairs·p); the answer is divided by these
// weights afterward, and by nothing else.
type Totals struct {
	Cells int           // of the label: its classes, centers of a numeric one, or 1 for all records together
	Count float64       // weight of the count, relative to NormBound; 0: there is no count
	Pairs float64       // weight of the products; 0: there are none
	Noise mech.Additive // Gaussian, or none
}

// Limits of Totals.
const (
	MostCells  = 64      // centers of a numeric label
	MostTotals = 1 << 22 // numbers of an answer

	leastWeight, mostWeight = 0x1p-10, 16
)

// Event is the event of the noise.
func (q Totals) Event() privacy.Event { return q.Noise.Event() }

// Validate checks the weights, and that the noise is Gaussian or none.
func (q Totals) Validate() error {
	switch q.Noise.(type) {
	case mech.Gaussian, mech.None:
	default:
		return fmt.Errorf("oracle: the noise of a first release is %T; choose Gaussian noise, or none", q.Noise)
	}
	switch {
	case q.Count != 0 && !(q.Count >= leastWeight && q.Count <= mostWeight):
		return fmt.Errorf("oracle: the count of a first release has weight %v; choose a number from 2^-10 to %v, or 0 for no count",
			q.Count, mostWeight)
	case q.Pairs != 0 && !(q.Pairs >= leastWeight && q.Pairs <= mostWeight):
		return fmt.Errorf("oracle: the products of a first release have weight %v; choose 0, or a number from 2^-10 to %v",
			q.Pairs, mostWeight)
	case q.Cells < 1:
		return errors.New("oracle: a first release has no cell; choose one or more")
	}
	return q.Noise.Event().Validate()
}

// Fits checks a valid query against the public facts of a run.
func (q Totals) Fits(p Public) error {
	switch {
	case !p.Totals:
		return errors.New("oracle: a first release is for linear models over rows of numbers, each a record; this run has others")
	case q.Cells == 1:
	case p.Classes > 0 && q.Cells != p.Classes:
		return fmt.Errorf("oracle: a first release has %d cells; the label has %d classes, which must agree", q.Cells, p.Classes)
	case p.Classes == 0 && q.Cells > MostCells:
		return fmt.Errorf("oracle: a first release has %d cells for a numeric label; choose at most %d", q.Cells, MostCells)
	case p.Classes == 0 && !(p.LabelSpan > 0):
		return errors.New("oracle: the numeric label has no bounds; a first release needs them for its cells")
	}
	if q.Len(p) > MostTotals {
		return fmt.Errorf("oracle: a first release has %d numbers; leave out the products, or choose fewer cells, for at most %d",
			q.Len(p), MostTotals)
	}
	return nil
}

// Len is the number of numbers in an answer.
func (q Totals) Len(p Public) int { return q.Cells * (q.Counts() + p.Features() + q.Products(p)) }

// Counts is how many of the numbers of a cell are counts: the first, or none.
func (q Totals) Counts() int {
	if q.Count == 0 {
		return 0
	}
	return 1
}

// Products is how many of the numbers of a cell are products: they are the last.
func (q Totals) Products(p Public) int {
	if q.Pairs == 0 {
		return 0
	}
	n := len(p.Paired())
	return n * (n - 1) / 2
}

// Paired are the features whose products a first release has, ascending: the line of each of Numeric, and where the
// label is a number its first wave.
func (p Public) Paired() (features []int) {
	for _, n := range p.Numeric {
		if features = append(features, n.At); n.Waves > 0 && p.Classes == 0 {
			features = append(features, n.At+1)
		}
	}
	return features
}

// Bound bounds the norm of a row's part in all sums, rounded up: √(Count² + 1 + Pairs²/2) of NormBound, since the
// products have a norm of at most ‖x‖/√2 (oracle/private/PROOFS.md#first-release).
func (q Totals) Bound(p Public) float64 {
	return p.NormBound * math.Sqrt(q.Count*q.Count+1+q.Pairs*q.Pairs/2) * (1 + 0x1p-48)
}

// Sensitivity is how far one record moves the sums, rounded up: Bound where it comes or goes. Two rows, of which one
// replaces the other, have parts whose inner product is not below Count² − m of NormBound², m = 1 or, where Pairs² is
// above 2, Pairs²/4 + 1/Pairs², and not below 0 in different cells, nor where no number is (Public.Cells):
// PROOFS.md#first-release.
func (q Totals) Sensitivity(p Public) float64 {
	bound := q.Bound(p)
	if p.Adjacency != privacy.ReplaceOne {
		return bound
	}
	m, square := 1.0, q.Pairs*q.Pairs
	switch {
	case p.Cells:
		m = 0
	case square > 2:
		m = square/4 + 1/square
	}
	count := max(0, q.Count-0x1p-18) // it is truncated to a multiple of what rows are multiples of
	opposed := max(0, m-count*count)
	return math.Sqrt(2*(bound*bound+p.NormBound*p.NormBound*opposed)) * (1 + 0x1p-48)
}

// Features is how many features an encoded row of a linear model has, with the intercept.
func (p Public) Features() int {
	if p.Classes > 2 || p.Classes == 2 && !p.OneMargin {
		return p.Dim / p.Classes
	}
	return p.Dim
}

// PairFeatures is schema.PairFeatures, the features of a pair.
const PairFeatures = 25

// FirstSlot is the feature, counted from 0, at which the places of pairs begin: they are the last before the intercept.
func (p Public) FirstSlot() int {
	first := p.Features() - PairFeatures*p.Slots
	if p.Intercept > 0 {
		first--
	}
	return first
}

// A Choice says how rows are encoded from now on. It is a function of releases and public numbers.
type Choice struct {
	Pairs [][2]int // of columns in Public.Numeric, each of which fills the next of the Slots
	Lines bool     // numeric columns keep their line alone: no bumps and waves
}

// Check says whether the rows of a run can be encoded so.
func (c Choice) Check(p Public) error {
	if !p.Totals {
		return errors.New("oracle: a choice of encoding is for runs with a first release")
	}
	if len(c.Pairs) > p.Slots {
		return fmt.Errorf("oracle: a choice of %d pairs; rows have places for %d", len(c.Pairs), p.Slots)
	}
	for k, pair := range c.Pairs {
		for _, i := range pair {
			if i < 0 || i >= len(p.Numeric) || p.Numeric[i].Features() == 0 || c.Lines {
				return fmt.Errorf("oracle: pair %d is of column %d; choose one of the %d numeric columns that have bumps or waves", k, i, len(p.Numeric))
			}
		}
		if pair[0] == pair[1] || slices.ContainsFunc(c.Pairs[:k], func(o [2]int) bool {
			return o == pair || o == [2]int{pair[1], pair[0]}
		}) {
			return fmt.Errorf("oracle: pair %d is of a column with itself, or chosen before; choose other columns", k)
		}
	}
	return nil
}

// WithSlots are the facts of rows that have places for n pairs instead.
func (p Public) WithSlots(n int) Public {
	p.Dim += p.Margins() * PairFeatures * (n - p.Slots)
	p.Slots = n
	return p
}

// Gone are the features, each from one on up to another and in their order, that are 0 in every row under a choice.
func (p Public) Gone(c Choice) (gone [][2]int) {
	for _, n := range p.Numeric {
		if c.Lines {
			gone = append(gone, [2]int{n.At + 1, n.At + 1 + n.Features()})
		}
	}
	if p.Slots > 0 {
		from := p.FirstSlot()
		gone = append(gone, [2]int{from + len(c.Pairs)*PairFeatures, from + p.Slots*PairFeatures})
	}
	return gone
}

// Narrow is w, of rows with all features, without the parameters of those that are Gone.
func (p Public) Narrow(w []float64, c Choice) (out []float64) {
	for row := range slices.Chunk(w, p.Features()) {
		next := 0
		for _, g := range p.Gone(c) {
			out, next = append(out, row[next:g[0]]...), g[1]
		}
		out = append(out, row[next:]...)
	}
	return out
}

// Chosen are the facts of rows without the features that are Gone.
func (p Public) Chosen(c Choice) Public {
	gone := 0
	for _, g := range p.Gone(c) {
		gone += g[1] - g[0]
	}
	p.Dim -= p.Margins() * gone
	p.Slots = len(c.Pairs)
	if c.Lines {
		p.Numeric = nil
	}
	return p
}

// A Refiner is an Oracle that can change the encoding of its rows, once. From then on every answer is about the rows so
// refined. Place k holds, for the k-th chosen pair, the products of schema.PairBumps bumps of either column, the first
// column's first bump first. Then the row is brought within NormBound as the schema has it. This costs nothing: the
// choice depends on releases alone, and no bound changes (oracle/private/PROOFS.md#refine).
type Refiner interface {
	Refine(ctx context.Context, c Choice) error
}

// ErrNotRefined is returned by Refine for an oracle that is no Refiner.
var ErrNotRefined = errors.New("oracle: this oracle cannot change the encoding of its rows")

// Refine is o's, where o is a Refiner.
func Refine(ctx context.Context, o Oracle, c Choice) error {
	r, ok := o.(Refiner)
	if !ok {
		return ErrNotRefined
	}
	return r.Refine(ctx, c)
}

// A Chooser is an oracle that notes the choice of the encoding.
type Chooser struct {
	Oracle
	Choice Choice
}

// Refine implements Refiner.
func (o *Chooser) Refine(ctx context.Context, c Choice) error {
	o.Choice = c
	return Refine(ctx, o.Oracle, c)
}
