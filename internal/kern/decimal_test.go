package kern

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// Decimals are what strconv says, of numbers of all sizes, of short texts, and of those beside powers of two and ten; its kernel gives the
// bits of its twin, and few have no proof.
func TestDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(46, 1))
	var x []float32
	for range 100_000 {
		x = append(x, float32(2*r.Float64()-1), float32(r.NormFloat64()), float32(math.Round(1e4*r.NormFloat64())/1e4),
			float32(math.Exp(20*(r.Float64()-0.4))))
	}
	common := len(x)
	for _, base := range []float64{2, 10} {
		for exponent := -14; exponent <= 24; exponent++ {
			bits := math.Float32bits(float32(math.Pow(base, float64(exponent))))
			for step := range uint32(401) {
				v := math.Float32frombits(bits + step - 200)
				x = append(x, v, -v)
			}
		}
	}
	for range 100_000 {
		x = append(x, math.Float32frombits(r.Uint32()))
	}
	x = append(x, 0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)))
	twins(t, "Decimals", make([]float64, len(x)), func(dst []float64) {
		unproven := 0
		Decimals(dst, x)
		for i, got := range dst {
			want, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x[i]), 'g', -1, 32), 64)
			if got != got {
				if i < common {
					unproven++
				}
			} else if math.Float64bits(got) != math.Float64bits(want) {
				t.Fatalf("%v (%x): %v, want %v", x[i], math.Float32bits(x[i]), got, want)
			}
		}
		if unproven > common/50 {
			t.Errorf("%d of %d common numbers have no proof", unproven, common)
		}
	})
}

func BenchmarkDecimals(b *testing.B) {
	r := rand.New(rand.NewPCG(46, 1))
	x := make([]float32, 2048)
	for i := range x {
		x[i] = float32(2*r.Float64() - 1)
	}
	dst := make([]float64, len(x))
	for b.Loop() {
		Decimals(dst, x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/value")
}
