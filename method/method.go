// Package method holds the optimizers, one file each. A method is a value whose
// exported fields are its configuration; it sees the data only through an
// oracle.Oracle, so everything that it computes is post-processing.
//
// To add one: a file, and a line in registry.go. The command's help, the strict
// decoding of its fields and the conformance suite (package methodtest) follow
// from that line.
package method

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/method/reg"
	"github.com/sottodp/sotto/method/secondorder"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Method is one optimizer with its configuration.
type Method interface {
	// Configure returns the method with everything set that was left free (zero): noise calibrated to the terms,
	// defaults from public facts. It reads no data. Its errors begin with the name of the field: one of the method, or
	// of the terms as in "privacy.delta: …".
	Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error)
	// Plan is the most that a configured method may ask, in the order of asking. For a method whose costs depend on
	// releases, it is the privacy.Filtered that Configure chose (account.ChooseFilter, account.CalibrateFilter), within
	// which the method may ask anything until it is refused.
	Plan(pub oracle.Public) (privacy.Event, error)
	// Run yields a Step after each iteration, then one with a final Status. It
	// stops when the oracle refuses (OutOfBudget, no error), when its work is
	// done, or when the loop that ranges over it breaks.
	Run(ctx context.Context, o oracle.Oracle, obj Objective) iter.Seq2[Step, error]
}

// MaxSteps is the most steps that a configured method takes: what its method MaxSteps says, else its field
// steps, else one.
func MaxSteps(m Method) int {
	if m, ok := m.(interface{ MaxSteps() int }); ok {
		return m.MaxSteps()
	}
	steps, _ := value(m, "steps").(int)
	return max(1, steps)
}

// NoiseMultiplier is the noise of one query of a configured method (R8), for people to read: its field
// noise_multiplier, or 0 if it has none or several.
func NoiseMultiplier(m Method) float64 {
	noise, _ := value(m, "noise_multiplier").(float64)
	return noise
}

// MostNumbers is the most numbers that one answer to a configured method has: what its method MostNumbers says, else
// those of a Hessian where the model has one, else those of a gradient.
func MostNumbers(m Method, pub oracle.Public) int {
	if m, ok := m.(interface{ MostNumbers(oracle.Public) int }); ok {
		return m.MostNumbers(pub)
	}
	if pub.Curved {
		return oracle.HessLen(pub.Dim)
	}
	return pub.Dim
}

// Cautious is a method that says from public facts where its analysis will not hold.
type Cautious interface {
	// Cautions of a configured method are sentences for the person who plans the run.
	Cautions(pub oracle.Public, obj Objective) []string
}

// Terms are the privacy terms of a run.
type Terms struct {
	Budget     privacy.Budget
	Accountant account.Accountant
	Off        bool // no noise at all (lab): Budget and Accountant are not used
}

// Objective is what is minimized: the mean loss of the records, known only
// through the oracle, plus Reg. The zero value has no regularizer.
type Objective struct {
	Reg reg.Regularizer // public, outside the clipped part; nil means none
}

// AddGradient adds the regularizer's gradient at w to g.
func (o Objective) AddGradient(g, w []float64) {
	if o.Reg != nil {
		o.Reg.AddGrad(g, w)
	}
}

// smooth bounds the curvature that the regularizer adds, kinks apart.
func (o Objective) smooth() float64 {
	if o.Reg == nil || math.IsInf(o.Reg.Smooth(), 1) {
		return 0
	}
	return o.Reg.Smooth()
}

// convex is the strong convexity that the regularizer adds; 0: none.
func (o Objective) convex() float64 {
	if o.Reg == nil {
		return 0
	}
	return math.Max(0, o.Reg.StrongConvexity())
}

// Status says how a run stands.
type Status uint8

const (
	Running     Status = iota
	Done               // all steps taken
	OutOfBudget        // the meter refused the next batch
	Converged          // the method's test says that W is what it searches for
)

func (s Status) String() string {
	return [...]string{"running", "done", "out of budget", "converged"}[s]
}

// A Step is the state after an iteration. W belongs to the method and is valid
// until the next iteration.
type Step struct {
	T        int       // steps done
	W        []float64 // the iterate
	Rate     float64   // step size used
	GradNorm float64   // ℓ2 norm of the released gradient
	Gradient []float64 // that gradient, of methods with a MarginFactor; it belongs to the method, as W does
	Moved    float64   // ℓ2 distance from the iterate before
	Status   Status
	Claim    *secondorder.Claim // of a converged run that proves something of W
	Center   []float64          // W is of rows less this released point, the intercept apart; nil: of rows as they are
	Shift    float64            // is added to all margins of W: a public number, or a released one
	Width    float64            // of labels, as released; 0: it was not asked for
	// Lean, where it is not 0, times ‖W‖ is what margins get in addition, so that each has its sign: the step's model is
	// one class, whose share of the rows is about Share, in the order of W's margins.
	Lean, Share float64
	// Made is the model, where a finished run makes it by itself; nil: the run's output is.
	Made *Made
	// Of a Checkpointer, the vectors of its Checkpoint; they belong to the method, as W does.
	Kept [][]float64
}

// Offset is what margins of w, the run's output, over rows as they are lack: Made's, where there is one; else the shift
// and what a leaning step's get, of one margin, and what the center takes from each; nil: nothing.
func (st Step) Offset(w []float64) []float64 {
	if st.Made != nil {
		return st.Made.Offset
	}
	offset := []float64{st.Shift}
	if st.Lean != 0 {
		offset[0] += st.Lean * norm2(w)
	}
	for k := 0; st.Center != nil && k*len(st.Center) < len(w); k++ {
		if k == len(offset) {
			offset = append(offset, 0)
		}
		for j, m := range st.Center {
			offset[k] -= w[k*len(st.Center)+j] * m
		}
	}
	return something(offset)
}

// something is an offset, nil if it is 0.
func something(offset []float64) []float64 {
	if slices.ContainsFunc(offset, func(v float64) bool { return v != 0 }) {
		return offset
	}
	return nil
}

// Loop makes a method's Run of its loop, which yields a Step after each iteration until yield is false, and
// returns the last Step and why it stopped. Loop yields that Step with its final Status: without an error all steps
// were taken, and a refused charge is a normal end.
func Loop(loop func(yield func(Step) bool) (Step, error)) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		broken := false
		st, err := loop(func(st Step) bool {
			broken = !yield(st, nil)
			return !broken
		})
		switch {
		case broken:
			return
		case errors.Is(err, privacy.ErrExhausted):
			st.Status, err = OutOfBudget, nil
		case err == nil && st.Status == Running:
			st.Status = Done
		}
		yield(st, err)
	}
}

// valid is a plan, if it is one.
func valid(e privacy.Event) (privacy.Event, error) { return e, e.Validate() }

func norm2(v []float64) float64 { return math.Sqrt(kern.SumSquares(v)) }
