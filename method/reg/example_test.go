package reg_test

import (
	"fmt"

	"github.com/sottodp/sotto/method/reg"
)

// A regularizer is a public function of the parameters: here 0.1/2·‖w‖², and by how much a step raises it.
func Example() {
	r, err := reg.New("l2", 0.1)
	if err != nil {
		fmt.Println(err)
		return
	}
	w, p := []float64{3, 4}, []float64{-1, 0}
	fmt.Println(reg.Names())
	fmt.Printf("%.2f\n", reg.Rise(r, w, p, 1))
	// Output:
	// [l2 l1 nonconvex]
	// 0.35
}
