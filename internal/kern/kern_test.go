package kern

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// matrix is a random matrix in both forms, values on the grid 2⁻²⁰.
type matrix struct {
	n, dim, stride int
	x              []float32
	start, col     []int32
	val            []float32
}

func draw(t *rapid.T) (matrix, []int32) {
	m := matrix{n: rapid.IntRange(0, 13).Draw(t, "n"), dim: rapid.IntRange(1, 19).Draw(t, "dim")}
	m.stride = m.dim + rapid.IntRange(0, 3).Draw(t, "pad")
	m.x = make([]float32, m.n*m.stride)
	for i := range m.x {
		m.x[i] = float32(math.NaN()) // padding must never be read
	}
	m.start = []int32{0}
	for i := range m.n {
		for j := range m.dim {
			v := float32(0)
			if rapid.Bool().Draw(t, "set") {
				v = float32(rapid.IntRange(-1<<20, 1<<20).Draw(t, "v")) * 0x1p-20
			}
			m.x[i*m.stride+j] = v
			if v != 0 {
				m.col, m.val = append(m.col, int32(j)), append(m.val, v)
			}
		}
		m.start = append(m.start, int32(len(m.col)))
	}
	var rows []int32
	if m.n > 0 && rapid.Bool().Draw(t, "listed") {
		rows = rapid.SliceOf(rapid.Int32Range(0, int32(m.n-1))).Draw(t, "rows")
		if rows == nil {
			rows = []int32{}
		}
	}
	return m, rows
}

func (m matrix) count(rows []int32) int {
	if rows != nil {
		return len(rows)
	}
	return m.n
}

func (m matrix) at(rows []int32, i int) []float32 {
	if rows != nil {
		i = int(rows[i])
	}
	return m.x[i*m.stride:][:m.dim]
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// margin is the definition of a margin, word for word.
func margin[T float](x []T, w []float64) float64 {
	var s [8]float64
	for j := range x {
		s[j%8] = math.FMA(float64(x[j]), w[j], s[j%8])
	}
	for j := range 4 {
		s[j] += s[j+4]
	}
	return (s[0] + s[1]) + (s[2] + s[3]) + 0
}

// TestDot: the margin is what its definition says, in both forms, however the rows
// are grouped.
func TestDot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, rows := draw(t)
		w := rapid.SliceOfN(rapid.Float64Range(-1e3, 1e3), m.dim, m.dim).Draw(t, "w")
		want := make([]float64, m.count(rows))
		for i := range want {
			want[i] = margin(m.at(rows, i), w)
		}
		got, sparse := make([]float64, len(want)), make([]float64, len(want))
		Dot(got, m.x, m.stride, rows, w)
		DotCSR(sparse, m.start, m.col, m.val, rows, w)
		if !same(got, want) || !same(sparse, want) {
			t.Fatalf("Dot %v, DotCSR %v, by definition %v", got, sparse, want)
		}
	})
}

// TestAxpy: with weights on a grid, both forms equal the sum in big integers.
func TestAxpy(t *testing.T) {
	const unit = 0x1p-22
	rapid.Check(t, func(t *rapid.T) {
		m, rows := draw(t)
		a := make([]float64, m.count(rows))
		for i := range a {
			a[i] = float64(rapid.IntRange(-1<<22, 1<<22).Draw(t, "a")) * unit
		}
		want := make([]float64, m.dim)
		for j := range want {
			sum := new(big.Int)
			for i := range a {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(a[i]/unit)), big.NewInt(int64(m.at(rows, i)[j]*0x1p20))))
			}
			f, _ := sum.Float64()
			want[j] = f * unit * 0x1p-20
		}
		got, sparse := make([]float64, m.dim), make([]float64, m.dim)
		Axpy(got, a, m.x, m.stride, rows)
		AxpyCSR(sparse, a, m.start, m.col, m.val, rows)
		if !slices.Equal(got, want) || !slices.Equal(sparse, want) {
			t.Fatalf("Axpy %v, AxpyCSR %v, exact %v", got, sparse, want)
		}
	})
}

// TestAbs1: never below the exact sum, and above it by rounding only.
func TestAbs1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, rows := draw(t)
		got, sparse := make([]float64, m.count(rows)), make([]float64, m.count(rows))
		Abs1(got, m.x, m.stride, rows, m.dim)
		Abs1CSR(sparse, m.start, m.col, m.val, rows, m.dim)
		if !same(got, sparse) {
			t.Fatalf("Abs1 %v, Abs1CSR %v", got, sparse)
		}
		for i := range got {
			want := new(big.Float).SetPrec(2000)
			for _, x := range m.at(rows, i) {
				want.Add(want, big.NewFloat(math.Abs(float64(x))))
			}
			w, _ := want.Float64()
			for _, g := range []float64{got[i], sparse[i]} {
				if big.NewFloat(g).Cmp(want) < 0 || g > w*(1+1e-13) {
					t.Fatalf("row %d: got %v, want %v rounded up", i, g, want)
				}
			}
		}
	})
}

func TestCoef(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct{ c, s, unit, want float64 }{
		{0, nan, 0, 0}, {0, inf, 0, 0}, {0.5, 3, 0, 1.5},
		{0, nan, 0.25, 0}, {0, inf, 0.25, 0}, {1, nan, 0.25, 0}, {1, -inf, 0.25, 0}, {nan, 1, 0.25, 0},
		{1, 0.9, 0.25, 0.75}, {1, -0.9, 0.25, -0.75}, {1, 0.24, 0.25, 0}, {0.5, -1.5, 0.25, -0.75},
		{1, 1e290, 0x1p-30, 1e290}, {1, 1e300, 0x1p-60, 0}, // beyond the range even in units: counts as not finite
	} {
		got := []float64{9}
		Coef(got, []float64{c.c}, []float64{c.s}, c.unit)
		if got[0] != c.want {
			t.Errorf("Coef(c=%v, s=%v, unit=%v) = %v, want %v", c.c, c.s, c.unit, got[0], c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c, s := rapid.Float64Range(0, 1).Draw(t, "c"), rapid.Float64Range(-100, 100).Draw(t, "s")
		unit := math.Ldexp(1, rapid.IntRange(-40, 3).Draw(t, "unit"))
		got := []float64{0}
		Coef(got, []float64{c}, []float64{s}, unit)
		if k := got[0] / unit; k != math.Trunc(k) {
			t.Fatalf("%v is no multiple of %v", got[0], unit)
		}
		if math.Abs(got[0]) > math.Abs(c*s) || math.Abs(got[0]-c*s) >= unit {
			t.Fatalf("Coef(%v·%v) = %v is not the truncation to multiples of %v", c, s, got[0], unit)
		}
	})
}

// TestSigmoidLog1pExp holds both against 200-bit values of e^z from repeated
// squaring, over the whole range of margins.
func TestSigmoidLog1pExp(t *testing.T) {
	zs := []float64{0, 1e-300, -1e-300, 1e-17, -1e-17, 0.5, -0.5, 1, -1, 10, -10, 36, -36, 37.5, -37.5, 100, -100, 700, -700}
	got, soft := make([]float64, len(zs)), make([]float64, len(zs))
	Sigmoid(got, zs)
	Log1pExp(soft, zs)
	for i, z := range zs {
		e := bigExp(-z)
		want, _ := new(big.Float).Quo(big.NewFloat(1), new(big.Float).Add(big.NewFloat(1).SetPrec(3000), e)).Float64()
		if math.Abs(got[i]-want) > 4e-16*want {
			t.Errorf("Sigmoid(%v) = %v, want %v", z, got[i], want)
		}
		// ln(1+u) for u = e^z: u − u²/2 where u is small, z + ln(1+1/u) where large.
		u, _ := bigExp(z).Float64()
		wantSoft := math.Log1p(u)
		if z > 30 {
			wantSoft = z + 1/u
		}
		if math.Abs(soft[i]-wantSoft) > 4e-16*wantSoft {
			t.Errorf("Log1pExp(%v) = %v, want %v", z, soft[i], wantSoft)
		}
	}
	edge := []float64{1e4, -1e4, math.Inf(1), math.Inf(-1), math.NaN()}
	Sigmoid(got[:5], edge)
	Log1pExp(soft[:5], edge)
	for i, want := range []float64{1, 0, 1, 0, math.NaN()} {
		if !same(got[i:i+1], []float64{want}) && !(got[i] != got[i] && want != want) {
			t.Errorf("Sigmoid(%v) = %v, want %v", edge[i], got[i], want)
		}
	}
	for i, want := range []float64{1e4, 0, math.Inf(1), 0, math.NaN()} {
		if soft[i] != want && !(soft[i] != soft[i] && want != want) {
			t.Errorf("Log1pExp(%v) = %v, want %v", edge[i], soft[i], want)
		}
	}
}

// bigExp is e^z by its series at z·2⁻¹², squared twelve times.
func bigExp(z float64) *big.Float {
	r := new(big.Float).SetPrec(3000).SetFloat64(z)
	r.SetMantExp(r, -12)
	sum, term := big.NewFloat(1).SetPrec(3000), big.NewFloat(1).SetPrec(3000)
	for k := 1; k < 150; k++ {
		term.Mul(term, r).Quo(term, big.NewFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range 12 {
		sum.Mul(sum, sum)
	}
	return sum
}

// An epoch of the shape of Adult: 32,561 rows of 106 values in blocks of 1,024,
// and Poisson batches of 256 as lists of rows within each block.
type epoch struct {
	n, dim int
	blocks [][]float32
	steps  [][][]int32 // step, block → rows
	w      []float64
	z, one []float64
	grad   []float64
}

func newEpoch(n, dim, batch int) *epoch {
	rng := rand.New(rand.NewPCG(1, 2))
	e := &epoch{n: n, dim: dim, w: make([]float64, dim), grad: make([]float64, dim), z: make([]float64, 1024), one: make([]float64, 1024)}
	for i := range e.one {
		e.one[i] = 1
	}
	for i := range e.w {
		e.w[i] = rng.NormFloat64()
	}
	for at := 0; at < n; at += 1024 {
		b := make([]float32, min(1024, n-at)*dim)
		for i := range b {
			b[i] = float32(math.Trunc((rng.Float64()*2-1)*0x1p20/math.Sqrt(float64(dim)))) * 0x1p-20
		}
		e.blocks = append(e.blocks, b)
	}
	for range n / batch {
		step := make([][]int32, len(e.blocks))
		for i := range n {
			if rng.Float64() < float64(batch)/float64(n) {
				step[i/1024] = append(step[i/1024], int32(i%1024))
			}
		}
		e.steps = append(e.steps, step)
	}
	return e
}

func BenchmarkEpoch(b *testing.B) {
	e := newEpoch(32561, 106, 256)
	run := func(name string, dot, slope, axpy bool) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, step := range e.steps {
					for k, rows := range step {
						z := e.z[:len(rows)]
						if dot {
							Dot(z, e.blocks[k], e.dim, rows, e.w)
						}
						if slope {
							Sigmoid(z, z)
							Coef(z, e.one[:len(z)], z, 0x1p-22)
						}
						if axpy {
							Axpy(e.grad, z, e.blocks[k], e.dim, rows)
						}
					}
				}
			}
		})
	}
	run("dot", true, false, false)
	run("axpy", false, false, true)
	run("all", true, true, true)
}

func BenchmarkFull(b *testing.B) {
	for _, dim := range []int{54, 106, 2000} {
		e := newEpoch(8192, dim, 256)
		b.Run(fmt.Sprint("d=", dim), func(b *testing.B) {
			b.SetBytes(int64(e.n * dim * 4))
			for b.Loop() {
				for _, x := range e.blocks {
					z := e.z[:len(x)/dim]
					Dot(z, x, dim, nil, e.w)
					Sigmoid(z, z)
					Coef(z, e.one[:len(z)], z, 0x1p-22)
					Axpy(e.grad, z, x, dim, nil)
				}
			}
		})
	}
}

// TestExp holds the exponential, and with it the two functions made of it, to the
// errors that they state, against 3000-bit values, on random numbers.
func TestExp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	z := make([]float64, 600)
	for i := range z {
		z[i] = (r.Float64()*2 - 1) * math.Ldexp(700, -r.IntN(12))
	}
	e, s, l := make([]float64, len(z)), make([]float64, len(z)), make([]float64, len(z))
	Exp(e, z)
	Sigmoid(s, z)
	Log1pExp(l, z)
	one := big.NewFloat(1).SetPrec(3000)
	for i, v := range z {
		up := bigExp(v)
		off := func(got float64, want *big.Float) float64 {
			d := new(big.Float).SetPrec(3000).SetFloat64(got)
			f, _ := d.Quo(d.Sub(d, want), want).Float64()
			return math.Abs(f)
		}
		if d := off(e[i], up); d >= 0x1p-52 {
			t.Errorf("Exp(%v) is off by %v", v, d)
		}
		sig := new(big.Float).Quo(up, new(big.Float).Add(up, one))
		if d := off(s[i], sig); d >= 0x1p-51 {
			t.Errorf("Sigmoid(%v) is off by %v", v, d)
		}
		want := math.Log1p(math.Exp(v)) // itself within an ulp or two
		if v > 700 {
			want = v
		}
		if math.Abs(l[i]-want) > 0x1p-51*want {
			t.Errorf("Log1pExp(%v) = %v, want %v", v, l[i], want)
		}
	}
	edge := []float64{1000, 709.79, -745.2, -2000, math.Inf(1), math.Inf(-1), math.NaN(), 0, -708.5}
	want := []float64{math.Inf(1), math.Inf(1), 0, 0, math.Inf(1), 0, math.NaN(), 1, math.Exp(-708.5)}
	got := make([]float64, len(edge))
	Exp(got, edge)
	for i := range edge {
		if !equal(got[i], want[i]) && math.Abs(got[i]-want[i]) > 1e-320 {
			t.Errorf("Exp(%v) = %v, want %v", edge[i], got[i], want[i])
		}
	}
}

// TestNorm2: never below the exact norm, and above it by rounding only.
func TestNorm2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, rows := draw(t)
		got := make([]float64, m.count(rows))
		Norm2(got, m.x, m.stride, rows, m.dim)
		for i, g := range got {
			want := new(big.Float).SetPrec(2000)
			for _, x := range m.at(rows, i) {
				v := new(big.Float).SetPrec(2000).SetFloat64(float64(x))
				want.Add(want, v.Mul(v, v))
			}
			want.Sqrt(want)
			w, _ := want.Float64()
			if big.NewFloat(g).Cmp(want) < 0 || g > w*(1+1e-13) {
				t.Fatalf("row %d: got %v, want %v rounded up", i, g, want)
			}
		}
	})
}
