package oracle

import (
	"errors"
	"fmt"
	"math"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// Minimize asks for a minimizer of
//
//	F(w) = (1/n) Σ_i ℓ_i(w) + (L2/2)‖w‖²
//
// over all rows. The private oracle solves it, and its result is released once. What
// protects the rows, and what it costs, is How.
type Minimize struct {
	How How
	L2  float64 // λ, 0 or more
}

// How says how a Minimize solves and where its noise is. The set is closed: Descent, Objective, Exact.
type How interface {
	Event() privacy.Event
	Validate() error
	how()
}

// Descent is output perturbation: noise on the last iterate of gradient descent from 0, or with Average on the mean of
// all iterates after 0, whose sensitivity follows from public constants (algorithms.md §3.4). It is for replace-one and
// for losses that are convex, smooth and have a Lipschitz bound.
//
// The rows are gone through Passes times, in batches of Batch of one secret random order; 0 means all rows
// at once. Step t = 1, 2, … has the size Rate, or with Decay the less of Rate and 1/(L2·t). No step size may
// exceed 2/(β + L2), β the bound on the curvature of one row's loss.
type Descent struct {
	Passes, Batch int
	Rate          float64
	Decay         bool
	Average       bool
	Noise         mech.Additive // Gaussian; None: lab
}

// Objective is objective perturbation with an approximate minimum (AMP, algorithms.md §3.5): a random linear term and
// further curvature Lambda/n in F, and a little noise on the result for what the solver misses. It is (Epsilon,
// Delta)-private under replace-one, for smooth losses of one margin (Public.OneMargin). The noise follows from these
// numbers inside the private oracle.
type Objective struct {
	Epsilon, Delta float64
	Lambda         float64 // Λ, 0 or more: in units of the sum, not of the mean
}

// Exact is the minimizer itself: lab only.
type Exact struct{}

func (Descent) how()   {}
func (Objective) how() {}
func (Exact) how()     {}

// Event is that of the noise on the result.
func (h Descent) Event() privacy.Event { return h.Noise.Event() }

// Event is privacy.ApproxDP: what is proven is one pair (ε, δ) (R19).
func (h Objective) Event() privacy.Event { return privacy.ApproxDP{Epsilon: h.Epsilon, Delta: h.Delta} }

// Event is that of an access without noise.
func (Exact) Event() privacy.Event { return mech.None{}.Event() }

// Validate checks each number by itself; the private oracle checks whether the step size fits the loss.
func (h Descent) Validate() error {
	switch {
	case h.Noise == nil:
		return errors.New("oracle: a descent needs a noise")
	case h.Noise.Norm() != 2:
		return errors.New("oracle: the sensitivity of a descent is in the ℓ2 norm, the noise's in another")
	case h.Passes < 1 || h.Batch < 0:
		return fmt.Errorf("oracle: a descent of %d passes and batches of %d; choose 1 pass or more, and batches of 0 rows (all) or more", h.Passes, h.Batch)
	case !(h.Rate > 0) || math.IsInf(h.Rate, 1):
		return fmt.Errorf("oracle: a descent of step size %v; choose a number above 0", h.Rate)
	}
	return nil
}

// Validate: there is a guarantee to give, with a δ.
func (h Objective) Validate() error {
	switch {
	case !(h.Epsilon > 0 && h.Delta > 0):
		return fmt.Errorf("oracle: objective perturbation at ε %v and δ %v; both must be above 0", h.Epsilon, h.Delta)
	case !(h.Lambda >= 0) || math.IsInf(h.Lambda, 1):
		return fmt.Errorf("oracle: objective perturbation with a curvature of %v; choose a number of 0 or more", h.Lambda)
	}
	return h.Event().Validate()
}

// Validate has nothing to refuse.
func (Exact) Validate() error { return nil }

// Event is one release.
func (q Minimize) Event() privacy.Event { return q.How.Event() }

// Validate: there is a way to solve, and its numbers and L2 make sense.
func (q Minimize) Validate() error {
	switch {
	case q.How == nil:
		return errors.New("oracle: a minimization does not say how")
	case !(q.L2 >= 0) || math.IsInf(q.L2, 1):
		return fmt.Errorf("oracle: a minimization with L2 %v; choose a number of 0 or more", q.L2)
	}
	if d, ok := q.How.(Descent); ok && d.Decay && q.L2 == 0 {
		return errors.New("oracle: step sizes of 1/(L2·t) need an L2 above 0")
	}
	return q.How.Validate()
}
