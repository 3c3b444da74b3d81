package mech

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// Share adds one owner's share of normal noise to its part of a sum that Owners owners make together. Its standard
// deviation is Sigma·sens/√(Owners − Colluders), where sens is the ℓ2 sensitivity of the whole sum, so that the shares of any
// Owners − Colluders owners add up to noise of deviation Sigma·sens (PROOFS.md, shares). Sigma is above 0 and
// finite, Colluders from 0 to Owners − 2; the zero value is invalid.
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

// Norm is 2.
func (Share) Norm() int { return 2 }

// scale is the share's deviation, in counts.
func (m Share) scale(grid, sens float64) (float64, error) {
	all, err := counts(m.Event().Validate(), m.Sigma, grid, sens)
	if err != nil {
		return 0, err
	}
	scale := math.Nextafter(all/math.Sqrt(float64(m.Owners-m.Colluders))*(1+0x1p-51), math.Inf(1))
	if scale < leastShare {
		return 0, fmt.Errorf("mech: a share of noise of %v grid steps; allowed are %d or more", scale, leastShare)
	}
	return scale, nil
}

// Check says whether Add would accept grid and sens.
func (m Share) Check(grid, sens float64) error {
	_, err := m.scale(grid, sens)
	return err
}

// Add adds the share; see Additive. A share below eight grid steps is an error, too.
func (m Share) Add(v []int64, grid, sens float64, src *noise.Source) error {
	scale, err := m.scale(grid, sens)
	if err != nil {
		return err
	}
	src.AddGaussian(v, scale)
	return nil
}
