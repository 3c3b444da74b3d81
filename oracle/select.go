package oracle

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// Select asks for the noisy choice of one of several candidates, the better the likelier, as step
// sizes are chosen by DP-AGD and directions by PrivGene. The score of candidate k is
//
//	Σ_i [ ℓ_i(w) − ℓ_i(w_k) ]_{−c}^{c} − B·least_k,  c = Bound, B the sampler's public size
//
// or, among Classes, the number of the records of class k. The number of candidates does not matter to the cost.
//
// One record moves a sum of decreases by c at most, up for one candidate and down for
// another, so the sensitivity is c under add-or-remove and 2c under replace-one, and twice that between two
// candidates. A count moves by 1, under add-or-remove in one direction only.
type Select struct {
	Epsilon float64 // of one choice
	Bound   float64 // c, of one record's decrease, in units of the loss; 0 where classes are counted
	Flip    bool    // by permute-and-flip, which errs less often for the same pure ε, but is not of bounded range (R19)
	Off     bool    // lab: the best is chosen, and with Bound 0 nothing is clipped; Epsilon does not count
}

// Chooser is the mechanism. Only the private oracle knows what the scores are made of, and sets monotone: all of
// them move in one direction between neighbors.
func (q Select) Chooser(monotone bool) mech.Chooser {
	if q.Flip {
		return mech.PermuteAndFlip{Epsilon: q.Epsilon, Monotone: monotone}
	}
	return mech.Select{Epsilon: q.Epsilon, Monotone: monotone}
}

// Event is one choice.
func (q Select) Event() privacy.Event {
	if q.Off {
		return mech.None{}.Event()
	}
	return q.Chooser(false).Event()
}

// Validate: ε is one, and the bound is 0 or a sensitivity.
func (q Select) Validate() error {
	if q.Bound != 0 {
		if _, err := clip.Sensitivity(q.Bound, privacy.ReplaceOne); err != nil {
			return fmt.Errorf("oracle: a choice's bound: %w", err)
		}
	}
	if err := q.Event().Validate(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// Candidates are what a Select chooses among, all of it public: a Line, Neighbors or Classes.
type Candidates interface{ candidates(pub Public) int }

// candidates are the points of the line, with what each must bring. A step of 0 is to stay.
func (l Line) candidates(Public) int { return len(l.Steps) }

// Neighbors are the points that one parameter's move away from From: candidate 0 is to stay, 1 + 2j is
// From + Step·e_j, and 2 + 2j is From − Step·e_j.
type Neighbors struct {
	From  []float64
	Step  float64
	Least []float64 // mean decrease that each must bring; nil: none
}

func (n Neighbors) candidates(pub Public) int { return 1 + 2*pub.Dim }

// Move adds to w what leads from From to candidate k.
func (n Neighbors) Move(w []float64, k int) {
	switch {
	case k == 0:
	case k%2 == 1:
		w[(k-1)/2] += n.Step
	default:
		w[(k-1)/2] -= n.Step
	}
}

// Classes are the classes of the label; a record of a class that does not exist counts for none.
type Classes struct{}

func (Classes) candidates(pub Public) int { return pub.Classes }

// CheckChoice says whether q may choose among the candidates, and how many there are. Nothing that it
// reads is private.
func CheckChoice(q Select, among Candidates, pub Public) (n int, err error) {
	var from, least []float64
	switch c := among.(type) {
	case Line:
		if len(c.Along) != pub.Dim || len(c.Steps) != len(c.Least) {
			return 0, fmt.Errorf("oracle: a line of %d parameters with %d steps and %d least decreases; the model has %d parameters", len(c.Along), len(c.Steps), len(c.Least), pub.Dim)
		}
		from, least = c.From, c.Least
	case Neighbors:
		if c.Least != nil && len(c.Least) != 1+2*pub.Dim {
			return 0, fmt.Errorf("oracle: %d neighbors with %d least decreases", 1+2*pub.Dim, len(c.Least))
		}
		from, least = c.From, c.Least
	case Classes:
		if q.Bound != 0 {
			return 0, errors.New("oracle: classes are counted, but the choice has a bound on decreases")
		}
		if pub.Classes < 1 {
			return 0, errors.New("oracle: a choice among classes, but the label is numeric")
		}
		return pub.Classes, nil
	default:
		return 0, fmt.Errorf("oracle: a choice among %T", among)
	}
	if len(from) != pub.Dim {
		return 0, fmt.Errorf("oracle: a choice from %d parameters, the model has %d", len(from), pub.Dim)
	}
	if q.Bound == 0 && !q.Off {
		return 0, errors.New("oracle: a choice by decreases of the loss needs a bound")
	}
	for _, v := range least {
		if math.IsNaN(v) {
			return 0, errors.New("oracle: a least decrease that is not a number")
		}
	}
	if n = among.candidates(pub); n < 1 {
		return 0, errors.New("oracle: a choice among no candidates")
	}
	return n, nil
}

// Chosen reads the release of a choice among n candidates: the number of one. Found writes it.
func Chosen(answer []float64, n int) (int, error) {
	k, err := FoundIn(answer, n)
	if err != nil || k < 0 {
		return 0, fmt.Errorf("oracle: the record of a choice among %d holds no outcome of one", n)
	}
	return k, nil
}
