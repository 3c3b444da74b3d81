package oracle

import (
	"errors"
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
)

// MaxHess is the most parameters for which a Hessian can be asked: beyond it the matrix
// alone has more than 2²³ entries.
const MaxHess = 4096

// Hess asks for the sum of the records' Hessians plus symmetric noise (P4, algorithms.md
// §5.1). A record's Hessian is scaled down to Clip in the Frobenius norm; where the
// model's own bound, Public.Smooth, is not above Clip, nothing is.
//
// Models that answer (Public.Curved) have positive semidefinite Hessians, so one record moves
// the sum by Clip under add-or-remove and by √2·Clip under replace-one (R16).
type Hess struct {
	Clip  float64 // C, of one record's Hessian in the Frobenius norm
	Noise mech.SymmetricGaussian
	Off   bool // lab: no noise, and Noise does not count
}

// Event is the event of the noise.
func (q Hess) Event() privacy.Event {
	if q.Off {
		return mech.None{}.Event()
	}
	return q.Noise.Event()
}

// Validate: the clip bound is a sensitivity and the noise is one.
func (q Hess) Validate() error {
	if _, err := clip.Sensitivity(q.Clip, privacy.ReplaceOne); err != nil {
		return fmt.Errorf("oracle: a Hessian's clip bound: %w", err)
	}
	if q.Off {
		return nil
	}
	if err := q.Noise.Event().Validate(); err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// HessLen is the length of an answer to Hess: the entries of a dim×dim matrix on and above
// the diagonal.
func HessLen(dim int) int { return dim * (dim + 1) / 2 }

// Symmetric unpacks an answer to Hess, the upper triangle row after row, to the full matrix:
// entry (i, j) is at i·dim + j.
func Symmetric(packed []float64, dim int) ([]float64, error) {
	if dim < 1 || dim > MaxHess || len(packed) != HessLen(dim) {
		return nil, errors.New("oracle: a packed matrix of another size")
	}
	full := make([]float64, dim*dim)
	at := 0
	for i := range dim {
		for j := i; j < dim; j++ {
			full[i*dim+j], full[j*dim+i] = packed[at], packed[at]
			at++
		}
	}
	return full, nil
}
