package mech

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Chooser is a mechanism that chooses among candidates by private scores: the higher the
// score, the likelier the choice.
type Chooser interface {
	// Event states what one choice releases.
	Event() privacy.Event
	// Check says whether Choose would accept grid and sens.
	Check(grid, sens float64) error
	// Choose returns the number of a candidate. Scores are in counts of grid; sens is the most by
	// which one score moves between neighboring tables, with the slack of its rounding; grid
	// and sens are as in Additive. How many candidates there are is public. It is an error if there is none, or
	// the mechanism's own parameter, grid or sens is not allowed; then nothing is drawn. Scores
	// beyond ±2⁶² count as ±2⁶².
	//
	// The law is exact for the counts given, up to noise.SamplerDistance for each coin
	// tossed, of which a choice among k takes k or fewer on average. How many it takes
	// depends on the scores: time is not covered by the guarantee.
	Choose(scores []int64, grid, sens float64, src *noise.Source) (int, error)
}

var _, _ Chooser = Select{}, PermuteAndFlip{}

// Select is the exponential mechanism (McSherry, Talwar 2007): candidate i is chosen with
// probability in proportion to exp(Epsilon·sᵢ/(2·sens)), as is the largest of scores with Gumbel
// noise of scale 2·sens/Epsilon. The log odds between any two candidates change by at most
// Epsilon from a table to its neighbor: bounded range (R19).
//
// Monotone says that between any two neighbors all scores move in one direction, so that
// the difference of two moves by sens at most and not by 2·sens; then the exponent is
// Epsilon·sᵢ/sens. It is the caller's promise, about a public formula: counts under
// add-or-remove are monotone; nothing under replace-one is. Epsilon is above 0; the zero
// value is invalid.
type Select struct {
	Epsilon  float64
	Monotone bool
}

// Event is privacy.Select of the same Epsilon.
func (m Select) Event() privacy.Event { return privacy.Select{Epsilon: m.Epsilon} }

// Check says whether Choose would accept grid and sens.
func (m Select) Check(grid, sens float64) error {
	_, err := rate(m.Event().Validate(), m.Epsilon, m.Monotone, grid, sens)
	return err
}

// Choose proposes candidates at random, each as likely as the others, and takes the first
// whose coin shows heads, with probability exp(−rate·(best − sᵢ)).
func (m Select) Choose(scores []int64, grid, sens float64, src *noise.Source) (int, error) {
	r, best, err := start(m.Event().Validate(), m.Epsilon, m.Monotone, scores, grid, sens)
	if err != nil {
		return 0, err
	}
	for {
		i := int(src.Below(uint64(len(scores))))
		if src.Decay(r, best-clamp(scores[i])) {
			return i, nil
		}
	}
}

// PermuteAndFlip chooses as McKenna and Sheldon 2020 do: candidates in random order, each
// is taken with probability exp(−Epsilon·(best − sᵢ)/(2·sens)). The same law is that of the
// largest score with exponential noise of mean 2·sens/Epsilon added (Ding, Kifer, Steinke,
// Wang, Xiao, Zhang 2021). It never errs more than Select of the same Epsilon, but it is merely
// Epsilon-private and not of bounded range (R19). Monotone is as in Select.
type PermuteAndFlip struct {
	Epsilon  float64
	Monotone bool
}

// Event is privacy.PureDP of the same Epsilon.
func (m PermuteAndFlip) Event() privacy.Event { return privacy.PureDP{Epsilon: m.Epsilon} }

// Check says whether Choose would accept grid and sens.
func (m PermuteAndFlip) Check(grid, sens float64) error {
	_, err := rate(m.Event().Validate(), m.Epsilon, m.Monotone, grid, sens)
	return err
}

// Choose draws the order as it goes: a candidate that was not drawn yet, then its coin. The
// best one's coin always shows heads.
func (m PermuteAndFlip) Choose(scores []int64, grid, sens float64, src *noise.Source) (int, error) {
	r, best, err := start(m.Event().Validate(), m.Epsilon, m.Monotone, scores, grid, sens)
	if err != nil {
		return 0, err
	}
	var room [64]int32
	left := room[:0]
	for i := range scores {
		left = append(left, int32(i))
	}
	for {
		j := src.Below(uint64(len(left)))
		i := left[j]
		if src.Decay(r, best-clamp(scores[i])) {
			return int(i), nil
		}
		last := len(left) - 1
		left[j], left = left[last], left[:last]
	}
}

// rate returns epsilon/(2·sens), or epsilon/sens, for each count of grid, rounded down, so
// that no rounding makes the choice sharper than its event claims: the quotient errs by
// half a unit in the last place at most, and one unit is taken off.
func rate(invalid error, epsilon float64, monotone bool, grid, sens float64) (float64, error) {
	if invalid != nil {
		return 0, invalid
	}
	steps, err := gridSteps(grid, sens)
	if err != nil {
		return 0, err
	}
	span := steps // of the difference of two scores
	if !monotone {
		span *= 2
	}
	r := math.Nextafter(epsilon/span, 0)
	if !(r > 0) || math.IsInf(r, 1) {
		return 0, fmt.Errorf("mech: a choice at epsilon %v with a sensitivity of %v grid steps does not fit", epsilon, steps)
	}
	return r, nil
}

// start returns the rate of a choice and the highest score.
func start(invalid error, epsilon float64, monotone bool, scores []int64,
	grid, sens float64) (r float64, best int64, err error) {
	if r, err = rate(invalid, epsilon, monotone, grid, sens); err != nil {
		return 0, 0, err
	}
	if len(scores) == 0 || len(scores) > math.MaxInt32 {
		return 0, 0, errors.New("mech: a choice needs from 1 to 2³¹−1 candidates")
	}
	best = -limit
	for _, s := range scores {
		best = max(best, clamp(s))
	}
	return r, best, nil
}
