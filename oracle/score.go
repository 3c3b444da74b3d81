package oracle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// Score asks how well predictions at given parameters fit the labels: noisy numbers of records in the cells of a public
// grid, or of a numeric label noisy sums of clipped errors. It is asked of all records, and its answer is not divided.
//
//	two classes    records of each class in bins of the probability of the second class
//	more classes   records of each class by the class that is predicted, or, with Bins, records in bins of the
//	               probability of the class that is theirs
//	numeric label  the ErrorSums
//
// A record is in one cell, so it moves the numbers by 1 in the ℓ2 norm, and by √2 where another takes its place. See
// Cells for their order, and oracle/private/PROOFS.md, scores.
type Score struct {
	Noise mech.Gaussian `json:"noise"`
	// Bins is the number of edges between bins on each side of the probability ½: edge k, from −Bins to Bins, has the
	// log-odds k·Step. 0: the only edge is the one at which the prediction of two classes changes, which is always one.
	Bins int     `json:"bins,omitempty"`
	Step float64 `json:"step,omitempty"`
	// Threshold is the probability from which on Class is predicted, of two classes; 0: the likelier one is.
	Class     int     `json:"class,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	// Low and High bound a numeric label, and Error is where errors are clipped.
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Error float64 `json:"error,omitempty"`
	// Group splits all cells by a public column; of no levels, nothing is split.
	Group Levels `json:"group,omitzero"`
}

// Levels are the features of an encoded row that are one public column's levels, of which at most one is not 0.
type Levels struct {
	First int `json:"first"`
	Count int `json:"count"`
}

// Limits of a score query.
const (
	mostBins  = 64
	mostCells = 1 << 20
)

// ErrorSums is how many sums there are of a numeric label: of 1, a, a², a⁴, u and u², where a is the absolute error,
// clipped to Error, over Error, and u from 0 to 1 is the label's place between Low and High.
const ErrorSums = 6

// ErrorWeights are what the sums are multiplied by before they get noise, and divided by after it: the squared error's
// is the largest, as it is the smallest of them.
var ErrorWeights = [ErrorSums]float64{0.5, 1, 2, 0.5, 1, 1}

// errorSquare is the sum of their squares.
const errorSquare = 0.25 + 1 + 4 + 0.25 + 1 + 1

// Event is the event of the noise.
func (q Score) Event() privacy.Event { return q.Noise.Event() }

// Validate checks noise, bins, threshold and bounds.
func (q Score) Validate() error {
	if err := q.Noise.Event().Validate(); err != nil {
		return fmt.Errorf("oracle: a score needs a noise: %w", err)
	}
	switch {
	case q.Bins < 0 || q.Bins > mostBins:
		return fmt.Errorf("oracle: a score of %d edges on each side; choose 0 to %d", q.Bins, mostBins)
	case q.Bins > 0 && !(q.Step > 0 && q.Step*float64(q.Bins) <= 30), q.Bins == 0 && q.Step != 0:
		return fmt.Errorf("oracle: a score of %d edges with the step %v; choose a step above 0 that ends at the log-odds 30",
			q.Bins, q.Step)
	case !(q.Threshold >= 0 && q.Threshold <= 1) || q.Class < 0 || q.Class > 1:
		return fmt.Errorf("oracle: a score with the threshold %v of class %d; choose a probability, of one of two classes",
			q.Threshold, q.Class)
	case q.Group.First < 0 || q.Group.Count < 0:
		return fmt.Errorf("oracle: a score by %d levels from feature %d; both must be 0 or more", q.Group.Count,
			q.Group.First)
	case q.Error == 0 && (q.Low != 0 || q.High != 0):
		return errors.New("oracle: a score with bounds of a numeric label, but none of errors")
	case q.Error != 0 && !(q.Error > 0 && q.High > q.Low && q.Error < math.Inf(1) && q.High-q.Low < math.Inf(1)):
		return fmt.Errorf("oracle: a score of errors up to %v of a label from %v to %v; choose finite ranges above 0",
			q.Error, q.Low, q.High)
	case q.Error != 0 && (q.Bins != 0 || q.Threshold != 0):
		return errors.New("oracle: a score of errors has no bins and no threshold")
	}
	return nil
}

// Fits checks the query against the classes of the label, 0 of a numeric one.
func (q Score) Fits(classes int) error {
	switch {
	case (classes == 0) != (q.Error != 0):
		return fmt.Errorf("oracle: a score of errors is for a numeric label, one of cells for classes; found %d classes",
			classes)
	case q.Threshold != 0 && classes != 2:
		return fmt.Errorf("oracle: a score with a threshold is for two classes; found %d", classes)
	case float64(1+q.Group.Count)*float64(max(1, classes))*float64(max(2, classes, 2*q.Bins+3)) > mostCells:
		return fmt.Errorf("oracle: a score of more than %d cells", mostCells)
	}
	return nil
}

// Edges are the edges between bins, ascending, and the number of that at which the prediction of two classes changes.
// Bin k is of the probabilities from edge k − 1 on and below edge k; that edge, which thresholds of either class put on
// either side, is decided as predictions are. Without bins of more classes there are none.
func (q Score) Edges(classes int) (edges []float64, decision int) {
	if q.Bins > 0 {
		for k := -q.Bins; k <= q.Bins; k++ {
			edges = append(edges, 1/(1+math.Exp(-float64(k)*q.Step)))
		}
	}
	if classes != 2 {
		return edges, -1
	}
	at := 0.5
	switch {
	case q.Threshold != 0 && q.Class == 1:
		at = q.Threshold
	case q.Threshold != 0:
		at = 1 - q.Threshold
	}
	decision = sort.SearchFloat64s(edges, at)
	if decision == len(edges) || edges[decision] != at {
		edges = slices.Insert(edges, decision, at)
	}
	return edges, decision
}

// Cells is how many numbers the answer has of each group, the last of which has the records of no level. They are, for
// two classes and for more without bins, those of class 0, bin after bin or predicted class after predicted class, then
// those of class 1 and so on; with bins of more classes, those of each bin.
func (q Score) Cells(classes int) int {
	edges, _ := q.Edges(classes)
	switch {
	case classes == 0:
		return ErrorSums
	case classes == 2:
		return 2 * (len(edges) + 1)
	case q.Bins > 0:
		return len(edges) + 1
	}
	return classes * classes
}

// Len is how many numbers the answer has.
func (q Score) Len(classes int) int {
	groups := 1
	if q.Group.Count > 0 {
		groups += q.Group.Count
	}
	return groups * q.Cells(classes)
}

// Sensitivity is how far one record moves the numbers before noise, weighted where they are sums of errors, in the ℓ2
// norm.
func (q Score) Sensitivity(classes int, adj privacy.Adjacency) float64 {
	square := 1.0
	if classes == 0 {
		square = errorSquare
	}
	// Another record in a record's place may be in another cell. Errors without groups stay in one box.
	if adj == privacy.ReplaceOne && (classes > 0 || q.Group.Count > 0) {
		square *= 2
	}
	if square == 1 {
		return 1
	}
	return math.Nextafter(math.Sqrt(square), math.Inf(1))
}

// Deviation bounds the standard deviation of the noise in number k of the answer, its rounding included.
func (q Score) Deviation(k, classes int, adj privacy.Adjacency) float64 {
	s := math.Hypot(q.Noise.Sigma*q.Sensitivity(classes, adj), 0.5)
	if classes == 0 {
		return s / ErrorWeights[k%ErrorSums]
	}
	return s
}
