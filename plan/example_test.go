package plan_test

import (
	"fmt"

	"github.com/sottodp/sotto/plan"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
)

// Of ε, the noise and the number of steps, Plan finds the one that is left out.
func ExampleNumbers_Plan() {
	epsilon, steps := 1.0, 100
	p, err := plan.Numbers{
		Epsilon: &epsilon, Steps: &steps, Delta: 1e-5,
		Adjacency: privacy.AddRemove, Accountant: account.Best{},
	}.Plan()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %.2f, ε = %.4f\n", p.Solved, p.NoiseMultiplier, p.Epsilon)
	// Output:
	// noise-multiplier: 37.31, ε = 1.0000
}
