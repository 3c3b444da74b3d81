package mech_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/noise"
)

// Which is the first of some counts to reach 1000? Each count has sensitivity 1, which is one
// step of a grid of 1; counts are whole numbers, so that nothing is rounded.
func ExampleAboveThreshold() {
	m := mech.AboveThreshold{Threshold: 2, Query: 4, Max: 10}
	fmt.Println("pays for", m.Event())
	search, err := m.Start(1000, 1, 1, noise.NewSeeded(1, "search", 0)) // a seed: for examples only
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, count := range []int64{640, 870, 2000, 1100} {
		reached, err := search.Ask(count)
		fmt.Println(reached, err)
	}
	// Output:
	// pays for AboveThreshold(b=2, 4, at most 10)
	// false <nil>
	// false <nil>
	// true <nil>
	// false mech: the search is over; a new one must be paid for
}

// Which of three step sizes lowers the loss most? One record moves each score by at most 0.5; scores are
// counted in steps of 2⁻¹⁰, and rounding to them adds its slack to the sensitivity.
func ExampleSelect() {
	const grid = 0x1p-10
	scores := []int64{100 << 10, 140 << 10, 90 << 10}
	m := mech.Select{Epsilon: 1}
	i, err := m.Choose(scores, grid, 0.5+mech.Slack(grid, 1, 1), noise.NewSeeded(1, "choice", 0))
	fmt.Println(m.Event(), i, err)
	// Output: Select(ε=1) 1 <nil>
}

// A 2×2 matrix of Frobenius sensitivity 1, as its upper triangle.
func ExampleSymmetricGaussian() {
	grid := mech.Grid(1, 2*2, 2)
	triangle := []int64{int64(50 / grid), int64(-3 / grid), int64(20 / grid)}
	m := mech.SymmetricGaussian{Sigma: 0.5}
	err := m.Add(triangle, grid, 1+mech.Slack(grid, 2*2, 2), noise.NewSeeded(1, "matrix", 0))
	fmt.Println(m.Event(), err)
	for _, k := range triangle {
		fmt.Printf("%.1f ", float64(k)*grid)
	}
	// Output:
	// Gaussian(σ=0.5) <nil>
	// 49.8 -2.8 20.0
}
