package noise_test

import (
	"fmt"

	"github.com/sottodp/sotto/privacy/noise"
)

// Noise is added to whole numbers. A seeded stream repeats and hides nothing from those who know the seed;
// NewSecure is for rows of people.
func ExampleSource_AddGaussian() {
	a, b := []int64{100, 200}, []int64{100, 200}
	noise.NewSeeded(1, "example", 0).AddGaussian(a, 10)
	noise.NewSeeded(1, "example", 0).AddGaussian(b, 10)
	fmt.Println(a[0] == b[0] && a[1] == b[1], a[0] == 100)
	// Output:
	// true false
}
