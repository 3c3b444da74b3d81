package mech

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Share adds one owner's share of normal noise to its part of a sum that Owners owners make together. Its standard
// deviation is Sigma·sens/√(Owners − Colluders), where sens is the ℓ2 sensitivity of the whole sum, so that the shares
// of any Owners − Colluders owners add up to noise of deviation Sigma·sens (PROOFS.md, shares). Sigma is above 0 and
// finite, Colluders from 0 to Owners − 2; the zero value is invalid.
//
// It is no Additive: one part with one share is no release of its event, and must not leave before it is masked.
type Share struct {
	Sigma             float64
	Owners, Colluders int
}

// leastShare is the least deviation of a share, in grid steps.
const leastShare = 8

// Event is privacy.Shared of a Gaussian: what the sum of all parts releases. A part by itself is privacy.Alone of it.
func (m Share) Event() privacy.Event {
	return privacy.Shared{Owners: m.Owners, Colluders: m.Colluders, Of: privacy.Gaussian{Sigma: m.Sigma}}
}

// scale is the share's deviation, in counts.
func (m Share) scale(grid, sens float64) (float64, error) {
	all, err := counts(m.Event().Validate(), m.Sigma, grid, sens)
	if err != nil {
		return 0, err
	}
	scale := math.Nextafter(all/math.Sqrt(float64(m.Owners-m.Colluders))*(1+0x1p-51), math.Inf(1))
	if !(scale >= leastShare) {
		return 0, tooSmall(scale)
	}
	return scale, nil
}

func tooSmall(scale float64) error {
	return fmt.Errorf("mech: a share of noise of %v grid steps; choose %d or more", scale, leastShare)
}

// Check says whether AddPart would accept grid and sens.
func (m Share) Check(grid, sens float64) error {
	_, err := m.scale(grid, sens)
	return err
}

// AddPart adds the share to the owner's part v of the sum, in counts of grid. Sens, in the ℓ2 norm and the unit of
// grid, is the sensitivity of the whole sum. The errors are those of Additive's Add, and a share below eight grid
// steps; then v is as it was.
func (m Share) AddPart(v []int64, grid, sens float64, src *noise.Source) error {
	scale, err := m.scale(grid, sens)
	if err != nil {
		return err
	}
	src.AddGaussian(v, scale)
	return nil
}

// SymmetricShare is Share for a symmetric matrix, whose noise is that of SymmetricGaussian: the deviation of a pair of
// equal entries beside the diagonal, less by √2, is eight grid steps or more.
type SymmetricShare Share

// Event is that of Share.
func (m SymmetricShare) Event() privacy.Event { return Share(m).Event() }

// scales are the share's deviations on the diagonal and beside it, in counts.
func (m SymmetricShare) scales(grid, sens float64) (diagonal, beside float64, err error) {
	if diagonal, err = Share(m).scale(grid, sens); err != nil {
		return 0, 0, err
	}
	if beside = besideDiagonal(diagonal); !(beside >= leastShare) {
		return 0, 0, tooSmall(beside)
	}
	return diagonal, beside, nil
}

// Check says whether AddPart would accept grid and sens.
func (m SymmetricShare) Check(grid, sens float64) error {
	_, _, err := m.scales(grid, sens)
	return err
}

// AddPart adds the share to the upper triangle of a matrix, as Add of SymmetricGaussian does.
func (m SymmetricShare) AddPart(v []int64, grid, sens float64, src *noise.Source) error {
	diagonal, beside, err := m.scales(grid, sens)
	if err != nil {
		return err
	}
	return addSymmetric(v, diagonal, beside, src)
}
