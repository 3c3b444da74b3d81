package privacy_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy"
)

// An event says what a run releases, without data: here 100 noisy sums, each over a sample of the rows. Its stored form
// reads back as the same event; package account says what it costs.
func Example() {
	e := privacy.Repeated{Count: 100, Of: privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 1.1}}}
	stored, err := privacy.MarshalEvent(e)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := privacy.UnmarshalEvent(stored)
	fmt.Println(e)
	fmt.Println(privacy.Equal(e, again), privacy.Contains[privacy.Gaussian](again), err)
	// Output:
	// 100 × Poisson(q=0.01, Gaussian(σ=1.1))
	// true true <nil>
}
