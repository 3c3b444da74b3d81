package model_test

import (
	"fmt"

	"github.com/sottodp/sotto/model"
)

// A threshold predicts a rare class from a smaller probability on.
func ExampleDecide() {
	classes := []string{"no", "yes"}
	p := []float64{0.7, 0.3}
	fmt.Println(classes[model.Decide(p, nil, classes)])
	fmt.Println(classes[model.Decide(p, map[string]float64{"yes": 0.2}, classes)])
	// Output:
	// no
	// yes
}
