package replay_test

import (
	"context"
	"fmt"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/oracle/replay"
	"github.com/sottodp/sotto/privacy"
)

// A record of two noisy gradients is all that a method needs to walk the same
// way again: there is no table anywhere in this program.
func Example() {
	paid := privacy.Gaussian{Sigma: 1}
	o := &replay.Oracle{
		Facts: oracle.Public{Dim: 2, Rows: 100, Classes: 2, Adjacency: privacy.AddRemove, NormBound: 1},
		Next: replay.Each([]replay.Released{
			{Event: paid, Answers: [][]float64{{0.5, -1}}},
			{Event: paid, Answers: [][]float64{{0.25, 0}}},
		}),
	}
	m := method.SGD{Steps: 3, Rate: 2, Gradient: method.Gradient{Clip: 1, Noise: 1}}
	for step, err := range m.Run(context.Background(), o, method.Objective{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(step.T, step.W)
	}
	// Output:
	// 1 [-1 2]
	// 2 [-1.5 2]
	// replay: the record ends here
}
