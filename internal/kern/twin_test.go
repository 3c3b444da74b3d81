package kern

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/sottodp/sotto/internal/race"
)

// levels are the sets of kernels that this machine has, the plain one first.
func levels() (all []level) {
	for l := plain; l <= best(); l++ {
		all = append(all, l)
	}
	return all
}

// under runs f under each level and returns the levels; use is restored.
func under(t testing.TB, f func()) {
	before := use
	defer func() { use = before }()
	for _, l := range levels() {
		use = l
		f()
	}
}

// equal says whether a and b are the same bits, or both NaN.
func equal(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// A twin runs a kernel under each level on copies of dst inside a larger array, and
// holds them against the plain one, and the array's rest against what it was.
func twins(t *testing.T, name string, dst []float64, f func(dst []float64)) {
	t.Helper()
	const guard = 40
	before := use
	defer func() { use = before }()
	var want []float64
	for _, l := range levels() {
		use = l
		room := make([]float64, len(dst)+2*guard)
		for i := range room {
			room[i] = 12345
		}
		got := room[guard : guard+len(dst) : guard+len(dst)]
		copy(got, dst)
		f(got)
		for i, v := range room {
			if (i < guard || i >= guard+len(dst)) && v != 12345 {
				t.Fatalf("%s %v: wrote %v at %d of %d", name, l, v, i-guard, len(dst))
			}
		}
		if l == plain {
			want = got
			continue
		}
		for i := range got {
			if !equal(got[i], want[i]) {
				t.Fatalf("%s %v: [%d] is %v (%x), its twin says %v (%x)", name, l, i, got[i], math.Float64bits(got[i]), want[i], math.Float64bits(want[i]))
			}
		}
	}
}

// strange is a number of any size, now and then one that is not finite, or a zero.
func strange(r *rand.Rand, rare int) float64 {
	switch r.IntN(rare) {
	case 0:
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 5e-324, -1e-310, math.MaxFloat64}[r.IntN(8)]
	case 1:
		return math.Float64frombits(r.Uint64())
	}
	return r.NormFloat64() * math.Ldexp(1, r.IntN(20)-10)
}

// FuzzRows holds every kernel over rows against its twin: sizes, strides, starts,
// lists and numbers of all kinds.
func FuzzRows(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), uint8(i), uint8(3*i+1), uint8(i%5), uint8(i%7), uint8(1+i%11))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, cols, pad, offset, classes uint8) {
		r := rand.New(rand.NewPCG(seed, 7))
		m, n, k := int(rows%40), int(cols)%150, int(classes%13)+1
		stride, rare := n+int(pad%9), []int{3, 50, 1 << 20}[seed%3]
		off := int(offset % 8)
		x32, x64 := make([]float32, off+m*stride+n), make([]float64, off+m*stride+n)
		for i := range x64 {
			x64[i] = strange(r, rare)
			x32[i] = float32(strange(r, rare))
		}
		x32, x64 = x32[off:], x64[off:]
		vector := func(n int) []float64 {
			v := make([]float64, off+n)
			for i := range v {
				v[i] = strange(r, rare)
			}
			return v[off:]
		}
		lists := [][]int32{nil, make([]int32, m)}
		for i := range m {
			lists[1][i] = int32(r.IntN(m))
		}
		w, a := vector(n*k), vector((m+3)*k)
		start, col, val := []int32{0}, []int32{}, []float32{}
		for range m {
			for j := range n {
				if r.IntN(3) == 0 {
					col, val = append(col, int32(j)), append(val, float32(strange(r, rare)))
				}
			}
			start = append(start, int32(len(col)))
		}
		next := [][]float32{x32, nil, x32[len(x32)/2:]}
		for i, rows := range lists {
			name := func(s string) string { return fmt.Sprintf("%s m=%d n=%d k=%d listed=%v", s, m, n, k, i == 1) }
			twins(t, name("Dot32"), vector(m), func(dst []float64) { Dot(dst, x32, stride, rows, w[:n]) })
			twins(t, name("Dot64"), vector(m), func(dst []float64) { Dot(dst, x64, stride, rows, w[:n]) })
			twins(t, name("DotCSR"), vector(m), func(dst []float64) { DotCSR(dst, start, col, val, rows, w[:n]) })
			twins(t, name("AxpyCSR"), vector(n), func(dst []float64) { AxpyCSR(dst, a[:m], start, col, val, rows) })
			twins(t, name("DotMany"), vector((m+3)*k), func(dst []float64) { DotMany(dst, m+3, x32, stride, rows, m, w, k, next) })
			twins(t, name("Axpy32"), vector(n), func(dst []float64) { Axpy(dst, a[:m], x32, stride, rows) })
			twins(t, name("Axpy64"), vector(n), func(dst []float64) { Axpy(dst, a[:m], x64, stride, rows) })
			twins(t, name("AxpyMany"), vector(n*k), func(dst []float64) { AxpyMany(dst, a, m+3, x32, stride, rows, m, k, next) })
			twins(t, name("Abs1"), vector(m), func(dst []float64) { Abs1(dst, x32, stride, rows, n) })
			twins(t, name("Norm2"), vector(m), func(dst []float64) { Norm2(dst, x32, stride, rows, n) })
		}
	})
}

// TestLongRows: rows longer than the blocks of the kernels for many classes, and more of
// them than go at a time, against the twins; as written and listed.
func TestLongRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	const m = 35
	for _, n := range []int{395, 400, 401, 409, 784, 799, 1203} {
		for _, k := range []int{5, 9, 10, 11, 15, 20, 27} {
			x := make([]float32, m*n)
			for i := range x {
				x[i] = float32(strange(r, 1<<20))
			}
			vector := func(n int) []float64 {
				v := make([]float64, n)
				for i := range v {
					v[i] = strange(r, 1<<20)
				}
				return v
			}
			w, a, list := vector(n*k), vector(m*k), make([]int32, m)
			var next [][]float32
			for i := range list {
				list[i] = int32(r.IntN(m))
				next = append(next, x[i*n:(i+1)*n])
			}
			for _, rows := range [][]int32{nil, list} {
				name := fmt.Sprintf("n=%d k=%d listed=%v", n, k, rows != nil)
				twins(t, "DotMany "+name, vector(m*k), func(dst []float64) { DotMany(dst, m, x, n, rows, m, w, k, next) })
				twins(t, "AxpyMany "+name, vector(n*k), func(dst []float64) { AxpyMany(dst, a, m, x, n, rows, m, k, next) })
			}
		}
	}
}

// FuzzPointwise does the same for the functions of one number.
func FuzzPointwise(f *testing.F) {
	for i := range 30 {
		f.Add(uint64(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) {
		r := rand.New(rand.NewPCG(seed, 8))
		z := make([]float64, size)
		for i := range z {
			z[i] = strange(r, []int{3, 10, 1000}[seed%3])
		}
		for name, fn := range map[string]func(dst, z []float64){"Exp": Exp, "Sigmoid": Sigmoid, "Log1pExp": Log1pExp} {
			twins(t, name, z, func(dst []float64) { fn(dst, z) })
			twins(t, name+" in place", z, func(dst []float64) { fn(dst, dst) })
		}
		c := make([]float64, size)
		for i := range c {
			c[i] = strange(r, []int{3, 10, 1000}[seed%3])
		}
		for _, unit := range []float64{0, 0x1p-22, 1, 0x1p-900, 0x1p900} {
			twins(t, "Coef", z, func(dst []float64) { Coef(dst, c, z, unit) })
			twins(t, "Coef in place", z, func(dst []float64) { Coef(dst, c, dst, unit) })
		}
	})
}

// TestOutside: a row outside the matrix panics under every level.
func TestOutside(t *testing.T) {
	x, w := make([]float32, 20), make([]float64, 5)
	for _, rows := range [][]int32{{4}, {-1}, {0, 1, 2, 3, 0, 9}} {
		under(t, func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: rows %v of a matrix of 4 rows were read", use, rows)
				}
			}()
			Dot(make([]float64, len(rows)), x, 5, rows, w)
		})
		under(t, func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: rows %v of a matrix of 4 rows were read", use, rows)
				}
			}()
			Axpy(w, make([]float64, len(rows)), x, 5, rows)
		})
		under(t, func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: rows %v of a matrix of 4 rows were read", use, rows)
				}
			}()
			Whole(make([]float64, 8*len(rows)), 8, []float64{1, 1, 1, 1, 1, 1}[:len(rows)], x, 5, rows, 5)
		})
	}
}

// TestColumns: a column outside the row panics wherever it stands, in whatever order.
func TestColumns(t *testing.T) {
	for at := range 11 {
		for _, bad := range []int32{-1, 5, math.MinInt32, math.MaxInt32} {
			col, val := make([]int32, 11), make([]float32, 11)
			col[at] = bad
			start := []int32{0, 11}
			for what, f := range map[string]func(){
				"DotCSR":  func() { DotCSR(make([]float64, 1), start, col, val, nil, make([]float64, 5)) },
				"AxpyCSR": func() { AxpyCSR(make([]float64, 5), []float64{1}, start, col, val, nil) },
			} {
				under(t, func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%v: %s took column %d of 5", use, what, bad)
						}
					}()
					f()
				})
			}
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		value string
		top   level
		want  level
		err   string
	}{
		{"", avx2, avx2, ""},
		{"go", avx512, plain, ""},
		{"avx2", avx512, avx2, ""},
		{"avx512", avx512, avx512, ""},
		{"avx512", avx2, plain, `SOTTO_KERN: found "avx512"; this machine allows: go, avx2`},
		{"sse", avx512, plain, `SOTTO_KERN: found "sse"; choose go, avx2, avx512`},
	} {
		got, err := choose(c.value, c.top)
		if got != c.want || fmt.Sprint(err) != c.err && !(err == nil && c.err == "") {
			t.Errorf("choose(%q, %v) = %v, %v; want %v, %q", c.value, c.top, got, err, c.want, c.err)
		}
	}
}

// FuzzGemm holds products against their definition: float64 bit for bit, float32 to
// the rounding of k terms and, of small whole numbers, exactly. All sets of kernels give the same bits.
func FuzzGemm(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), uint16(i*7%50), uint16(i*11%70), uint16(i*17%300), uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, ms, ns, ks uint16, flags uint8) {
		m, n, k := int(ms%50), int(ns%70), int(ks%300)
		ta, tb := flags&1 != 0, flags&2 != 0
		testGemm[float64](t, seed, ta, tb, m, n, k, int(flags>>2%8))
		testGemm[float32](t, seed, ta, tb, m, n, k, int(flags>>2%8))
	})
}

// TestGemm: sizes around and above the blocks.
func TestGemm(t *testing.T) {
	race.Skip(t)
	for i, size := range [][3]int{{1, 1, 1}, {12, 32, 256}, {13, 33, 257}, {241, 65, 513}, {500, 31, 40}, {5, 1030, 300}} {
		for form := range 4 {
			testGemm[float64](t, uint64(i), form&1 != 0, form&2 != 0, size[0], size[1], size[2], i)
			testGemm[float32](t, uint64(i), form&1 != 0, form&2 != 0, size[0], size[1], size[2], i)
		}
	}
}

func testGemm[T float](t *testing.T, seed uint64, ta, tb bool, m, n, k, pad int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 10))
	whole := seed%2 == 0
	matrix := func(rows, cols int) ([]T, int) {
		ld := cols + pad
		v := make([]T, max(0, (rows-1)*ld+cols))
		for i := range v {
			v[i] = T(r.NormFloat64())
			if whole {
				v[i] = T(r.IntN(17) - 8)
			}
		}
		return v, max(ld, 1)
	}
	a, lda := matrix(pick(ta, k, m), pick(ta, m, k))
	b, ldb := matrix(pick(tb, n, k), pick(tb, k, n))
	c, ldc := matrix(m, n)
	if seed%5 == 0 && len(a) > 0 && len(b) > 0 {
		a[r.IntN(len(a))], b[r.IntN(len(b))] = T(math.NaN()), T(math.Inf(1))
	}
	at := func(x []T, ld int, trans bool, i, j int) float64 {
		if trans {
			i, j = j, i
		}
		return float64(x[i*ld+j])
	}
	_, f32 := any(a).([]float32)
	var first []T
	under(t, func() {
		got := append([]T(nil), c...)
		Gemm(ta, tb, m, n, k, a, lda, b, ldb, got, ldc)
		if first == nil {
			first = got
		}
		for i := range got {
			if !equal(float64(got[i]), float64(first[i])) {
				t.Fatalf("%v %T ta=%v tb=%v %d×%d×%d: %d is %v, with the first set of kernels %v", use, a, ta, tb, m, n, k, i, got[i], first[i])
			}
		}
		for i := range got {
			row, col := i/ldc, i%ldc
			want, size := float64(c[i]), math.Abs(float64(c[i]))
			if col < n {
				for p := 0; p < k; p += termsOf(k) {
					var s float64
					for q := p; q < min(k, p+termsOf(k)); q++ {
						x, y := at(a, lda, ta, row, q), at(b, ldb, tb, q, col)
						s = math.FMA(x, y, s)
						size += math.Abs(x * y)
					}
					want += s
				}
			}
			if g := float64(got[i]); !equal(g, want) && !(f32 && !whole && math.Abs(g-want) <= float64(k+2)*0x1p-24*size) && g != want {
				t.Fatalf("%v %T ta=%v tb=%v %d×%d×%d: [%d %d] is %v, want %v", use, a, ta, tb, m, n, k, row, col, g, want)
			}
		}
	})
}

// TestFused32: against exact arithmetic, with sums near the middle of two float32 and below the normal ones.
func TestFused32(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	number := func() float32 {
		return float32(math.Ldexp(float64(r.IntN(1<<24)-1<<23), r.IntN(60)-40))
	}
	exact := func(a, b, c float32) float32 {
		sum := new(big.Float).SetPrec(2000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
		sum.Add(sum, big.NewFloat(float64(c)))
		f, _ := sum.Float32()
		return f
	}
	twice := 0
	for i := range 200000 {
		a, b, c := number(), number(), number()
		switch i % 4 {
		case 1, 2: // the sum is the middle of two float32, but for x²
			x := float32(math.Ldexp(1, -16-r.IntN(7)))
			a, b, c = 0.5+0.5*x, 1-x, float32(r.IntN(1<<22)+1<<23)
			if i%4 == 2 {
				a = -a
			}
		case 3: // below the normal numbers
			a, b, c = number()*0x1p-60, number()*0x1p-60, float32(r.IntN(1<<20))*0x1p-149
		}
		got, want := fused32(float64(a), float64(b), float64(c)), exact(a, b, c)
		if got != want {
			t.Fatalf("%g·%g + %g is %g, want %g", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			twice++
		}
	}
	if twice < 1000 {
		t.Errorf("only %d sums would be wrong if they were rounded twice", twice)
	}
}

// Rows with many zeros side by side, as images have them.
func images(r *rand.Rand, rows, cols, ld int) []float32 {
	v := make([]float32, rows*ld)
	for i := range rows {
		from := r.IntN(cols + 1)
		for j := from; j < min(cols, from+r.IntN(cols+1)); j++ {
			v[i*ld+j] = float32(r.IntN(64)-20) / 16
		}
	}
	return v
}

// TestAddOuter: sums of products of whole numbers are exact, whatever the kernels, and terms of weight 0 add nothing, even
// where they are no numbers.
func TestAddOuter(t *testing.T) {
	for i, size := range [][3]int{{1, 1, 1}, {8, 24, 5}, {9, 25, 256}, {241, 65, 403}, {50, 530, 12}, {784, 10, 33}} {
		m, n, k := size[0], size[1], size[2]
		r := rand.New(rand.NewPCG(uint64(i), 12))
		stride, ldb, ldc := m+i%3, n+i%2, n+i
		x := images(r, k, m, stride)
		a, b, c := make([]float64, k), make([]float64, k*ldb), make([]float64, m*ldc)
		for q := range a {
			if a[q] = r.NormFloat64() * 1000; q%5 == 0 {
				a[q] = 0
				x[q*stride+r.IntN(m)] = float32(math.NaN())
			}
		}
		x[(k-1)*stride+m-1] = float32(math.Inf(1))
		for q := range b {
			b[q] = float64(r.IntN(1<<21) - 1<<20)
		}
		for q := range c {
			c[q] = float64(q)
		}
		for _, round := range []bool{true, false} {
			if !round {
				x[(k-1)*stride+m-1] = 1
				for q := range a {
					a[q] = math.Trunc(a[q])
				}
			}
			want := append([]float64(nil), c...)
			for q, aq := range a {
				for i := range m {
					v := aq * float64(x[q*stride+i])
					if aq == 0 {
						v = 0
					}
					if round {
						v = whole(aq, float64(x[q*stride+i]))
					}
					for j := range n {
						want[i*ldc+j] += v * b[q*ldb+j]
					}
				}
			}
			double := make([]float64, len(x))
			for q, v := range x {
				double[q] = float64(v)
			}
			under(t, func() {
				got, wide := append([]float64(nil), c...), append([]float64(nil), c...)
				AddOuter(got, ldc, a, x, stride, m, b, ldb, n, round)
				AddOuter(wide, ldc, a, double, stride, m, b, ldb, n, round)
				for q := range want {
					if got[q] != want[q] || wide[q] != want[q] {
						t.Fatalf("%v %v round=%v: element %d is %v, from float64 %v, want %v", use, size, round, q, got[q], wide[q], want[q])
					}
				}
			})
		}
	}
}

// TestGemmSparse: the product is that of Gemm, bit for bit but for the sign of zeros.
func TestGemmSparse(t *testing.T) {
	race.Skip(t)
	for i, size := range [][3]int{{1, 48, 5}, {8, 16, 784}, {9, 17, 15}, {256, 128, 784}, {70, 530, 801}, {30, 3, 40}} {
		m, n, k := size[0], size[1], size[2]
		r := rand.New(rand.NewPCG(uint64(i), 13))
		lda, ldb, ldc := k+i%3, n+i%2, n+i
		a, b, c := images(r, m, k, lda), make([]float32, k*ldb), make([]float32, m*ldc)
		if i%2 == 0 { // no zeros
			for q := range a {
				a[q] = float32(r.NormFloat64())
			}
		}
		for q := range b {
			b[q] = float32(r.NormFloat64())
		}
		for q := range c {
			c[q] = float32(r.NormFloat64())
		}
		under(t, func() {
			got, want := append([]float32(nil), c...), append([]float32(nil), c...)
			Gemm(false, false, m, n, k, a, lda, b, ldb, want, ldc)
			GemmSparse(m, n, k, a, lda, b, ldb, got, ldc)
			for q := range want {
				if got[q] != want[q] {
					t.Fatalf("%v %v: element %d is %v, want %v", use, size, q, got[q], want[q])
				}
			}
		})
	}
}

// TestCounts: sums that spill over into counts, what is rounded and what is released, against their definitions.
func TestCounts(t *testing.T) {
	for n := range 40 {
		r := rand.New(rand.NewPCG(uint64(n), 15))
		shift, grid, size := uint(1+r.IntN(63)), math.Ldexp(1, -r.IntN(40)), 1+1000*r.Float64()
		acc, counts := make([]float64, n), make([]int64, n)
		for i := range acc {
			acc[i], counts[i] = float64(r.Int64N(1<<53)-1<<52)*0x1p-30, int64(r.Uint64())
		}
		under(t, func() {
			sums, moved, out := slices.Clone(acc), slices.Clone(counts), make([]float64, n)
			Spill(moved, sums, 0x1p30)
			set, again := slices.Clone(counts), slices.Clone(acc)
			Move(set, again, 0x1p30)
			rounded := slices.Clone(moved)
			RoundShift(rounded, shift)
			Release(out, rounded, shift, grid, size)
			for i := range n {
				if want := counts[i] + int64(acc[i]*0x1p30); moved[i] != want || sums[i] != 0 {
					t.Fatalf("%v: %d and %v spill to %d and %v", use, counts[i], acc[i], moved[i], sums[i])
				}
				if set[i] != moved[i]-counts[i] || again[i] != 0 {
					t.Fatalf("%v: %v moves to %d and %v", use, acc[i], set[i], again[i])
				}
				x := moved[i] >> (shift - 1)
				if x -= x >> 1; rounded[i] != x || out[i] != float64(x<<shift>>shift)*grid/size {
					t.Fatalf("%v: %d becomes %d by a shift of %d and %v with grid %v, size %v", use, moved[i], rounded[i], shift, out[i], grid, size)
				}
			}
		})
	}
}

// TestRelease: what a kernel releases without a division has the bits of one, for sizes of all kinds: counts of batches,
// numbers near powers of two, and any. Grids and sizes far from 1 are divided.
func TestRelease(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 17))
	counts, got := make([]int64, 1<<10), make([]float64, 1<<10)
	for round := range 600 {
		size, grid, shift := float64(1+r.IntN(1<<20)), math.Ldexp(1, -r.IntN(60)), uint(r.IntN(64))
		switch round % 4 {
		case 1:
			size = math.Float64frombits(math.Float64bits(math.Ldexp(1, r.IntN(40)-20)) + uint64(r.IntN(9)) - 4)
		case 2:
			size = r.ExpFloat64() + 0x1p-40
		case 3:
			size, grid = math.Ldexp(1+r.Float64(), r.IntN(1800)-900), math.Ldexp(1, r.IntN(1800)-900)
		}
		for i := range counts {
			counts[i] = int64(r.Uint64()) >> r.IntN(64)
		}
		under(t, func() {
			Release(got, counts, shift, grid, size)
			for i, v := range counts {
				if want := float64(v<<shift>>shift) * grid / size; !equal(got[i], want) {
					t.Fatalf("%v: %d over %v with grid %v and shift %d is %v (%x), want %v (%x)", use, v, size, grid, shift, got[i], math.Float64bits(got[i]), want, math.Float64bits(want))
				}
			}
		})
	}
}

// TestStep: squares and a step along a vector against their definitions, the order of the sums included.
func TestStep(t *testing.T) {
	for n := range 40 {
		r := rand.New(rand.NewPCG(uint64(n), 16))
		w, v := make([]float64, n), make([]float64, n)
		for i := range n {
			w[i], v[i] = r.NormFloat64(), strange(r, []int{1 << 20, 9}[n%2])
		}
		eta := r.Float64()
		var s [4]float64
		for i, x := range v {
			square := x * x
			s[i%4] += square
		}
		want := (s[0] + s[1]) + (s[2] + s[3])
		under(t, func() {
			if got := SumSquares(v); !equal(got, want) {
				t.Fatalf("%v: the squares of %v sum up to %v, want %v", use, v, got, want)
			}
		})
		twins(t, fmt.Sprintf("approach n=%d", n), w, func(dst []float64) { Approach(dst, v, 3) })
		twins(t, fmt.Sprintf("descend n=%d", n), append([]float64{0}, w...), func(dst []float64) {
			dst[0] = Descend(dst[1:], v, eta)
			if !equal(dst[0], want) {
				t.Errorf("%v: a step along %v returns %v, want %v", use, v, dst[0], want)
			}
			for i, x := range v {
				by := eta * x
				if !equal(dst[1+i], w[i]-by) {
					t.Errorf("%v: %v less %v times %v is %v", use, w[i], eta, x, dst[1+i])
				}
			}
		})
	}
}

// TestNetworkVectors: narrowed numbers and rectified ones against their definitions, whatever stands in them.
func TestNetworkVectors(t *testing.T) {
	for n := range 70 {
		r := rand.New(rand.NewPCG(uint64(n), 14))
		wide, z, d := make([]float64, n), make([]float32, n), make([]float32, n)
		finite := true
		for i := range n {
			wide[i] = r.NormFloat64() * 1e30
			if n%3 == 0 {
				wide[i] = strange(r, 9)
			}
			v := float32(wide[i])
			finite = finite && math.Abs(float64(v)) <= math.MaxFloat32
			z[i], d[i] = v, float32(i+1)
			if i%11 == 3 {
				z[i] = 0
			}
		}
		under(t, func() {
			got := make([]float32, n)
			if f := Narrow(got, wide); f != finite {
				t.Fatalf("%v: %v narrowed are all finite: %v", use, wide, f)
			}
			rect, masked := slices.Clone(z), slices.Clone(d)
			Rectify(rect)
			Mask(masked, rect)
			for i, v := range z {
				want, kept := v, d[i]
				if v < 0 {
					want = 0
				}
				if v <= 0 {
					kept = 0
				}
				if !equal(float64(got[i]), float64(float32(wide[i]))) || !equal(float64(rect[i]), float64(want)) || masked[i] != kept {
					t.Fatalf("%v: %v is narrowed to %v, %v rectified to %v, mask of it %v", use, wide[i], got[i], v, rect[i], masked[i])
				}
			}
		})
	}
}

func TestAligned(t *testing.T) {
	for n := range 200 {
		v := Aligned(n)
		if len(v) != n || n > 0 && uintptr(unsafe.Pointer(&v[0]))%64 != 0 {
			t.Fatalf("Aligned(%d) has %d numbers at %p", n, len(v), v)
		}
	}
}

// FuzzGram holds the scaled rows and their products against their twins, and the products against
// what they are: whole numbers up to 2²¹, whose sums are exact in any order.
func FuzzGram(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), uint8(3*i), uint8(5*i+1), uint8(i%5), uint8(i%7))
	}
	f.Fuzz(func(t *testing.T, seed uint64, rows, cols, pad, offset uint8) {
		r := rand.New(rand.NewPCG(seed, 11))
		m, n := int(rows%70), int(cols%90)+1
		side, stride, rare, off := Padded(n), n+int(pad%9), []int{3, 50, 1 << 20}[seed%3], int(offset%8)
		x, a := make([]float32, off+m*stride+n), make([]float64, m)
		for i := range x {
			x[i] = float32(strange(r, rare))
		}
		for i := range a {
			a[i] = strange(r, rare)
		}
		list := make([]int32, m)
		for i := range list {
			list[i] = int32(r.IntN(m))
		}
		for _, rows := range [][]int32{nil, list} {
			twins(t, fmt.Sprintf("Whole m=%d n=%d", m, n), make([]float64, m*side), func(dst []float64) { Whole(dst, side, a, x[off:], stride, rows, n) })
		}
		v, start := make([]float64, m*side), make([]float64, side*side)
		for i := range v {
			v[i] = float64(r.IntN(1<<22) - 1<<21)
		}
		for i := range start {
			start[i] = float64(r.IntN(1<<22) - 1<<21)
		}
		var want []float64
		under(t, func() {
			got := append([]float64(nil), start...)
			Gram(got, side, v, m)
			if want == nil {
				want = append(want, start...)
				for i := range m {
					for j := range side {
						for k := j; k < side; k++ {
							want[j*side+k] += v[i*side+j] * v[i*side+k]
						}
					}
				}
			}
			for j := range side {
				for k := j; k < side; k++ {
					if got[j*side+k] != want[j*side+k] {
						t.Fatalf("Gram %v m=%d side=%d: [%d %d] is %v, want %v", use, m, side, j, k, got[j*side+k], want[j*side+k])
					}
				}
			}
		})
	})
}
