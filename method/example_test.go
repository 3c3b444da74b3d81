package method_test

import (
	"fmt"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Fit fills in what was left free, from public facts and the budget alone. There
// is no data in this program.
func ExampleSGD_Configure() {
	facts := oracle.Public{
		Dim: 16, Rows: 4000, Classes: 2, Adjacency: privacy.AddRemove,
		NormBound: 1, Lipschitz: 1, Smooth: 0.25, // the logistic loss on rows of norm 1
	}
	terms := method.Terms{
		Budget:     privacy.Budget{Epsilon: 1, Delta: 1e-5, Adjacency: privacy.AddRemove},
		Accountant: account.Best{},
	}
	m, err := method.SGD{}.Configure(facts, method.Objective{}, terms)
	if err != nil {
		fmt.Println(err)
		return
	}
	fitted := m.(method.SGD)
	plan, err := m.Plan(facts)
	fmt.Printf("%d steps of size %g, clip norm %g, noise multiplier %.3f\n", fitted.Steps, fitted.Rate, fitted.Gradient.Clip, fitted.Gradient.Noise)
	fmt.Println(plan, err)
	// Output:
	// 100 steps of size 80, clip norm 0.35, noise multiplier 37.306
	// 100 × Gaussian(σ=37.3063) <nil>
}

// A fold turns the iterates of a run into its output.
func ExampleOutput_Averager() {
	fold := method.TailAverage.Averager(4, 1)
	for t, w := range []float64{8, 6, 4, 2} {
		fold.Add(method.Step{T: t + 1, W: []float64{w}})
	}
	fmt.Println(fold.W())
	// Output: [3]
}
