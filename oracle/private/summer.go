package private

import (
	"context"
	"fmt"
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

// clips are the sums that have a clip rule.
var clips = []Kind{Gradients, Rows, Hessians, Within}

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

// check refuses what does not fit the model, and a unit that is not the Summer's own: two builds of Sotto could differ
// in it.
func (s *Sum) check(c *scale, facts oracle.Public) error {
	switch dim := facts.Dim; {
	case s.Of == CellTotals:
		if err := s.Totals.Fits(facts); err != nil {
			return err
		}
		if s.Numbers != s.Totals.Len(facts) {
			return fmt.Errorf("found %d numbers of a first release, which has %d", s.Numbers, s.Totals.Len(facts))
		}
	case s.Of != Classes && len(s.W) != dim:
		return fmt.Errorf("found %d parameters; the model has %d", len(s.W), dim)
	case s.Of == Decreases && len(s.Along) != dim:
		return fmt.Errorf("found a line in %d dimensions; the model has %d", len(s.Along), dim)
	case (s.Of == Classes || s.Of == Scores) && s.Classes != facts.Classes:
		return fmt.Errorf("found %d classes; the table has %d", s.Classes, facts.Classes)
	case slices.Contains(clips, s.Of) && s.Clip == nil:
		return fmt.Errorf("found %s without a clip rule", s.Of)
	case s.Of == Wrong && s.Bound != 1, (s.Of == Answers || s.Of == Within) && s.Bound != 0.5:
		return fmt.Errorf("found a count of records with the bound %v", s.Bound)
	}
	if err := s.answered(facts); err != nil {
		return err
	}
	unit, err := c.of(s, facts)
	if err == nil && unit != s.Unit {
		err = fmt.Errorf("found sums in units of %v; the shard's are %v: both need the same version of Sotto", s.Unit, unit)
	}
	return err
}

// answered says whether a run with these facts asks for such a sum.
func (s *Sum) answered(facts oracle.Public) error {
	switch {
	case (s.Of == Rows || s.Center != nil) && !facts.Centered:
		return fmt.Errorf("found %s, or a center, of a run whose rows are not centered", s.Of)
	case s.Of == Margins && !facts.Calibrated:
		return errNotCalibrated
	case s.Of == Margins && len(s.At) != 2*facts.Margins()+1:
		return fmt.Errorf("found %d shifts, factors and offsets of %d margins", len(s.At), facts.Margins())
	case (s.Of == Labels || s.Of == Squares) && !facts.Shifted || s.Shift != 0 && !facts.Shifts():
		return fmt.Errorf("found %s, or shifted margins, of a run that does not shift them", s.Of)
	}
	return nil
}
