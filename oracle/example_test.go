package oracle_test

import (
	"fmt"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/privacy/clip"
	"github.com/sottodp/sotto/privacy/mech"
	"github.com/sottodp/sotto/privacy/sample"
)

// What a batch costs is known before there is a batch. Two questions about one
// sample are composed inside the sampling event, and amplified once.
func ExamplePublic_Cost() {
	coarse := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 2}}
	fine := oracle.Grad{Clip: clip.Norm{C: 1}, Noise: mech.Gaussian{Sigma: 1}}
	fmt.Println(oracle.Public{}.Cost(sample.Full{}, []oracle.Query{coarse}))
	fmt.Println(oracle.Public{}.Cost(sample.Poisson{Rate: 0.01}, []oracle.Query{coarse, fine}))
	// Output:
	// Gaussian(σ=2)
	// Poisson(q=0.01, Gaussian(σ=2) + Gaussian(σ=1))
}

// Noise without a clip bound would be noise without a meaning.
func ExampleGrad_Validate() {
	q := oracle.Grad{Clip: clip.None{}, Noise: mech.Gaussian{Sigma: 1}}
	fmt.Println(q.Validate() != nil)
	// Output: true
}
