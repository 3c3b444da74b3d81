package gossip_test

import (
	"fmt"

	"github.com/sottodp/sotto/gossip"
	"gonum.org/v1/gonum/mat"
)

// Two of three owners exchange vectors in a round; the matrix says how their values mix.
func ExampleMatrix() {
	w := gossip.Matrix(3, []gossip.Edge{{0, 1}})
	fmt.Println(mat.Formatted(w))
	// Output:
	// ⎡0.5  0.5    0⎤
	// ⎢0.5  0.5    0⎥
	// ⎣  0    0    1⎦
}
