package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/sottodp/sotto/run"
)

// A Figure sums up one number over the trainings of a cell that did not diverge.
type Figure struct {
	Mean, SD, Median float64 // NaN without a training; SD is the sample's, NaN for fewer than two
	N                int
}

func figure(values []float64) Figure {
	f := Figure{Mean: math.NaN(), SD: math.NaN(), Median: math.NaN(), N: len(values)}
	if f.N == 0 {
		return f
	}
	sorted := slices.Sorted(slices.Values(values))
	f.Median = (sorted[(f.N-1)/2] + sorted[f.N/2]) / 2
	f.Mean = 0
	for _, v := range values {
		f.Mean += v / float64(f.N)
	}
	if f.N > 1 {
		square := 0.0
		for _, v := range values {
			square += (v - f.Mean) * (v - f.Mean)
		}
		f.SD = math.Sqrt(square / float64(f.N-1))
	}
	return f
}

// Score sums up accuracy, or the root of the mean squared error.
func (c *Cell) Score() Figure {
	return c.figure(func(r Result) *float64 { return r.Score })
}

// Objective sums up the mean loss plus regularizer.
func (c *Cell) Objective() Figure {
	return c.figure(func(r Result) *float64 { return r.Objective })
}

// Seconds sums up the time of training.
func (c *Cell) Seconds() Figure {
	return c.figure(func(r Result) *float64 { return &r.Seconds })
}

func (c *Cell) figure(of func(Result) *float64) Figure {
	var values []float64
	for _, r := range c.Results {
		if v := of(r); v != nil {
			values = append(values, *v)
		}
	}
	return figure(values)
}

// Diverged counts the trainings that ended without finite parameters.
func (c *Cell) Diverged() int {
	n := 0
	for _, r := range c.Results {
		if r.Outcome == run.Diverged {
			n++
		}
	}
	return n
}

// Measure is what Score measures.
func (c *Cell) Measure() string {
	if c.table.schema.Classes() == 0 {
		return "rmse"
	}
	return "accuracy"
}

// order sorts results in the order of a sequential comparison.
func (c *Cell) order() {
	slices.SortFunc(c.Results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Fold, b.Fold))
	})
}
