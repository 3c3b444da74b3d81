package noise

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// draws returns n values of add at a scale of 2³⁰ counts, as floats in units of the scale.
func draws(n int, add func(dst []int64, scale float64)) []float64 {
	const scale = 1 << 30
	dst := make([]int64, n)
	add(dst, scale)
	z := make([]float64, n)
	for i, k := range dst {
		z[i] = float64(k) / scale
	}
	return z
}

// checkMean fails if the mean of f(z) is more than 5.5 standard errors from want. By the
// normal approximation that is one seed in 2·10⁷.
func checkMean(t *testing.T, name string, n int, f func(i int) float64, want, variance float64) {
	t.Helper()
	sum := 0.0
	for i := range n {
		sum += f(i)
	}
	got, limit := sum/float64(n), 5.5*math.Sqrt(variance/float64(n))
	if math.Abs(got-want) > limit {
		t.Errorf("%s is %.6g; want %.6g ± %.2g", name, got, want, limit)
	}
}

// checkKS is the test of Kolmogorov and Smirnov. By Massart's form of the DKW inequality,
// P(√n·D > x) ≤ 2·exp(−2x²): x = 2.9 fails one seed in 10⁷. It sorts z.
func checkKS(t *testing.T, z []float64, cdf func(float64) float64) {
	t.Helper()
	slices.Sort(z)
	n, worst := float64(len(z)), 0.0
	for i, x := range z {
		p := cdf(x)
		worst = max(worst, p-float64(i)/n, float64(i+1)/n-p)
	}
	if worst > 2.9/math.Sqrt(n) {
		t.Errorf("distribution function is off by %.3g; want at most %.3g", worst, 2.9/math.Sqrt(n))
	}
}

func TestGaussianLaw(t *testing.T) {
	const n = 2_000_000
	z := draws(n, NewSeeded(1, "gaussian", 0).AddGaussian)
	pow := func(k int) func(i int) float64 {
		return func(i int) float64 {
			p := z[i]
			for range k - 1 {
				p *= z[i]
			}
			return p
		}
	}
	// Moments of N(0,1) are 1, 3, 15, 105 for 2, 4, 6, 8.
	checkMean(t, "mean", n, pow(1), 0, 1)
	checkMean(t, "variance", n, pow(2), 1, 3-1)
	checkMean(t, "third moment", n, pow(3), 0, 15)
	checkMean(t, "fourth moment", n, pow(4), 3, 105-9)
	checkMean(t, "correlation of neighbors", n-1, func(i int) float64 { return z[i] * z[i+1] }, 0, 1)
	checkMean(t, "correlation of neighbors' squares", n-1,
		func(i int) float64 { return (z[i]*z[i] - 1) * (z[i+1]*z[i+1] - 1) }, 0, 4)
	checkMean(t, "correlation of pairs", n-2, func(i int) float64 { return z[i] * z[i+2] }, 0, 1)
	for _, other := range []*Source{NewSeeded(1, "gaussian", 1), NewSeeded(2, "gaussian", 0), NewSeeded(1, "sample", 0)} {
		y := draws(n/10, other.AddGaussian)
		checkMean(t, "correlation of streams", n/10, func(i int) float64 { return z[i] * y[i] }, 0, 1)
	}
	for _, tail := range []float64{1, 2, 3, 4} {
		p := math.Erfc(tail / math.Sqrt2)
		checkMean(t, "tail", n, func(i int) float64 {
			if math.Abs(z[i]) > tail {
				return 1
			}
			return 0
		}, p, p*(1-p))
	}
	// Beyond 5 the number is Poisson of mean 1.15: more than 12 in one seed of 10¹⁰.
	if c := countIf(z, func(x float64) bool { return math.Abs(x) > 5 }); c > 12 {
		t.Errorf("%d values beyond 5", c)
	}
	checkKS(t, z, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 })
}

func countIf(z []float64, f func(float64) bool) (n int) {
	for _, x := range z {
		if f(x) {
			n++
		}
	}
	return n
}

func TestLaplaceLaw(t *testing.T) {
	const n = 1_000_000
	z := draws(n, NewSeeded(1, "laplace", 0).AddLaplace)
	checkMean(t, "mean", n, func(i int) float64 { return z[i] }, 0, 2)
	checkMean(t, "mean size", n, func(i int) float64 { return math.Abs(z[i]) }, 1, 1)
	checkMean(t, "variance", n, func(i int) float64 { return z[i] * z[i] }, 2, 24-4)
	checkMean(t, "correlation", n-1, func(i int) float64 { return z[i] * z[i+1] }, 0, 4)
	p := math.Exp(-10)
	checkMean(t, "tail", n, func(i int) float64 {
		if math.Abs(z[i]) > 10 {
			return 1
		}
		return 0
	}, p, p)
	checkKS(t, z, func(x float64) float64 {
		if x < 0 {
			return math.Exp(x) / 2
		}
		return 1 - math.Exp(-x)/2
	})
}

// At scales near 1 the counts are few, and their law is the integral of the density over
// [k−½, k+½]. Chi-square with about 10 cells: 60 is passed by one seed in 10⁸.
func TestLawOfSmallScales(t *testing.T) {
	const n = 200_000
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	laplace := func(x float64) float64 { return 0.5 + math.Copysign(0.5, x)*-math.Expm1(-math.Abs(x)) }
	for _, c := range []struct {
		name  string
		add   func(*Source, []int64, float64)
		cdf   func(float64) float64
		scale float64
	}{
		{"gaussian", (*Source).AddGaussian, normal, 1},
		{"gaussian", (*Source).AddGaussian, normal, 0.4},
		{"laplace", (*Source).AddLaplace, laplace, 1},
		{"laplace", (*Source).AddLaplace, laplace, 0.3},
	} {
		dst := make([]int64, n)
		c.add(NewSeeded(5, c.name, 0), dst, c.scale)
		count := map[int64]int{}
		for _, k := range dst {
			count[min(max(k, -4), 4)]++
		}
		chi := 0.0
		for k := int64(-4); k <= 4; k++ {
			lo, hi := c.cdf((float64(k)-0.5)/c.scale), c.cdf((float64(k)+0.5)/c.scale)
			if k == -4 {
				lo = 0
			}
			if k == 4 {
				hi = 1
			}
			if want := n * (hi - lo); want > 5 {
				chi += (float64(count[k]) - want) * (float64(count[k]) - want) / want
			}
		}
		if chi > 60 {
			t.Errorf("%s at scale %v: chi-square is %.1f with at most 8 degrees of freedom", c.name, c.scale, chi)
		}
	}
}

// words draws one word in which few or many of the leading bits are equal, so that the
// tails and the neighborhood of 1 come up often.
var words = rapid.Custom(func(t *rapid.T) uint64 {
	w := rapid.Uint64().Draw(t, "word") >> rapid.IntRange(0, 63).Draw(t, "shift")
	if rapid.Bool().Draw(t, "flip") {
		w = ^w
	}
	return w
})

var scales = rapid.Custom(func(t *rapid.T) float64 {
	return math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "fraction"), rapid.IntRange(-60, 54).Draw(t, "exponent"))
})

// Wherever the fast path answers, the slow path gives the same answer.
func TestFastIsSlow(t *testing.T) {
	st := NewSeeded(3, "", 0).state()
	proven := 0
	checkPair := func(t rapid.TB, pos, u, v uint64, scale float64) {
		sj, sk := st.slowPair(pos, u, v, scale)
		if j, k, ok := fastPair(u, v, scale); ok {
			proven++
			if j != sj || k != sk {
				t.Fatalf("gaussian of %x, %x at scale %v: fast %d, %d; slow %d, %d", u, v, scale, j, k, sj, sk)
			}
		}
	}
	checkExpo := func(t rapid.TB, pos, u uint64, scale float64) {
		se := st.slowExpo(pos, u, scale)
		if k, ok := fastExpo(u<<1, scale); ok && k != se {
			t.Fatalf("exponential of %x at scale %v: fast %d, slow %d", u, scale, k, se)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		pos, u, scale := rapid.Uint64().Draw(rt, "pos"), words.Draw(rt, "u"), scales.Draw(rt, "scale")
		checkPair(rt, pos, u, words.Draw(rt, "v"), scale)
		checkExpo(rt, pos, u, scale)
	})
	for pos := range uint64(1000) {
		checkExpo(t, pos, st.word(), 0x1.23p33)
	}
	proven = 0
	const n = 10_000
	for pos := range uint64(n) {
		checkPair(t, pos, st.word(), st.word(), 0x1.23p33)
	}
	// About one pair in 2¹¹ is left open at this scale; 30 of 10⁴ in one run of 10¹³.
	if proven < n-30 {
		t.Errorf("the fast path answered only %d of %d pairs", proven, n)
	}
}

// The stated errors of expo and turn hold against the slow path.
func TestFastErrorBounds(t *testing.T) {
	st := NewSeeded(4, "", 0).state()
	toFloat := func(x *big.Int) float64 {
		f, _ := new(big.Float).SetMantExp(new(big.Float).SetInt(x), -fraction).Float64()
		return f
	}
	fixed := func(x float64) *big.Int {
		f := new(big.Float).SetMantExp(new(big.Float).SetFloat64(x), fraction)
		i, _ := f.Int(nil)
		return i
	}
	check := func(t rapid.TB, u uint64) {
		if e, err := expo(u); !math.IsInf(err, 1) {
			want := negLn(st.uniform(0, u, 64))
			if d := math.Abs(toFloat(want.Sub(want, fixed(e)))); d > 0.3*err {
				t.Fatalf("expo(%x) = %v is off by %.3g; claimed %.3g", u, e, d, err)
			}
		}
		cos, sin := turn(u)
		c, s := cosSin(st.uniform(0, u, 64))
		dc, ds := toFloat(c.Sub(c, fixed(cos))), toFloat(s.Sub(s, fixed(sin)))
		if d := max(math.Abs(dc), math.Abs(ds)); d > 0x1p-50 {
			t.Fatalf("cosine or sine of %x turns is off by %.3g; claimed %.3g", u, d, 0x1p-50)
		}
	}
	rapid.Check(t, func(rt *rapid.T) { check(rt, words.Draw(rt, "u")) })
	for i := range 5000 {
		check(t, st.word()>>(i%13))
	}
}

// A value in doubt is decided by its further bits, without moving the stream.
func TestSlowPathLeavesTheStream(t *testing.T) {
	a, b := NewSeeded(6, "", 0), NewSeeded(6, "", 0)
	dst := make([]int64, 101)
	a.AddGaussian(dst, MaxScale) // all slow
	b.AddGaussian(make([]int64, 101), 1)
	a.AddLaplace(dst, MaxScale)
	b.AddLaplace(make([]int64, 101), 1)
	if a.state().pos != 102+101 || a.Uint64() != b.Uint64() {
		t.Errorf("after %d words the streams differ", a.state().pos)
	}
}

func TestScaleZeroAndBadScales(t *testing.T) {
	src := NewSeeded(1, "", 0)
	dst := []int64{1, 2, 3}
	src.AddGaussian(dst, 0)
	src.AddLaplace(dst, 0)
	if !slices.Equal(dst, []int64{1, 2, 3}) || src.state().pos != 0 {
		t.Errorf("a scale of 0 gave %v and drew %d words", dst, src.state().pos)
	}
	src.AddGaussian(dst, 5e-324)
	src.AddLaplace(dst, 5e-324)
	if !slices.Equal(dst, []int64{1, 2, 3}) {
		t.Errorf("the smallest scale gave %v", dst)
	}
	for _, scale := range []float64{-1, math.NaN(), math.Inf(1), 2 * MaxScale} {
		for _, add := range []func([]int64, float64){src.AddGaussian, src.AddLaplace} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("scale %v did not panic", scale)
					}
				}()
				add(dst, scale)
			}()
		}
	}
}

// The gap of the fast path, or the bracket that it gives to the slow one, holds the gap
// that powers of 1−rate alone give.
func TestGapIsExact(t *testing.T) {
	st := NewSeeded(8, "", 0).state()
	check := func(t rapid.TB, u uint64, rate float64, limit int64) {
		coins := NewTrials(rate)
		lo, hi := coins.bracket(u, limit)
		exact := coins.exact(st.uniform(0, u, 64), 0, limit)
		if exact < lo || exact > hi {
			t.Fatalf("word %x, rate %v, limit %d: gap is %d, bracket %d to %d", u, rate, limit, exact, lo, hi)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		rate := math.Ldexp(rapid.Float64Range(0.5, 0.999).Draw(rt, "fraction"), rapid.IntRange(-70, 0).Draw(rt, "exponent"))
		if rapid.Bool().Draw(rt, "near one") {
			rate = 1 - max(rate, 0x1p-53)
		}
		check(rt, words.Draw(rt, "u"), rate, rapid.Int64Range(1, 1<<31).Draw(rt, "limit"))
	})
	for range 500 {
		check(t, st.word(), 256./32561, 32561)
		check(t, st.word(), 0.7, 5)
	}
	check(t, 1<<63, 5e-324, 1000)
}

// Chi-square of 2·10⁵ gaps at rate 0.2 over 20 cells; 75 is passed by one seed in 10⁷.
func TestGapLaw(t *testing.T) {
	const n, rate, cells = 200_000, 0.2, 20
	src, coins := NewSeeded(9, "", 0), NewTrials(rate)
	var count [cells]float64
	for range n {
		count[coins.Gap(src, cells-1)]++
	}
	chi := 0.0
	for k := range count {
		want := n * rate * math.Pow(1-rate, float64(k))
		if k == cells-1 {
			want = n * math.Pow(1-rate, float64(k))
		}
		chi += (count[k] - want) * (count[k] - want) / want
	}
	if chi > 75 {
		t.Errorf("chi-square is %.1f with %d degrees of freedom", chi, cells-1)
	}
	if g := coins.Gap(src, 0); g != 0 {
		t.Errorf("gap of limit 0 is %d", g)
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("rate %v did not panic", bad)
				}
			}()
			NewTrials(bad)
		}()
	}
}

// Chi-square of 2·10⁵ numbers below 7 and below 3·2⁶² (where a quarter of the words is
// drawn again), in cells of equal width; 60 with 6 degrees of freedom is passed by one seed in 10¹⁰.
func TestBelow(t *testing.T) {
	const draws = 200_000
	src := NewSeeded(10, "", 0)
	for _, n := range []uint64{7, 7 << 40, 3 << 62, 1<<63 + 1} {
		var count [7]float64
		for range draws {
			k := src.Below(n)
			if k >= n {
				t.Fatalf("%d is not below %d", k, n)
			}
			hi, lo := bits.Mul64(k, 7)
			cell, _ := bits.Div64(hi, lo, n)
			count[cell]++
		}
		chi := 0.0
		for _, c := range count {
			chi += (c - draws/7.0) * (c - draws/7.0) / (draws / 7.0)
		}
		if chi > 60 {
			t.Errorf("below %d: chi-square is %.1f with 6 degrees of freedom", n, chi)
		}
	}
	for range 100 {
		if k := src.Below(1); k != 0 {
			t.Fatalf("a number below 1 is %d", k)
		}
	}
	for _, f := range []func(){
		func() { src.Below(0) }, func() { src.Decay(0, 1) }, func() { src.Decay(math.NaN(), 1) },
		func() { src.Decay(math.Inf(1), 1) }, func() { src.Decay(1, -1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}

// The coin is the comparison of −ln U with the exact product, whatever path decided, and it
// takes one word, or none for k = 0.
func TestDecayIsExact(t *testing.T) {
	fast := 0
	check := func(t rapid.TB, seed uint64, rate float64, k int64) {
		a, b := NewSeeded(seed, "", 0), NewSeeded(seed, "", 0)
		st := b.state()
		pos := st.pos
		u := st.word()
		want := k == 0 || !lessDecay(negLn(st.uniform(pos, u, 64)), rate, k)
		if got := a.Decay(rate, k); got != want {
			t.Fatalf("word %x, rate %v, k %d: heads is %v; want %v", u, rate, k, got, want)
		}
		if k != 0 && a.state().pos != st.pos {
			t.Fatalf("%d words drawn", a.state().pos)
		}
		if e, err := expo(u); math.Abs(e-rate*float64(k)) > err {
			fast++
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		seed, k := rapid.Uint64().Draw(rt, "seed"), rapid.Int64Range(0, math.MaxInt64).Draw(rt, "k")>>rapid.IntRange(0, 62).Draw(rt, "shift")
		rate := math.Ldexp(rapid.Float64Range(0.5, 0.999).Draw(rt, "fraction"), rapid.IntRange(-80, 10).Draw(rt, "exponent"))
		check(rt, seed, rate, k)
		// The nearest thresholds: rate·k within a few roundings of −ln U.
		u := NewSeeded(seed, "", 0).Uint64()
		if e, _ := expo(u); k > 0 && e > 0 {
			near := e / float64(k)
			for range 4 {
				check(rt, seed, near, k)
				near = math.Nextafter(near, 1)
			}
		}
	})
	for _, rate := range []float64{5e-324, math.MaxFloat64} {
		for _, k := range []int64{0, 1, math.MaxInt64} {
			check(t, 1, rate, k)
		}
	}
	if fast == 0 {
		t.Error("the fast path never decided")
	}
}

// Exact comparison against rational arithmetic.
func TestLessDecay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := big.NewInt(rapid.Int64Range(1, math.MaxInt64).Draw(t, "e"))
		e.Lsh(e, uint(rapid.IntRange(0, 455).Draw(t, "shift")))
		rate, k := scales.Draw(t, "rate"), rapid.Int64Range(1, math.MaxInt64).Draw(t, "k")
		if rapid.Bool().Draw(t, "near") {
			rate, _ = new(big.Rat).Quo(new(big.Rat).SetFrac(e, one), new(big.Rat).SetInt64(k)).Float64()
		}
		if rate == 0 {
			return
		}
		x := new(big.Rat).Mul(new(big.Rat).SetFloat64(rate), new(big.Rat).SetInt64(k))
		if got, want := lessDecay(e, rate, k), new(big.Rat).SetFrac(e, one).Cmp(x) < 0; got != want {
			t.Fatalf("%v below %v·%d is %v; want %v", e, rate, k, got, want)
		}
	})
}

// How often a coin shows heads: each count is a binomial, 5.5 standard deviations are passed by
// one seed in 2·10⁷.
func TestDecayLaw(t *testing.T) {
	const n = 200_000
	src := NewSeeded(11, "", 0)
	for _, c := range []struct {
		rate float64
		k    int64
	}{{0.001, 1}, {0.1, 3}, {1, 1}, {0x1p-40, 3 << 40}, {2.5, 2}, {1e-3, 9000}} {
		p := math.Exp(-c.rate * float64(c.k))
		checkMean(t, fmt.Sprintf("heads at %v·%d", c.rate, c.k), n, func(int) float64 {
			if src.Decay(c.rate, c.k) {
				return 1
			}
			return 0
		}, p, p*(1-p))
	}
}

// However many values are asked for at once, they come from the same words: as many as values, and for Gaussian
// ones one more if that is odd.
func TestLengths(t *testing.T) {
	for n := range 600 {
		a, b := NewSeeded(12, "", 0), NewSeeded(12, "", 0)
		v, w := make([]int64, n), make([]int64, n)
		a.AddGaussian(v, 1000)
		for i := 0; i < n; i += 2 {
			b.AddGaussian(w[i:min(i+2, n)], 1000)
		}
		a.AddLaplace(v, 1000)
		for i := range w {
			b.AddLaplace(w[i:i+1], 1000)
		}
		if words := uint64(n + n%2 + n); !slices.Equal(v, w) || a.state().pos != words || b.state().pos != words {
			t.Fatalf("%d values: at once with %d words, in pieces with %d, equal is %v", n, a.state().pos, b.state().pos, slices.Equal(v, w))
		}
	}
}

func TestNoAllocation(t *testing.T) {
	src, dst := NewSeeded(1, "", 0), make([]int64, 1000)
	coins := NewTrials(0.01)
	if n := testing.AllocsPerRun(20, func() {
		src.AddGaussian(dst, 1000)
		src.AddLaplace(dst, 1000)
		coins.Gap(src, 1000)
		src.AddGaussian(dst[:1], 1000)
		src.AddLaplace(dst[:1], 1000)
		src.Below(1000)
		src.Decay(0.1, 3)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAddGaussian(b *testing.B) {
	for _, c := range []struct {
		name  string
		scale float64
	}{{"2^20", 1 << 20}, {"2^30", 1 << 30}, {"2^45", 1 << 45}} {
		b.Run(c.name, func(b *testing.B) {
			src, dst := NewSeeded(1, "", 0), make([]int64, 1000)
			for b.Loop() {
				src.AddGaussian(dst, c.scale)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
		})
	}
}

func BenchmarkAddLaplace(b *testing.B) {
	src, dst := NewSeeded(1, "", 0), make([]int64, 1000)
	for b.Loop() {
		src.AddLaplace(dst, 1<<20)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
}

func BenchmarkSlowPair(b *testing.B) {
	st := NewSeeded(1, "", 0).state()
	for b.Loop() {
		st.slowPair(st.pos, st.word(), st.word(), 1<<20)
	}
}

func BenchmarkResetSecure(b *testing.B) {
	var src Source
	b.ReportAllocs()
	for b.Loop() {
		if err := SecureStreams().Reset(&src, "noise", 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResetSeeded(b *testing.B) {
	var src Source
	b.ReportAllocs()
	for b.Loop() {
		if err := SeededStreams(1).Reset(&src, "noise", 1); err != nil {
			b.Fatal(err)
		}
	}
}
