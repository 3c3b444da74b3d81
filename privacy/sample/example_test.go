package sample_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/privacy/sample"
)

// Five of a hundred records: what is drawn, what it is divided by and what is claimed come from one value.
func ExampleFixed() {
	s := sample.Fixed{M: 5, N: 100}
	rows, _ := s.Draw(nil, 100, noise.NewSeeded(1, "sample", 0)) // a seed: for examples only
	fmt.Println(rows, s.Size(100), s.Event(privacy.Gaussian{Sigma: 2}))
	fmt.Println(s.Check(privacy.AddRemove))
	// Output:
	// [23 50 63 68 85] 5 Fixed(5 of 100, Gaussian(σ=2))
	// fixed: a batch of a fixed size has no theorem under "add-or-remove", where the row count is private; choose "replace-one"
}
