package private

import (
	"fmt"
	"slices"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/sum"
)

// clips are the sums that have a clip rule.
var clips = []sum.Kind{sum.Gradients, sum.Rows, sum.Hessians, sum.Within}

// checkSum refuses what does not fit the model, and a unit that is not the Summer's own: two builds of Sotto could
// differ in it.
func checkSum(s *sum.Sum, c *scale, facts oracle.Public) error {
	dim := facts.Dim
	if s.Of == sum.Rows {
		dim = facts.Features()
	}
	switch {
	case s.Of == sum.CellTotals:
		if err := s.Totals.Fits(facts); err != nil {
			return err
		}
		if s.Numbers != s.Totals.Len(facts) {
			return fmt.Errorf("found %d numbers of a first release, which has %d", s.Numbers, s.Totals.Len(facts))
		}
	case s.Of != sum.Classes && len(s.W) != dim:
		return fmt.Errorf("found %d parameters; the model has %d", len(s.W), dim)
	case s.Of == sum.Decreases && len(s.Along) != dim:
		return fmt.Errorf("found a line in %d dimensions; the model has %d", len(s.Along), dim)
	case (s.Of == sum.Classes || s.Of == sum.Scores) && s.Classes != facts.Classes:
		return fmt.Errorf("found %d classes; the table has %d", s.Classes, facts.Classes)
	case slices.Contains(clips, s.Of) && s.Clip == nil:
		return fmt.Errorf("found %s without a clip rule", s.Of)
	case s.Of == sum.Wrong && s.Bound != 1, (s.Of == sum.Answers || s.Of == sum.Within) && s.Bound != 0.5:
		return fmt.Errorf("found a count of records with the bound %v", s.Bound)
	}
	if err := answered(s, facts); err != nil {
		return err
	}
	unit, err := c.of(s, facts)
	if err == nil && unit != s.Unit {
		err = fmt.Errorf("found sums in units of %v; the shard's are %v: both need the same version of Sotto", s.Unit, unit)
	}
	return err
}

// answered says whether a run with these facts asks for such a sum.
func answered(s *sum.Sum, facts oracle.Public) error {
	switch {
	case (s.Of == sum.Rows || s.Center != nil) && !facts.Centered:
		return fmt.Errorf("found %s, or a center, of a run whose rows are not centered", s.Of)
	case s.Center != nil && len(s.Center) != facts.Features():
		return fmt.Errorf("found a center of %d numbers; rows have %d features", len(s.Center), facts.Features())
	case s.Of == sum.Margins && !facts.Calibrated:
		return errNotCalibrated
	case s.Of == sum.Margins && len(s.At) != 2*facts.Margins()+1:
		return fmt.Errorf("found %d shifts, factors and offsets of %d margins", len(s.At), facts.Margins())
	case (s.Of == sum.Labels || s.Of == sum.Squares) && !facts.Shifted || s.Shift != 0 && !facts.Shifts():
		return fmt.Errorf("found %s, or shifted margins, of a run that does not shift them", s.Of)
	}
	return nil
}
