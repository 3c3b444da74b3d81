//go:build !race

package examples_test

import "testing"

// TestAdultNewton: one Hessian is worth many gradients. At the same budget DP-Newton has a lower training loss than DP-GD
// and DP-NAG-opt, and an accuracy that is at most a tenth of a point below theirs. Medians of 5 seeds.
func TestAdultNewton(t *testing.T) {
	t.Parallel()
	a := readAdult(t, "l2")
	for _, epsilon := range []float64{0.1, 1} {
		at := func(m string) (objective, accuracy float64) {
			var o, acc []float64
			for seed := range uint64(5) {
				got := a.fit(t, m, epsilon, 1e-6, seed, false)
				o, acc = append(o, got.objective), append(acc, got.accuracy)
			}
			return median(o), median(acc)
		}
		loss, accuracy := at("newton")
		for _, other := range []string{"sgd", "nag-opt"} {
			l, acc := at(other)
			t.Logf("ε = %g: newton %.4f, %.4f; %s %.4f, %.4f", epsilon, loss, accuracy, other, l, acc)
			if loss > l-0.002 || accuracy < acc-0.001 {
				t.Errorf("ε = %g: newton has a loss of %.4f and an accuracy of %.4f, %s %.4f and %.4f", epsilon, loss, accuracy, other, l, acc)
			}
		}
	}
}
