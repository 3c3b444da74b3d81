package audit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Quantiles of the normal and chi-square laws, and a beta law, as printed in tables.
func TestLaws(t *testing.T) {
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
	}
	near("z(0.05)", Normal(0.05), 1.6448536269514722, 1e-12)
	near("z(1e-5)", Normal(1e-5), 4.264890793922825, 1e-10)
	near("χ² 1, 0.95", ChiQuantile(1, 0.95), 3.841458820694124, 1e-9)
	near("χ² 10, 0.05", ChiQuantile(10, 0.05), 3.940299136076163, 1e-9)
	near("χ² 100, 0.975", ChiQuantile(100, 0.975), 129.56119718583, 1e-9)
	// Wilson and Hilferty's approximation is within 1e-7 here.
	k := 1e6
	near("χ² 10⁶, 1e-5", ChiQuantile(1e6, 1e-5), k*math.Pow(1-2/(9*k)-Normal(1e-5)*math.Sqrt(2/(9*k)), 3), 1e-7)
	near("beta 1, 0.2", betaLower(1, 0.2), 0.2, 1e-12)
	near("beta 2, 0.25", betaLower(2, 0.25), 0.15625, 1e-12)
	near("beta ½, 0.3", betaLower(0.5, 0.3), 2/math.Pi*math.Asin(math.Sqrt(0.3)), 1e-11)
	near("beta 10⁵, ½", betaLower(1e5, 0.5), 0.5, 1e-6)
	s := math.Sqrt(1 / (4 * (2e5 + 1))) // of the beta law, nearly normal
	near("beta 10⁵, 3 σ below", betaLower(1e5, 0.5-3*s), 0.0013498980316301, 1e-3)
}

// Values that are independent are called otherwise no more often than stated, each test in 2,000 trials at level 0.05: by chance a line
// fails once in 10⁶. Values that are not are called so.
func TestResiduals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	pairs := func(a, b []float64) float64 {
		var p Pairing
		p.Add(a, b)
		return p.P()
	}
	alarms := map[string]int{}
	for range 2000 {
		a, b := normal(50), normal(50)
		if pairs(a, b) <= 0.05 {
			alarms["pairs"]++
		}
		if Kolmogorov(a) <= 0.05 {
			alarms["law"]++
		}
		k := 0
		for range 100 {
			if rng.Float64() < 0.1 {
				k++
			}
		}
		if Share(k, 100, 0.1) <= 0.05 {
			alarms["share"]++
		}
	}
	for name, n := range alarms {
		if n > 150 {
			t.Errorf("%s: %d alarms in 2000 at level 0.05", name, n)
		}
	}
	if n := alarms["pairs"]; n < 60 { // exact: 100 expected
		t.Errorf("pairs: %d alarms in 2000 at level 0.05", n)
	}
	a, b := normal(1000), normal(1000)
	for i := range b {
		b[i] = 0.3*a[i] + 0.9*b[i]
	}
	flat := make([]float64, 2000)
	for i := range flat {
		flat[i] = math.Sqrt(3) * (2*rng.Float64() - 1) // of variance 1
	}
	for name, p := range map[string]float64{"pairs": pairs(a, b), "the same twice": pairs(a, a), "law": Kolmogorov(flat), "share": Share(200, 1000, 0.1)} {
		if p > 1e-4 {
			t.Errorf("%s: %v", name, p)
		}
	}
}

// Shift is above the truth in at most as many of 2,000 trials as stated at 0.05, give or take chance of 10⁻⁶, and not far below it.
func TestShift(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, scale := range []float64{0.5, 1, 7} {
		above, sum := 0, 0.0
		for range 2000 {
			var in, out []float64
			for range 200 {
				in, out = append(in, scale*(1+rng.NormFloat64())), append(out, scale*rng.NormFloat64())
			}
			got := Shift(in, out, 0.05)
			if sum += got; got > 1 {
				above++
			}
		}
		if above > 150 || sum/2000 < 0.7 {
			t.Errorf("scale %v: above the truth %d times of 2000, %.3f on average", scale, above, sum/2000)
		}
	}
	if got := Shift(nil, []float64{1}, 0.05); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Randomized response with ε = 1 is not refuted more often than stated, and its half is.
func TestSplits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	honest := math.E / (1 + math.E)
	answers := func(p float64) []float64 {
		v := make([]float64, 2000)
		for i := range v {
			if rng.Float64() < p {
				v[i] = 1
			}
		}
		return v
	}
	claim := func(e float64) Curve {
		var c Curve
		for k := range 50 {
			x := e * float64(k) / 49
			c.Epsilon, c.Delta = append(c.Epsilon, x), append(c.Delta, (math.Exp(e)-math.Exp(x))/(1+math.Exp(e)))
		}
		return c
	}
	wrong, plain := 0, 0
	for range 300 {
		s := Splits(answers(honest), answers(1-honest), []float64{0.5, -1, 2}, 0.05)
		if claim(1).Refutes(s) {
			wrong++
		}
		if EpsilonOf(s, 0) > 1 {
			plain++
		}
		if !claim(0.5).Refutes(s) {
			t.Error("half of ε is not refuted")
		}
	}
	if wrong > 15+20 || plain > 15+20 {
		t.Errorf("refuted %d times of 300, above the truth %d times, at level 0.05", wrong, plain)
	}
}
