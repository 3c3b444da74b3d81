package oracle

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// Search asks which step of a Line is the first to lower the loss by as much as it should: the
// private backtracking of P2, Algorithm 1, over the sample's clipped decreases
//
//	q_k = Σ_i [ ℓ_i(w) − ℓ_i(w − η_k p) ]_{−c}^{c} − B·least_k,  c = Bound, B the sampler's public size
//
// by AboveThreshold with threshold 0. One record moves every q_k by c at most, up for one
// η_k and down for another, so the sensitivity is c under add-or-remove and 2c under replace-one.
type Search struct {
	Bound float64 // c, of one record's decrease, in units of the loss
	Noise mech.AboveThreshold
	Off   bool // lab: no noise, and with Bound 0 no clipping; of Noise only Max counts
}

// Event is one whole search, however early it ends.
func (q Search) Event() privacy.Event {
	if q.Off {
		return mech.None{}.Event()
	}
	return q.Noise.Event()
}

// Validate: the noise is valid and the bound is a sensitivity.
func (q Search) Validate() error {
	if q.Off {
		if q.Bound != 0 {
			if _, err := clip.Sensitivity(q.Bound, privacy.ReplaceOne); err != nil {
				return fmt.Errorf("oracle: a search's bound: %w", err)
			}
		}
		if q.Noise.Max < 1 {
			return fmt.Errorf("oracle: a search of at most %d steps; choose 1 or more", q.Noise.Max)
		}
		return nil
	}
	if err := q.Noise.Event().Validate(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if _, err := clip.Sensitivity(q.Bound, privacy.ReplaceOne); err != nil {
		return fmt.Errorf("oracle: a search's bound: %w", err)
	}
	return nil
}

// Line is the line of a search, all of it public: the points From − Steps[k]·Along, in order of
// trying, and the least mean decrease that each must bring.
type Line struct {
	From, Along  []float64
	Steps, Least []float64 // from one to Search.Noise.Max of them
}

// Check says whether q may search along l in a space of dim parameters. Nothing that it
// reads is private.
func (l Line) Check(q Search, dim int) error {
	switch {
	case len(l.From) != dim || len(l.Along) != dim:
		return fmt.Errorf("oracle: a line of %d and %d parameters, the model has %d", len(l.From), len(l.Along), dim)
	case len(l.Steps) != len(l.Least):
		return fmt.Errorf("oracle: %d steps along a line with %d least decreases", len(l.Steps), len(l.Least))
	case len(l.Steps) < 1 || len(l.Steps) > q.Noise.Max:
		return fmt.Errorf("oracle: %d steps along a line; choose 1 to %d, the search's most", len(l.Steps), q.Noise.Max)
	}
	for _, least := range l.Least {
		if math.IsNaN(least) {
			return errors.New("oracle: a least decrease that is not a number")
		}
	}
	return nil
}

// Found writes the outcome of a search as the one number of its release: k, or −1 for
// none. FoundIn reads it.
func Found(k int) float64 { return float64(k) }

// FoundIn reads the release of a search along a line of n steps.
func FoundIn(answer []float64, n int) (int, error) {
	if len(answer) != 1 || answer[0] != math.Trunc(answer[0]) || answer[0] < -1 || answer[0] >= float64(n) {
		return 0, fmt.Errorf("oracle: the record of a search along %d steps holds no outcome of one", n)
	}
	return int(answer[0]), nil
}
