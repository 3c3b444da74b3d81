package main

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/privacy/noise"
)

// values are rows of dim numbers of the grid 2⁻²⁰, of norm at most 1.
func values(n, dim int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := new(data.Arena).Floats(n * dim)
	scale := 0x1p20 / math.Sqrt(float64(dim)) * 0x1p-31
	for i := 0; i < len(x); i += 2 {
		v := r.Uint64()
		x[i] = float32(math.Trunc(float64(int32(v))*scale)) * 0x1p-20
		if i+1 < len(x) {
			x[i+1] = float32(math.Trunc(float64(int32(v>>32))*scale)) * 0x1p-20
		}
	}
	return x
}

// pass is one fused pass of a logistic model over all rows: margins, sigmoid,
// coefficients and the sum, for tiles of rows that stay in the first-level cache.
func pass[T float32 | float64](grad, w, z, one []float64, x []T, size int) {
	d := len(w)
	tile := max(4, min(len(z), 24<<10/(size*d)&^3))
	for i := 0; i*d < len(x); i += tile {
		rows := x[i*d : min(len(x), (i+tile)*d)]
		z := z[:len(rows)/d]
		kern.Dot(z, rows, d, nil, w)
		kern.Sigmoid(z, z)
		kern.Coef(z, one[:len(z)], z, 0x1p-22)
		kern.Axpy(grad, z, rows, d, nil)
	}
}

// shortPass is pass over rows of 16-bit numbers, for tiles of rows that stay in the second-level cache.
type shortPass struct {
	x       []int16
	stride  int
	scale   []float64
	words   kern.Shorts
	weights [1]kern.ShortLimbs
}

// newShortPass is for rows of dim numbers each, multiples of 2⁻²⁰ and of norm at most 1.
func newShortPass(x []float32, dim int) *shortPass {
	b := &data.Block{N: len(x) / dim, Dim: dim, X: x, Norm: make([]float32, len(x)/dim)}
	b = (&data.Table{Dim: dim, NormBound: 1, Unit: 0x1p-20, Blocks: []*data.Block{b}}).Shorten().Blocks[0]
	p := &shortPass{x: b.Shorts, stride: b.Short.Stride}
	for i := range b.N {
		p.scale = append(p.scale, b.Scale(i))
	}
	return p
}

func (p *shortPass) run(grad, w, z, one []float64) {
	const tile = 64
	p.words.Set(w, 1, len(w), p.stride)
	for i := 0; i < len(p.scale); i += tile {
		m := min(tile, len(p.scale)-i)
		rows, z := p.x[i*p.stride:][:m*p.stride], z[:m]
		p.words.Dot(z, m, rows, p.scale[i:][:m])
		kern.Sigmoid(z, z)
		kern.Coef(z, one[:m], z, 0x1p-15)
		p.weights[0].Set(z, 0x1p-15)
		kern.AddShorts(grad, len(w), p.weights[:], rows, p.stride, m, 0x1p-35)
	}
}

func passes(r *results) error {
	for _, c := range []struct{ n, dim int }{{500_000, 54}, {16_000, 2000}, {32_561, 106}} {
		x := values(c.n, c.dim, 1)
		grad, w := make([]float64, c.dim), make([]float64, c.dim)
		z, one := make([]float64, 1024), make([]float64, 1024)
		for j := range w {
			w[j] = float64(j%7) - 3
		}
		for i := range one {
			one[i] = 1
		}
		x64 := make([]float64, len(x)/2) // the same memory
		for i := range x64 {
			x64[i] = float64(x[i])
		}
		rounds := 12
		t := best(rounds, func() { kern.Sweep(x) },
			func() { pass(grad, w, z, one, x, 4) },
			func() { pass(grad, w, z, one, x64[:len(x64)/c.dim*c.dim], 8) })
		gb := float64(4*len(x)) / 1e9
		read := gb / t[0]
		if c.dim == 54 {
			r.put("read_gbs_1t", read, "GB/s, a loop that only reads 108 MB")
		}
		name := func(s string) string { return fmt.Sprintf("glm_%s_d%d", s, c.dim) }
		r.put(name("f32")+"_gbs", gb/t[1], "GB/s of rows, fused pass")
		r.put(name("f32")+"_of_read", t[0]/t[1], "of the read bandwidth over the same buffer")
		r.put(name("f64")+"_of_read", t[0]/t[2], "the same with float64 rows")
		if c.dim != 2000 {
			continue
		}
		short := newShortPass(x, c.dim)
		t = best(rounds, func() { pass(grad, w, z, one, x, 4) }, func() { short.run(grad, w, z, one) })
		r.put(name("i16")+"_ms", t[1]*1e3, "of 16,000 rows of 16-bit numbers")
		r.put(name("i16")+"_of_f32", t[1]/t[0], "of the same rows as float32")
	}
	return nil
}

func products(r *results) error {
	const n = 1 << 28
	var done32, done64 int
	t := best(6, func() { done32 = kern.Peak[float32](n) }, func() { done64 = kern.Peak[float64](n / 2) })
	peak32, peak64 := 2*float64(done32)/t[0]/1e9, 2*float64(done64)/t[1]/1e9
	r.put("fma_peak_gflops_1t", peak32, "GFLOP/s, float32, a loop of multiply-adds")
	r.put("fma_peak_f64_gflops_1t", peak64, "the same, float64")
	for _, c := range []struct {
		name    string
		m, k, n int
	}{{"1024", 1024, 1024, 1024}, {"256x784x1000", 256, 784, 1000}, {"128x784x128", 128, 784, 128}} {
		f32, f64 := product[float32](c.m, c.k, c.n), product[float64](c.m, c.k, c.n)
		var d32, d64 int
		small := 1 << 26
		times := max(1, 1<<31/(2*c.m*c.k*c.n)) // some ten milliseconds, as in a loop of training
		many := func(f func(ta, tb bool), ta, tb bool) func() {
			return func() {
				for range times {
					f(ta, tb)
				}
			}
		}
		t := best(8, func() {
			d32 = kern.Peak[float32](small)
		}, many(f32, false, false), many(f32, true, false), many(f32, false, true),
			func() { d64 = kern.Peak[float64](small / 2) }, many(f64, false, false))
		work := 2 * float64(c.m) * float64(c.k) * float64(c.n) * float64(times)
		of := func(i int, done int, peak float64) float64 { return work / t[i] / (2 * float64(done) / peak) }
		r.put("gemm_f32_"+c.name+"_of_peak", of(1, d32, t[0]), "of the multiply-add peak, A·B")
		r.put("gemm_f32_tn_"+c.name+"_of_peak", of(2, d32, t[0]), "Aᵀ·B")
		r.put("gemm_f32_nt_"+c.name+"_of_peak", of(3, d32, t[0]), "A·Bᵀ")
		r.put("gemm_f64_"+c.name+"_of_peak", of(5, d64, t[4]), "of the float64 peak, A·B")
	}
	return nil
}

// product returns a product of matrices of that size.
func product[T float32 | float64](m, k, n int) func(ta, tb bool) {
	a, b, c := make([]T, m*k), make([]T, k*n), make([]T, m*n)
	for i := range a {
		a[i] = T(i%13) - 6
	}
	for i := range b {
		b[i] = T(i%11) - 5
	}
	return func(ta, tb bool) {
		lda, ldb := k, n
		if ta {
			lda = m
		}
		if tb {
			ldb = k
		}
		kern.Gemm(ta, tb, m, n, k, a, lda, b, ldb, c, n)
	}
}

func noises(r *results) error {
	const n, times = 2048, 200
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		return err
	}
	stream := cipher.NewCTR(block, make([]byte, 16))
	bytes := make([]byte, 8*n)
	draw := func() {
		clear(bytes)
		stream.XORKeyStream(bytes, bytes)
	}
	many := func(f func()) func() {
		return func() {
			for range times {
				f()
			}
		}
	}
	src, counts := noise.NewSeeded(1, "bench", 0), make([]int64, n)
	t := best(15, many(draw),
		many(func() { src.AddGaussian(counts, 0x1p24) }),
		many(func() { src.AddLaplace(counts, 0x1p24) }))
	ns := func(s float64) float64 { return s / (n * times) * 1e9 }
	r.put("aes_ns", ns(t[0]), "ns for 8 bytes of AES-256-CTR")
	r.put("noise_exact_ns", ns(t[1]), "ns a value of the exactly rounded Gaussian of private releases, ChaCha8 included")
	r.put("laplace_exact_ns", ns(t[2]), "the same for Laplace")
	r.put("noise_of_aes", t[1]/t[0], "a Gaussian value with its bits over 8 bytes of AES-256-CTR")
	r.put("laplace_of_aes", t[2]/t[0], "the same for Laplace")
	return nil
}
