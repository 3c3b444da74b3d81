package schedule_test

import (
	"fmt"

	"github.com/sottodp/sotto/method/schedule"
)

// ZCDP spreads a budget over steps: a step whose noise counts more in the last error gets more of it, and so less noise.
func ExampleZCDP() {
	rho, err := schedule.ZCDP([]float64{1, 16}, 0.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", rho)
	// Output:
	// [0.100 0.400]
}
