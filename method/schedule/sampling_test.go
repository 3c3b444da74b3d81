package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sottodp/sotto/method/schedule"
)

// TestSampleVariance: the mean of m of n vectors of norm at most C is off by no more than
// (3.13) in the mean square, both for a fixed size and for independent draws. The bound is
// attained by half of the vectors at C and half at −C. The mean of 4000 squares of nearly
// normal figures has a standard deviation of 2.2%, so that 15% is exceeded by one seed in 10⁹.
func TestSampleVariance(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const n, c = 60, 2.0
	g := make([]float64, n)
	for i := range g {
		g[i] = c * float64(1-2*(i%2)) // mean 0
	}
	for _, m := range []int{1, 6, 30, 59} {
		fixed, poisson := 0.0, 0.0
		const draws = 4000
		for range draws {
			sum := 0.0
			for _, i := range rnd.Perm(n)[:m] {
				sum += g[i]
			}
			fixed += sum * sum / float64(m*m) / draws
			sum = 0
			for i := range g {
				if rnd.Float64() < float64(m)/n {
					sum += g[i]
				}
			}
			poisson += sum * sum / float64(m*m) / draws
		}
		bound := schedule.SampleVariance(2*c, m, n)
		if math.Abs(fixed-bound) > 0.15*bound {
			t.Errorf("m = %d: %v, the bound is attained at %v", m, fixed, bound)
		}
		if poisson > bound*1.15 {
			t.Errorf("m = %d, independent draws: %v, the bound is %v", m, poisson, bound)
		}
	}
	if schedule.SampleVariance(1, 10, 10) != 0 {
		t.Error("all rows have a variance")
	}
}
