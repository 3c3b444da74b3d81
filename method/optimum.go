package method

import (
	"context"
	"fmt"
	"iter"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
)

// Optimum is the minimizer of the objective itself, by L-BFGS: what all private methods are measured against. It is for
// `privacy: none` in the lab only. Where the loss alone has no minimum, as on separable classes, it stops when
// 5000 gradients are taken.
type Optimum struct {
	L2 float64 `yaml:"-" json:"l2,omitempty"` // λ of the objective
}

// Configure refuses anything private.
func (m Optimum) Configure(pub oracle.Public, obj Objective, terms Terms) (Method, error) {
	var err error
	if m.L2, err = ridge(obj); err != nil {
		return nil, err
	}
	switch {
	case !terms.Off:
		return nil, fmt.Errorf("privacy.epsilon: found %v; the optimum itself protects no one; use it only with `privacy: none`, in the lab", terms.Budget.Epsilon)
	case !pub.Smooth.Finite():
		return nil, fmt.Errorf("model.name: the loss has no bound on its curvature, which L-BFGS needs; choose a model that has one, as huber-svm instead of svm")
	}
	return m, nil
}

func (m Optimum) query() oracle.Minimize { return oracle.Minimize{How: oracle.Exact{}, L2: m.L2} }

// Plan is one access without noise.
func (m Optimum) Plan(oracle.Public) (privacy.Event, error) { return planOnce(m.query()) }

// Run asks once.
func (m Optimum) Run(ctx context.Context, o oracle.Oracle, _ Objective) iter.Seq2[Step, error] {
	return runOnce(ctx, o, m.query(), 0)
}
