// Package perturb is the public mathematics of oracle.Minimize: how far one record can move the
// result of gradient descent or of objective perturbation, rounding included, and how much noise
// hides that. It holds no rows: bounds say what the loss is like, and a solver sees records only
// through the gradients that it is given. A solver's result is as private as those are;
// oracle/private adds the noise. Each bound has its theorem in PROOFS.md.
package perturb

import (
	"fmt"
	"math"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/mech"
)

// A Problem is what is public of the mean of records' losses.
type Problem struct {
	Model     string // its name, for errors
	Adjacency privacy.Adjacency
	Records   int // their public number
	UnitRows  int // most rows of a record where records are units of several rows; 0: a record is a row
	Dim       int // parameters
	Features  int // of a row
	Outputs   int // of the model
	Block     int // rows whose gradients are added up before they join the sum of the others

	RowNorm   float64 // bound on the norm of the table's rows
	NormBound float64 // the one that the bounds on the loss rest on
	Lipschitz float64 // bound on ‖∇ℓ‖
	Smooth    float64 // bound on ‖∇²ℓ‖
	Convex    bool
	OneMargin bool // ℓ is a function of ⟨w, x⟩, monotone for each label
}

// A Release says how the result of a minimization is published.
type Release struct {
	Noise       mech.Additive
	Grid        float64 // what the result is rounded to
	Reach       float64 // bound on its norm
	Sensitivity float64 // of the rounded result
}

// release fits sensitivity and reach to the grid of the release, and to what an int64 holds.
func (p Problem) release(noise mech.Additive, sens, reach float64) (Release, error) {
	grid := mech.Grid(sens, p.Dim, 2)
	r := Release{noise, grid, reach, mech.OnGrid(sens, grid, p.Dim, 2)}
	if !(reach/grid < 1<<60) {
		return r, fmt.Errorf("parameters up to %.3g at a sensitivity of %.3g do not fit", reach, sens)
	}
	return r, noise.Check(grid, r.Sensitivity)
}

// Release says how q's result is published. It fails where no theorem covers q.
func (p Problem) Release(q oracle.Minimize) (Release, error) {
	if err := p.check(); err != nil {
		return Release{}, err
	}
	switch how := q.How.(type) {
	case oracle.Descent:
		if how.Passes > mostSteps || how.Passes*Batches(how, p.Records) > mostSteps {
			return Release{}, fmt.Errorf("a descent of more than %d steps", mostSteps)
		}
		if curve := p.Smooth + q.L2; !(how.Rate*curve <= 2) {
			return Release{},
				fmt.Errorf("a descent of step size %v; choose at most %v, 2 over the curvature of the loss and of L2", how.Rate,
					2/curve)
		}
		sens, reach := p.Descent(how, q.L2)
		return p.release(how.Noise, sens, reach)
	case oracle.Objective:
		o, err := p.Objective(how, q.L2)
		if err != nil {
			return Release{}, err
		}
		// two tables' results miss in opposite directions
		return p.release(mech.Gaussian{Sigma: o.Sigma}, 2*o.Missed, o.Reach)
	}
	return Release{}, fmt.Errorf("the minimization %T has no theorem", q.How)
}

// check refuses losses whose minimizer has no sensitivity (R20).
func (p Problem) check() error {
	switch {
	case p.Adjacency != privacy.ReplaceOne:
		return fmt.Errorf("a minimizer has a sensitivity under %v only: with a private row count the curvature of the mean has no bound", privacy.ReplaceOne)
	case !p.Convex || math.IsInf(p.Smooth, 1) || math.IsInf(p.Lipschitz, 1):
		return fmt.Errorf("the loss of %s is not convex, smooth and of bounded slope; its minimizer has no sensitivity",
			p.Model)
	case !(p.RowNorm <= p.NormBound):
		return fmt.Errorf("rows of norm up to %v, the model counts on %v", p.RowNorm, p.NormBound)
	}
	return nil
}
