package private

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// A Summer adds up clipped whole numbers over a sample of private records. Local, the table in this process, is one;
// rows on other machines (oracle/remote) and audits, which put canaries among the rows (run/audit), are others.
//
// A Summer charges nothing, adds no noise and releases nothing: what it returns is private. The oracle calls Draw once the
// charge is in the journal, and adds noise, once, to what Take returns. Sums are exact modulo 2⁶⁴, so an oracle
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

// Own draws the sample and returns the records from number from on, n of them at most, numbered from 0, in dst's memory.
// all says that all are drawn.
func (d *Draw) Own(dst []int32, from, n int, src *noise.Source) (own []int32, all bool) {
	d.Key.Reset(src)
	rows, all := d.Sampler.Draw(dst[:0], d.Total, src)
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
	Gradients  Kind = "gradients"  // clipped gradients at W
	Hessians   Kind = "curvature"  // clipped Hessians at W: the upper triangle, row after row
	Decreases  Kind = "decreases"  // of the loss from W to W + step·Along, for each step, within ±Bound
	Neighbours Kind = "neighbours" // decreases from W by one parameter up (2j) or down (2j + 1) by Step
	Losses     Kind = "losses"     // at W, within [0, Bound]
	Classes    Kind = "classes"    // records of each class
)

// A Sum says what to add up over a sample. All of it is public.
type Sum struct {
	Of Kind
	// Unit is what the numbers are multiples of; of Hessians, the unit of a record's vector, whose square that is. The
	// sensitivity is stated in it, so a Summer refuses another one than its own. 0: plain float64s, for Local in the lab only.
	Unit         float64
	Clip         clip.Rule           // of gradients and Hessians
	Augmentation oracle.Augmentation // of gradients
	Bound        float64             // of losses and decreases
	W            []float64
	Along        []float64
	Steps        []float64
	Step         float64
	Classes      int
	Again        bool // the last Sum was along the same line
}

// Len is how many numbers the sum has.
func (s *Sum) Len() int {
	switch s.Of {
	case Gradients:
		return len(s.W)
	case Hessians:
		return oracle.HessLen(len(s.W))
	case Decreases:
		return len(s.Steps)
	case Neighbours:
		return 2 * len(s.W)
	case Classes:
		return s.Classes
	}
	return 1
}

// check refuses what does not fit the model, and a unit that is not the Summer's own: two builds of Sotto could differ in it.
func (s *Sum) check(c *scale, facts oracle.Public) error {
	switch dim := facts.Dim; {
	case s.Of != Classes && len(s.W) != dim:
		return fmt.Errorf("found %d parameters; the model has %d", len(s.W), dim)
	case s.Of == Decreases && len(s.Along) != dim:
		return fmt.Errorf("found a line in %d dimensions; the model has %d", len(s.Along), dim)
	case s.Of == Classes && s.Classes != facts.Classes:
		return fmt.Errorf("found %d classes; the table has %d", s.Classes, facts.Classes)
	case (s.Of == Gradients || s.Of == Hessians) && s.Clip == nil:
		return fmt.Errorf("found %s without a clip rule", s.Of)
	}
	unit, err := c.of(s, facts)
	if err == nil && unit != s.Unit {
		err = fmt.Errorf("found sums in units of %v; the shard's are %v: both need the same version of Sotto", s.Unit, unit)
	}
	return err
}

// scale is what the units of sums follow from, all of it public: what the schema and the model bound.
type scale struct {
	rowNorm float64 // a coefficient is at most the clip bound over this: the table's bound on its rows, or 1 where the model scales them
	rowUnit float64 // what AddGrad's sums are multiples of, over its unit
	bits    int     // of a coefficient
	spare   int     // binary digits of a row count up to which it has them
	network bool
}

func scaleOf(t *data.Table, m model.Model) scale {
	if unit := m.Facts().Unit; unit > 0 {
		return scale{1, unit, netBits, netSpare, true}
	}
	return scale{t.NormBound, t.Unit, coefBits, spareRows, false}
}

// of is the public unit of a sum.
func (c *scale) of(s *Sum, facts oracle.Public) (float64, error) {
	switch s.Of {
	case Gradients:
		return c.unitOf(s.Clip.Bound(), facts.Rows)
	case Hessians:
		return rootUnit(s.Clip.Bound(), facts.Rows), nil
	case Classes:
		if facts.UnitRows > 0 { // rows count as shares of a record
			return fallUnit(1), nil
		}
		return 1, nil
	case Decreases, Neighbours, Losses:
		if !(s.Bound > 0) {
			return 0, fmt.Errorf("found %s without a bound", s.Of)
		}
		return fallUnit(s.Bound), nil
	}
	return 0, fmt.Errorf("found no such sum: %q", s.Of)
}

// unitOf is the public unit of a sum of gradients: a coefficient's times a feature's.
func (c *scale) unitOf(bound float64, rows int) (float64, error) {
	unit := coefUnit(bound, c.rowNorm, rows, c.bits, c.spare) * c.rowUnit
	// Far inside the range of float64, so that no product or quotient leaves it.
	if !inRange(unit) {
		return 0, fmt.Errorf("private: the clip bound %v is out of range for rows of norm up to %v", bound, c.rowNorm)
	}
	return unit, nil
}

func inRange(unit float64) bool { return unit >= 0x1p-900 && unit <= 0x1p900 }

// coefUnit is the public power of two to which coefficients are truncated. It is
// coarser for very many rows, so that below the nominal row count the count of a
// coordinate fits an int64 even if every record pulls the same way. Above it, counts
// wrap around, which is no matter of privacy: adding modulo 2⁶⁴ is exact in any
// order, and one record still moves a count by as much as before, modulo 2⁶⁴.
func coefUnit(bound, rowNorm float64, rows, bits, spare int) float64 {
	_, exp := math.Frexp(bound / rowNorm)
	bits -= max(0, int(math.Ceil(math.Log2(float64(rows))))-spare)
	return math.Ldexp(1, exp-1-bits)
}
