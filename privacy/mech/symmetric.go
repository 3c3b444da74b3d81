package mech

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
)

// SymmetricGaussian adds normal noise to a symmetric matrix: of standard deviation
// Sigma·sens to each entry of the diagonal and Sigma·sens/√2 to each pair of equal entries
// beside it, where sens is the sensitivity in the Frobenius norm of the whole matrix. It
// costs what Gaussian of the same Sigma costs (PROOFS.md, symmetric-gaussian; soundness.md,
// S-4d), with a spectral norm smaller by √2 than noise of deviation Sigma·sens everywhere.
// Sigma is above 0 and finite; the zero value is invalid.
//
// It is no Additive: a vector is not a matrix, and their norms differ.
type SymmetricGaussian struct{ Sigma float64 }

// Event is privacy.Gaussian of the same Sigma.
func (m SymmetricGaussian) Event() privacy.Event { return privacy.Gaussian{Sigma: m.Sigma} }

// scales are the noise of the diagonal and beside it, in counts.
func (m SymmetricGaussian) scales(grid, sens float64) (diagonal, beside float64, err error) {
	invalid := m.Event().Validate()
	if diagonal, err = counts(invalid, m.Sigma, grid, sens); err != nil {
		return 0, 0, err
	}
	return diagonal, besideDiagonal(diagonal), nil
}

// besideDiagonal is the deviation beside a diagonal of that deviation, rounded up: math.Sqrt2/2 is above √½.
func besideDiagonal(diagonal float64) float64 {
	return math.Nextafter(diagonal*(math.Sqrt2/2), math.Inf(1))
}

// Check says whether Add would accept grid and sens.
func (m SymmetricGaussian) Check(grid, sens float64) error {
	_, _, err := m.scales(grid, sens)
	return err
}

// Add adds noise to v, the upper triangle of a d×d matrix in counts of grid, row by row,
// the diagonal included: d(d+1)/2 numbers. Grid and sens are as in Additive, and sens has
// the slack of rounding, Slack(grid, d·d, 2). Any other length is an error.
func (m SymmetricGaussian) Add(v []int64, grid, sens float64, src *noise.Source) error {
	diagonal, beside, err := m.scales(grid, sens)
	if err != nil {
		return err
	}
	return addSymmetric(v, diagonal, beside, src)
}

// addSymmetric adds noise to the upper triangle of a matrix.
func addSymmetric(v []int64, diagonal, beside float64, src *noise.Source) error {
	d, ok := order(len(v))
	if !ok {
		return fmt.Errorf("mech: found %d numbers; expected d(d+1)/2, the upper triangle of a symmetric matrix", len(v))
	}
	for ; d > 0; d-- { // a row: one entry of the diagonal, d−1 beside it
		src.AddGaussian(v[:1], diagonal)
		src.AddGaussian(v[1:d], beside)
		v = v[d:]
	}
	return nil
}

// order returns d with d(d+1)/2 = n, for n ≥ 1.
func order(n int) (d int, ok bool) {
	d = int(math.Sqrt(2 * float64(n)))
	for _, d := range [3]int{d - 1, d, d + 1} {
		if d > 0 && d*(d+1)/2 == n {
			return d, true
		}
	}
	return 0, false
}
