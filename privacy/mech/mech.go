// Package mech holds the mechanisms: noise added to a sum (Gaussian, Laplace,
// SymmetricGaussian) or to a part of one (Share), a search that tells which query first reaches a threshold
// (AboveThreshold), and choices among candidates (Select, PermuteAndFlip). A mechanism both
// acts and states its event, from the same fields: what is claimed is what is done. What
// each claim rests on stands in PROOFS.md beside the code; audit_test.go puts each to the
// test, and mechanisms with planted faults beside it.
//
// Values are int64 counts of a public power-of-two grid (Grid). Noise is rounded to the
// same grid and added exactly, and choices are drawn exactly from the law of the counts
// (R15; package noise says why the theorems about continuous noise then hold). The
// sensitivity that a mechanism is given must include what rounding to the grid adds to it:
//
//	sum, clip bound C        OnGrid(clip.Sensitivity(C, adjacency), grid, dim, norm)
//	symmetric d×d matrix     its Frobenius sensitivity + Slack(grid, d·d, 2)
//	query of a search        its sensitivity + Slack(grid, 1, 1), or without slack where
//	                         each record's part is a whole number of grid steps
//	score of a candidate     its sensitivity + Slack(grid, 1, 1)
package mech

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Additive is a mechanism that adds noise to a sum of known sensitivity.
type Additive interface {
	// Event states what one use of the mechanism releases.
	Event() privacy.Event
	// Norm says in which norm the sensitivity is measured: 1 or 2.
	Norm() int
	// Check says whether Add would accept grid and sens.
	Check(grid, sens float64) error
	// Add adds noise to v, a sum in counts of grid, whose sensitivity in that norm is
	// sens; grid and sens are in the data's unit. It is an error if the mechanism's
	// own parameter or sens is not above 0 and finite, grid is not a power of two, grid is
	// above sens, or the noise does not fit int64 (its scale is above 2⁵⁴ counts);
	// then v is as it was.
	Add(v []int64, grid, sens float64, src *noise.Source) error
}

var _, _, _ Additive = Gaussian{}, Laplace{}, None{}

// Gaussian adds normal noise of standard deviation Sigma·sens, where sens is the ℓ2
// sensitivity; Sigma is the noise multiplier (R8), above 0 and finite. The zero value is
// invalid: there is no default noise level.
type Gaussian struct{ Sigma float64 }

// Event is privacy.Gaussian of the same Sigma.
func (m Gaussian) Event() privacy.Event { return privacy.Gaussian{Sigma: m.Sigma} }

// Norm is 2.
func (Gaussian) Norm() int { return 2 }

// Check says whether Add would accept grid and sens.
func (m Gaussian) Check(grid, sens float64) error {
	_, err := counts(privacy.Gaussian(m).Validate(), m.Sigma, grid, sens)
	return err
}

// Add adds the noise; see Additive.
func (m Gaussian) Add(v []int64, grid, sens float64, src *noise.Source) error {
	scale, err := counts(privacy.Gaussian(m).Validate(), m.Sigma, grid, sens)
	if err != nil {
		return err
	}
	src.AddGaussian(v, scale)
	return nil
}

// Laplace adds Laplace noise of scale Scale·sens, where sens is the ℓ1 sensitivity; Scale
// is above 0 and finite. The zero value is invalid.
type Laplace struct{ Scale float64 }

// Event is privacy.Laplace of the same Scale.
func (m Laplace) Event() privacy.Event { return privacy.Laplace{Scale: m.Scale} }

// Norm is 1.
func (Laplace) Norm() int { return 1 }

// Check says whether Add would accept grid and sens.
func (m Laplace) Check(grid, sens float64) error {
	_, err := counts(privacy.Laplace(m).Validate(), m.Scale, grid, sens)
	return err
}

// Add adds the noise; see Additive.
func (m Laplace) Add(v []int64, grid, sens float64, src *noise.Source) error {
	scale, err := counts(privacy.Laplace(m).Validate(), m.Scale, grid, sens)
	if err != nil {
		return err
	}
	src.AddLaplace(v, scale)
	return nil
}

// None adds nothing: it releases the sum itself, for lab runs. Its event costs infinitely
// much.
type None struct{}

// Event is privacy.NonPrivate.
func (None) Event() privacy.Event { return privacy.NonPrivate{Why: "noise switched off"} }

// Norm is 2, by which None counts its grid.
func (None) Norm() int { return 2 }

// Check accepts everything.
func (None) Check(grid, sens float64) error { return nil }

// Add leaves v as it is and checks nothing.
func (None) Add([]int64, float64, float64, *noise.Source) error { return nil }

// counts returns factor·sens in counts of grid, rounded up, so that no rounding makes the
// noise less than its event claims: sens/grid is exact unless it leaves the range of
// float64, the product errs by half a unit in the last place at most, and one unit is added.
// invalid is what is wrong with the event, if anything.
func counts(invalid error, factor, grid, sens float64) (float64, error) {
	if invalid != nil {
		return 0, invalid
	}
	steps, err := gridSteps(grid, sens)
	if err != nil {
		return 0, err
	}
	scale := math.Nextafter(factor*steps, math.Inf(1))
	if !(scale <= noise.MaxScale) {
		return 0, fmt.Errorf("mech: noise of %v grid steps does not fit; choose at most 2⁵⁴", scale)
	}
	return scale, nil
}

// gridSteps returns the sensitivity in counts of the grid.
func gridSteps(grid, sens float64) (float64, error) {
	if frac, _ := math.Frexp(grid); !(grid > 0) || frac != 0.5 {
		return 0, fmt.Errorf("mech: grid is %v; choose a power of two", grid)
	}
	if !(sens >= grid) || math.IsInf(sens, 1) {
		return 0, fmt.Errorf("mech: sensitivity is %v; choose a finite number from the grid, %v, up", sens, grid)
	}
	return sens / grid, nil
}

// limit bounds what a search or a choice computes with. Values beyond it are brought to
// it, which brings no two of them further apart, so that sums with noise and differences fit
// int64.
const limit = 1<<62 - 1

func clamp(v int64) int64 { return min(max(v, -limit), limit) }
