// Package describe computes private statistics of a table before a model is trained: histograms of all columns, counts
// of missing values, means and quantiles, and on request tables of two columns, each figure with an interval.
//
// All of it follows from one charged release, the query of a run's first release (oracle.Totals), over rows that are
// encoded as cells of histograms (schema.ForHistograms). What is computed from the noisy counts costs nothing more.
package describe

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

// A Plan says what is asked of a table. All of it is public.
type Plan struct {
	Full    *schema.Schema // of the table, as a person wrote it
	Cells   *schema.Schema // that rows are encoded by
	Facts   oracle.Public
	Query   oracle.Totals
	Bins    int
	Pairs   []schema.Pair
	Epsilon float64 // of the budget
}

// New plans a description with noise that a person or a file names; Bins 0 leaves their number to the plan.
func New(s *schema.Schema, bins int, pairs []schema.Pair, adjacency privacy.Adjacency, noise float64) (Plan, error) {
	p := Plan{Full: s, Bins: bins, Pairs: pairs}
	switch {
	case s.UnitRows > 0:
		return p, fmt.Errorf("unit: found %d rows of a %s; histograms count rows, and have no proof for a unit of several rows; describe a table with one row for each %s", s.UnitRows, s.Unit, s.Unit)
	case s.Rows < 1:
		return p, fmt.Errorf("%[1]s is missing; write about how many %[1]s the table has (a public number)", s.Counted())
	case bins != 0 && (bins < 2 || bins > schema.MostBins):
		return p, fmt.Errorf("bins: found %d; choose a number from 2 to %d", bins, schema.MostBins)
	}
	some := bins
	if bins == 0 { // the noise does not depend on their number
		some = binsOf[0]
	}
	var err error
	if p.Cells, err = s.ForHistograms(some, pairs); err != nil {
		return p, err
	}
	p.set(adjacency, noise)
	if bins == 0 {
		if p.Bins = p.chooseBins(); p.Bins != some {
			if p.Cells, err = s.ForHistograms(p.Bins, pairs); err != nil {
				return p, err
			}
			p.set(adjacency, noise)
		}
	}
	return p, errors.Join(p.Query.Validate(), p.Query.Fits(p.Facts))
}

// set sets facts and query.
func (p *Plan) set(adjacency privacy.Adjacency, noise float64) {
	p.Facts = oracle.Public{Dim: p.Cells.Dim(), Rows: p.Cells.Rows, Adjacency: adjacency, NormBound: p.Cells.RowNorm,
		Totals: true, Cells: true}
	p.Query = oracle.Totals{Cells: 1, Noise: mech.Gaussian{Sigma: noise}}
}

// Calibrate is New with the least noise that the budget covers.
func Calibrate(s *schema.Schema, bins int, pairs []schema.Pair, b privacy.Budget) (Plan, error) {
	if b.Delta == 0 {
		return Plan{}, errors.New("delta: found 0; write a δ above 0, as the noise is Gaussian")
	}
	sigma, err := account.Calibrate(account.Best{}, b, func(sigma float64) privacy.Event {
		return oracle.Public{Adjacency: b.Adjacency}.Cost(sample.Full{},
			[]oracle.Query{oracle.Totals{Cells: 1, Noise: mech.Gaussian{Sigma: sigma}}})
	})
	if err != nil {
		return Plan{}, err
	}
	p, err := New(s, bins, pairs, b.Adjacency, sigma)
	p.Epsilon = b.Epsilon
	return p, err
}

// Event is what the release costs.
func (p Plan) Event() privacy.Event { return p.Facts.Cost(sample.Full{}, []oracle.Query{p.Query}) }

// slack is how much the noise may be above the deviation that follows from the query, by the grid on which it is
// released (privacy/mech.OnGrid).
const slack = 1 + 0x1p-10

// sigma is the noise multiplier.
func (p Plan) sigma() float64 { return p.Query.Noise.(mech.Gaussian).Sigma }

// deviation is the standard deviation of the noise in a count, rounded up.
func (p Plan) deviation() float64 {
	return p.sigma() * p.Query.Sensitivity(p.Facts) * slack
}

// binsOf are the numbers of bins to choose from. The most is taken at which equal bins would each hold seldom times the
// deviation of the noise.
var binsOf = []int{4, 5, 8, 10, 16, 20, 25, 32, 40, 50}

const seldom = 8

// chooseBins is the number of bins of a column of numbers, by public numbers alone.
func (p Plan) chooseBins() int {
	n := binsOf[0]
	for _, bins := range binsOf {
		if float64(p.Facts.Rows) >= seldom*p.deviation()*float64(bins) {
			n = bins
		}
	}
	return n
}

// Of is the plan of a description.
func Of(e *runlog.Description) (Plan, error) {
	s, err := schema.FromJSON(e.Schema)
	if err != nil {
		return Plan{}, err
	}
	if s.Dataset != e.Dataset || s.Unit != e.Unit || s.Rows != e.Rows {
		return Plan{}, errors.New("schema: found another dataset, unit or number of rows than the record names")
	}
	if !(e.Noise > 0) || math.IsInf(e.Noise, 0) {
		return Plan{}, fmt.Errorf("noise_multiplier: found %v; expected a number above 0", e.Noise)
	}
	if e.Bins < 2 {
		return Plan{}, fmt.Errorf("bins: found %d; expected 2 or more", e.Bins)
	}
	var pairs []schema.Pair
	for _, p := range e.Pairs {
		pairs = append(pairs, schema.Pair{A: p[0], B: p[1]})
	}
	p, err := New(s, e.Bins, pairs, e.Budget.Adjacency, e.Noise)
	p.Epsilon = e.Budget.Epsilon
	return p, err
}

// warnings say what a person should know of a plan before it is charged, from public numbers.
func (p Plan) warnings() (w []string) {
	if share := 1.96 * p.deviation() / float64(p.Facts.Rows); share > 0.1 {
		w = append(w, fmt.Sprintf("the noise is large for about %d %s: a count is known to ± %.0f, %.0f %% of them; more ε, fewer columns or pairs, or more %s help",
			p.Facts.Rows, p.Full.Counted(), math.Ceil(1.96*p.deviation()), math.Ceil(100*share), p.Full.Counted()))
	}
	return w
}

// inputError is a mistake in what a person gave.
func inputError(where, format string, args ...any) error {
	return &run.InputError{Where: where, Err: fmt.Errorf(format, args...)}
}
