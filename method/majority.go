package method

import (
	"context"
	"errors"
	"iter"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/sample"
)

// Majority predicts one class for every row: that of the most rows, by a noisy choice with the classes' numbers of rows
// as scores. It is what a classifier must beat. The majority is a query of the data and is charged (R20).
//
// The model is 1 at the intercept of the class and 0 elsewhere; with one margin for two classes, 1 for
// class 1 and −1 for class 0. So it needs an intercept.
type Majority struct {
	Choice float64 `yaml:"choice" json:"choice" doc:"ε of the choice (default: the largest that the budget allows)"`

	Flip bool `yaml:"-" json:"flip,omitempty"` // δ = 0
	Off  bool `yaml:"-" json:"off,omitempty"`  // no noise: lab
}

// Configure sets ε.
func (m Majority) Configure(pub oracle.Public, _ Objective, terms Terms) (Method, error) {
	switch {
	case pub.Classes == 0:
		return nil, errors.New("name: majority needs a label of classes; the schema's is a number")
	case pub.Intercept == 0:
		return nil, errors.New("name: majority says its class by the intercept alone, and the schema has none; set intercept: true in the schema")
	}
	m.Off, m.Flip = terms.Off, !terms.Off && terms.Budget.Delta == 0
	err := fitChoice(&m.Choice, terms, func(epsilon float64) privacy.Event {
		m.Choice = epsilon
		return m.plan()
	})
	return m, err
}

func (m Majority) query() oracle.Select {
	return oracle.Select{Epsilon: m.Choice, Flip: m.Flip, Off: m.Off}
}

func (m Majority) plan() privacy.Event {
	return oracle.Public{}.Cost(sample.Full{}, []oracle.Query{m.query()})
}

// Plan is one choice.
func (m Majority) Plan(oracle.Public) (privacy.Event, error) {
	return valid(m.plan())
}

// Run chooses.
func (m Majority) Run(ctx context.Context, o oracle.Oracle, _ Objective) iter.Seq2[Step, error] {
	return Loop(func(yield func(Step) bool) (Step, error) {
		pub := o.Public()
		w := make([]float64, pub.Dim)
		st := Step{W: w}
		b, err := o.Batch(ctx, sample.Full{}, m.query())
		if err != nil {
			return st, err
		}
		class, err := b.Select(m.query(), oracle.Classes{})
		if err != nil {
			return st, err
		}
		switch at := pub.Intercept - 1; {
		case pub.Dim > pub.Intercept: // a margin for each class
			w[class*pub.Intercept+at] = 1
		case class == 0:
			w[at] = -1
		default:
			w[at] = 1
		}
		st.T, st.Moved = 1, 1
		yield(st)
		return st, nil
	})
}
