package clip_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/clip"
)

// A rule gives weights, and the bound that they enforce on what a record adds to a sum.
func ExampleNorm() {
	rule := clip.Norm{C: 1}
	norms, weights := []float64{0.5, 4}, make([]float64, 2)
	rule.Weights(weights, norms, nil)
	fmt.Printf("%.2f\n", weights)
	for _, adj := range []privacy.Adjacency{privacy.AddRemove, privacy.ReplaceOne} {
		s, err := clip.Sensitivity(rule.Bound(), adj)
		fmt.Println(adj, s, err)
	}
	// Output:
	// [1.00 0.25]
	// add-or-remove 1 <nil>
	// replace-one 2 <nil>
}
