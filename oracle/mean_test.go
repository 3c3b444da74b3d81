package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sottodp/sotto/oracle"
)

// TestCenter: whatever was released, a center is within the bound, on the grid of rows for any bound, 0 at the intercept, and close
// to the mean where that is within the bound.
func TestCenter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(44, 2))
	for range 2000 {
		dim := 1 + rnd.IntN(8)
		pub := oracle.Public{NormBound: math.Exp2(rnd.Float64()*40 - 20), Intercept: rnd.IntN(2) * dim}
		if rnd.IntN(3) == 0 {
			pub.NormBound = math.Exp2(float64(rnd.IntN(9) - 4))
		}
		mean, before := make([]float64, dim), make([]float64, dim)
		far := math.Exp2(float64(rnd.IntN(80) - 40))
		for j := range mean {
			mean[j] = rnd.NormFloat64() * pub.NormBound * far
			if rnd.IntN(200) == 0 {
				mean[j] = []float64{math.Inf(1), math.NaN(), math.MaxFloat64, 5e-324}[rnd.IntN(4)]
			}
			before[j] = mean[j]
		}
		pub.Center(mean)
		square, length := 0.0, 0.0
		unit := math.Exp2(math.Ceil(math.Log2(pub.NormBound)) - 20) // 2⁻²⁰ of the smallest power of two that is not below the bound
		for j, v := range mean {
			square += v * v
			if v/unit != math.Trunc(v/unit) || math.Signbit(v) && v == 0 {
				t.Fatalf("%v is no multiple of %v", v, unit)
			}
			length = math.Hypot(length, before[j])
		}
		if !(square <= pub.NormBound*pub.NormBound) {
			t.Fatalf("%v became a center of norm %v, the bound is %v", before, math.Sqrt(square), pub.NormBound)
		}
		for j, v := range mean {
			if length < pub.NormBound*0.999 && math.Abs(v-before[j]) > pub.NormBound*0x1p-17 {
				t.Fatalf("%v became %v", before[j], v)
			}
		}
	}
}
