package method

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// TestCalibrateIsTheUpdate: of curvatures that need no clipping a and b are those of the formula, in matrices; of two classes and of more.
func TestCalibrateIsTheUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, from, to float64) float64 { return rapid.Float64Range(from, to).Draw(t, name) }
		rows, noise := draw("rows", 50, 1e6), math.Exp(draw("noise", -20, 10))
		bound, a0, b0, ta, tb := draw("bound", 0.5, 10), draw("a0", 0.1, 1), draw("b0", -2, 2), draw("ta", 0.1, 1), draw("tb", 0.1, 2)
		update := func(h *mat.Dense, p, g []float64) *mat.VecDense {
			k := len(g)
			var hp, s, x, move mat.Dense
			hp.Mul(h, mat.NewDiagDense(k, p))
			s.Mul(&hp, h)
			s.Add(&s, h)
			for j := range k {
				s.Set(j, j, s.At(j, j)+noise*noise)
			}
			if err := x.Solve(&s, mat.NewVecDense(k, g)); err != nil {
				t.Fatal(err)
			}
			move.Mul(hp.T(), &x)
			return mat.NewVecDense(k, mat.Col(nil, 0, &move))
		}
		near := func(name string, got, want, scale float64) {
			if !(math.Abs(got-want) <= 1e-6*(scale+math.Abs(want))) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		v := rows * draw("v", 0.02, 0.25)
		vuu := max(0.001*rows, v*draw("vuu", 0, 1))
		vu := draw("vu", -0.9, 0.9) * math.Sqrt(v*vuu)
		g := []float64{rows * draw("g1", -1, 1), rows * draw("g2", -1, 1)}
		a, b := calibrated([]float64{g[0], g[1], v, vu, vuu}, rows, noise, bound, a0, b0, ta, tb)
		move := update(mat.NewDense(2, 2, []float64{v, vu, vu, vuu}), []float64{tb * tb, ta * bound * ta * bound}, g)
		near("b", b, b0-move.AtVec(0), 1)
		near("a", a, a0*min(max(math.Exp(-move.AtVec(1)/bound/a0), 0.02), 1.3), 1)

		k := rapid.IntRange(2, 9).Draw(t, "k")
		answer, offsets, p, h := make([]float64, 2*k+2), make([]float64, k), make([]float64, k+1), mat.NewDense(k+1, k+1, nil)
		for c := range k + 1 {
			answer[c], answer[k+1+c] = rows*draw("g", -1, 1), rows*draw("h", 0.02, 0.25)
			h.Set(c, c, answer[k+1+c])
			if p[c] = tb * tb; c == k {
				p[c] = ta * bound * ta * bound
			} else {
				offsets[c] = draw("offset", -2, 2)
			}
		}
		a, shifts := calibratedClasses(answer, rows, noise, bound, a0, offsets, ta, tb, 0)
		move = update(h, p, answer[:k+1])
		near("a", a, a0*min(max(math.Exp(-move.AtVec(k)/bound/a0), 0.02), 1.3), 1)
		mean := 0.0
		for c := range k {
			mean += (offsets[c] - move.AtVec(c)) / float64(k)
		}
		for c := range k {
			near("b", shifts[c], offsets[c]-move.AtVec(c)-mean, 10)
		}
	})
}

// TestCalibrateWithinBounds: whatever is answered, a and b are finite, a within its limits and b no further than its slope can say; noise
// that is far above all rows leaves both as they were.
func TestCalibrateWithinBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 7))
	for range 20000 {
		k := 1 + rnd.IntN(6)
		if k == 2 {
			k = 3
		}
		numbers := 2 * (k + 1)
		if k == 1 {
			numbers = 5
		}
		answer := make([]float64, numbers)
		for j := range answer {
			answer[j] = rnd.NormFloat64() * math.Exp(30*rnd.Float64()-10)
		}
		rows, noise := math.Exp(15*rnd.Float64()), math.Exp(20*rnd.Float64()-10)
		for _, noise := range []float64{0, noise, 1e30} {
			a, b := 0.0, make([]float64, k)
			if k == 1 {
				a, b[0] = calibrated(answer, rows, noise, 6, 0.7, 0, 0.5, 1)
			} else {
				a, b = calibratedClasses(answer, rows, noise, 6, 0.7, make([]float64, k), 0.5, 1, float64(rnd.IntN(3)))
			}
			if !(a >= 0.0139999 && a <= 0.9100001) || noise == 1e30 && math.Abs(a-0.7) > 1e-9 {
				t.Fatalf("%v of %v rows with noise %v: a is %v", answer, rows, noise, a)
			}
			for _, b := range b {
				if math.IsNaN(b) || math.IsInf(b, 0) || noise == 1e30 && math.Abs(b) > 1e-9 {
					t.Fatalf("%v of %v rows with noise %v: b is %v", answer, rows, noise, b)
				}
			}
		}
	}
}

// TestCalibrateReturns: margins that are too large by a fifth, and classes that are rarer than the model thinks, are brought most of the
// way back by one look at 20,000 rows.
func TestCalibrateReturns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 8))
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	const n, bound, factor, offset, noise = 20000, 6, 0.8, -0.5, 10.0
	answer := make([]float64, 5)
	for range n {
		z := min(max(2.5*rnd.NormFloat64(), -bound), bound)
		y := 0.0
		if rnd.Float64() < sigmoid(factor*z+offset) {
			y = 1
		}
		u, p := z/bound, sigmoid(z)
		r, v := p-y, p*(1-p)
		for j, x := range []float64{r, r * u, v, v * u, v * u * u} {
			answer[j] += x
		}
	}
	for j := range answer {
		answer[j] += noise * rnd.NormFloat64()
	}
	a, b := calibrated(answer, n, noise, bound, 1, 0, 0.5, 1)
	if math.Abs(a-factor) > 0.1 || math.Abs(b-offset) > 0.1 {
		t.Errorf("a is %v and b %v; margins are of %v and %v", a, b, factor, offset)
	}
}

// TestCalibrateClear: where a curvature is not seen above its noise, a slope of one deviation moves the factor of classes by a tenth at most,
// and by more without the floor; a curvature that is seen is taken as it is.
func TestCalibrateClear(t *testing.T) {
	const rows, noise = 20000.0, 100.0
	at := func(curvature, clear float64) float64 {
		a, _ := calibratedClasses([]float64{0, 0, 0, noise, 4000, 4000, 4000, curvature}, rows, noise, 6, 1, make([]float64, 3), 0.5, 1, clear)
		return a
	}
	if floored, free := at(30, lastClear), at(30, 0); !(floored > 0.9 && floored < 1 && free < 0.85) {
		t.Errorf("the factor is %v, and without the floor %v", floored, free)
	}
	if floored, free := at(3*noise, lastClear), at(3*noise, 0); floored != free {
		t.Errorf("with a curvature that is seen the factor is %v, without the floor %v", floored, free)
	}
}
