package mech

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// The noise that is added is the noise that the event claims. The standard deviation of n
// draws of variance s² and fourth central moment m has standard error √((m−s⁴)/4n)/s: 5.5
// of them are passed by one seed in 2·10⁷.
func TestClaimIsDeed(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		mech       Additive
		deviation  func(privacy.Event) float64 // over the sensitivity
		kurtosis   float64
		grid, sens float64
	}{
		{Gaussian{0.7}, func(e privacy.Event) float64 { return e.(privacy.Gaussian).Sigma }, 3, 0x1p-14, 1},
		{Gaussian{40}, func(e privacy.Event) float64 { return e.(privacy.Gaussian).Sigma }, 3, 0x1p-20, 0.3},
		{Gaussian{1.5}, func(e privacy.Event) float64 { return e.(privacy.Gaussian).Sigma }, 3, 1024, 1e9},
		{Laplace{2.5}, func(e privacy.Event) float64 { return math.Sqrt2 * e.(privacy.Laplace).Scale }, 6, 0x1p-14, 3},
	} {
		v := make([]int64, n)
		if err := c.mech.Add(v, c.grid, c.sens, noise.NewSeeded(1, "mech", 0)); err != nil {
			t.Fatal(err)
		}
		sum, squares := 0.0, 0.0
		for _, k := range v {
			x := float64(k) * c.grid
			sum += x
			squares += x * x
		}
		want := c.deviation(c.mech.Event()) * c.sens
		got := math.Sqrt(squares / n)
		if limit := 5.5 * want * math.Sqrt((c.kurtosis-1)/(4*n)); math.Abs(got-want) > limit {
			t.Errorf("%v: the standard deviation of what Add adds is %v, and by Event %v; they may be %.2g apart. Correct the "+
				"scale that Add gives to the noise source, in grid steps", c.mech.Event(), got, want, limit)
		}
		if limit := 5.5 * want / math.Sqrt(n); math.Abs(sum/n) > limit {
			t.Errorf("%v: the mean of what Add adds is %v; noise has mean 0, and it may be %.2g off", c.mech.Event(), sum/n,
				limit)
		}
	}
}

// The scale in counts is never below the claim, in exact arithmetic.
func TestScaleRoundsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := math.Ldexp(1, rapid.IntRange(-40, 40).Draw(t, "grid"))
		sens := grid * rapid.Float64Range(1, 1<<30).Draw(t, "sens")
		sigma := rapid.OneOf(rapid.Float64Range(0.01, 1<<20), rapid.Float64Range(5e-324, 1e-300)).Draw(t, "sigma")
		scale, err := counts(privacy.Gaussian{Sigma: sigma}.Validate(), sigma, grid, sens)
		if err != nil {
			t.Fatal(err)
		}
		got := new(big.Rat).SetFloat64(scale)
		got.Mul(got, new(big.Rat).SetFloat64(grid))
		want := new(big.Rat).SetFloat64(sigma)
		want.Mul(want, new(big.Rat).SetFloat64(sens))
		if got.Cmp(want) < 0 {
			t.Fatalf("σ = %v, sens = %v, grid = %v: scale %v is too small", sigma, sens, grid, scale)
		}
	})
}

func TestAddRefuses(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		mech       Additive
		grid, sens float64
	}{
		{Gaussian{}, 1, 1}, {Gaussian{-1}, 1, 1}, {Gaussian{inf}, 1, 1}, {Gaussian{nan}, 1, 1},
		{Laplace{}, 1, 1}, {Laplace{-1}, 1, 1}, {Laplace{inf}, 1, 1}, {Laplace{nan}, 1, 1},
		{Gaussian{1}, 0, 1}, {Gaussian{1}, 3, 4}, {Gaussian{1}, -1, 1}, {Gaussian{1}, nan, 1}, {Gaussian{1}, inf, inf},
		{Gaussian{1}, 1, 0}, {Gaussian{1}, 1, -1}, {Gaussian{1}, 1, inf}, {Gaussian{1}, 1, nan},
		{Gaussian{1}, 1, 0.5}, {Gaussian{1}, 1, 1e17}, {Gaussian{1e300}, 1, 1e300}, {Gaussian{1}, 0x1p-1000, 0x1p1000},
		{Laplace{1}, 1, 1e17}, {Laplace{1}, 0, 0},
	} {
		v := []int64{1, 2, 3}
		src := noise.NewSeeded(1, "", 0)
		first := noise.NewSeeded(1, "", 0).Uint64()
		if err := c.mech.Add(v, c.grid, c.sens, src); err == nil {
			t.Errorf("%v, grid %v, sensitivity %v: no error", c.mech, c.grid, c.sens)
		}
		if !slices.Equal(v, []int64{1, 2, 3}) || src.Uint64() != first {
			t.Errorf("%v, grid %v, sensitivity %v: drew noise in spite of the error", c.mech, c.grid, c.sens)
		}
	}
}

func TestNone(t *testing.T) {
	v := []int64{1, 2, 3}
	if err := (None{}).Add(v, 0, math.Inf(1), nil); err != nil || !slices.Equal(v, []int64{1, 2, 3}) {
		t.Errorf("None gave %v, %v", v, err)
	}
	if _, ok := (None{}).Event().(privacy.NonPrivate); !ok || (None{}).Norm() != 2 {
		t.Errorf("None claims %v in norm %d", None{}.Event(), None{}.Norm())
	}
}

func TestGrid(t *testing.T) {
	for _, c := range []struct {
		bound     float64
		dim, norm int
		want      float64
	}{
		{1, 1, 2, 0x1p-14},
		{1, 4, 2, 0x1p-15},
		{1, 16, 1, 0x1p-18},
		{0.999, 1, 2, 0x1p-15},
		{0.5, 106, 2, 0x1p-19},
		{1, 1000, 1, 0x1p-24},
		{3, 2, 2, 0x1p-13}, {3, 1 << 40, 2, 0x1p-33}, {1, 1<<53 + 1, 2, 0},
		{1e-320, 1, 2, 0}, {0, 1, 2, 0}, {-1, 1, 2, 0}, {math.NaN(), 1, 2, 0}, {math.Inf(1), 1, 2, 0},
		{1, 0, 2, 0}, {1, -5, 1, 0}, {1, 1, 0, 0}, {1, 1, 3, 0},
	} {
		if got := Grid(c.bound, c.dim, c.norm); got != c.want {
			t.Errorf("Grid(%v, %d, %d) = %v; want %v", c.bound, c.dim, c.norm, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		bound := math.Ldexp(rapid.Float64Range(0.5, 1).Draw(t, "bound"), rapid.IntRange(-900, 1000).Draw(t, "exponent"))
		dim, norm := rapid.IntRange(1, 1<<40).Draw(t, "dim"), rapid.IntRange(1, 2).Draw(t, "norm")
		g := Grid(bound, dim, norm)
		if _, err := gridSteps(g, g); err != nil || Slack(g, dim, norm) > bound*0x1p-14 || Slack(2*g, dim, norm) <= bound*0x1p-14 {
			t.Fatalf("Grid(%v, %d, %d) = %v is not the largest", bound, dim, norm, g)
		}
	})
}

// round is what the private oracle does to a sum in a fine unit: the nearest multiple, a half up.
func round(v []int64, shift uint) []int64 {
	r := slices.Clone(v)
	RoundShift(r, shift)
	return r
}

// Two sums rounded to the grid differ by no more than before and the slack, in either
// norm. Numbers are small enough for exact float64 sums in the ℓ1 norm; in ℓ2 the squares
// are compared with an allowance of 2⁻⁴⁰ relatively.
func TestSlackCoversRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 30).Draw(t, "dim")
		shift := uint(rapid.IntRange(0, 12).Draw(t, "shift"))
		g := math.Ldexp(1, int(shift))
		coordinate := rapid.OneOf(rapid.Int64Range(-1<<30, 1<<30), rapid.Int64Range(-1<<13, 1<<13))
		a := rapid.SliceOfN(coordinate, dim, dim).Draw(t, "a")
		b := slices.Clone(a)
		if rapid.Bool().Draw(t, "near") {
			for i := range b {
				b[i] += rapid.Int64Range(-3, 3).Draw(t, "step")
			}
		} else {
			b = rapid.SliceOfN(coordinate, dim, dim).Draw(t, "b")
		}
		ra, rb := round(a, shift), round(b, shift)
		var one, two, rone, rtwo float64
		for i := range a {
			d, r := float64(a[i]-b[i]), float64(ra[i]-rb[i])*g
			one, rone = one+math.Abs(d), rone+math.Abs(r)
			two, rtwo = two+d*d, rtwo+r*r
		}
		if rone > one+Slack(g, dim, 1) {
			t.Fatalf("ℓ1: %v after rounding, %v before, slack %v", rone, one, Slack(g, dim, 1))
		}
		if math.Sqrt(rtwo) > (math.Sqrt(two)+Slack(g, dim, 2))*(1+0x1p-40) {
			t.Fatalf("ℓ2: %v after rounding, %v before, slack %v", math.Sqrt(rtwo), math.Sqrt(two), Slack(g, dim, 2))
		}
	})
}

func TestSlackRoundsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 1<<53).Draw(t, "dim")
		d := new(big.Rat).SetInt64(int64(dim))
		if new(big.Rat).SetFloat64(Slack(0.25, dim, 1)).Cmp(new(big.Rat).Quo(d, big.NewRat(4, 1))) < 0 {
			t.Fatalf("ℓ1 slack of %d is too small", dim)
		}
		s := new(big.Rat).SetFloat64(Slack(1, dim, 2))
		if s.Mul(s, s).Cmp(d) < 0 {
			t.Fatalf("ℓ2 slack of %d is too small", dim)
		}
	})
}

// The sensitivity of a rounded sum is the next float64 that is not below the exact one.
func TestOnGridRoundsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim, norm := rapid.IntRange(1, 1<<53).Draw(t, "dim"), rapid.IntRange(1, 2).Draw(t, "norm")
		sens, g := rapid.Float64Range(0x1p-60, 0x1p60).Draw(t, "sens"), math.Ldexp(1, rapid.IntRange(-90, 60).Draw(t, "grid"))
		exact := new(big.Rat).Add(new(big.Rat).SetFloat64(sens), new(big.Rat).SetFloat64(Slack(g, dim, norm)))
		s := OnGrid(sens, g, dim, norm)
		if new(big.Rat).SetFloat64(s).Cmp(exact) < 0 || new(big.Rat).SetFloat64(math.Nextafter(s, 0)).Cmp(exact) >= 0 {
			t.Fatalf("%v for %v", s, exact)
		}
	})
	if s := OnGrid(1, 1, 0, 2); !math.IsNaN(s) {
		t.Errorf("%v for no dimension", s)
	}
}

// Against floor(v/2^shift + 1/2) in math/big.
func TestRoundShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, -1, 0, 1})).Draw(t, "x")
		shift := uint(rapid.IntRange(0, 70).Draw(t, "shift"))
		v := []int64{x}
		RoundShift(v, shift)
		want := new(big.Int).Lsh(big.NewInt(x), 1)
		want.Add(want, new(big.Int).Lsh(big.NewInt(1), shift))
		want.Rsh(want, shift+1)
		if want.Cmp(big.NewInt(v[0])) != 0 {
			t.Fatalf("%d / 2^%d gave %d; want %v", x, shift, v[0], want)
		}
	})
}

// Rounding noise to the grid and adding it to a sum on the grid is rounding the noisy sum:
// the law of the result does not tell which was done.
func TestAddOnTopOfASum(t *testing.T) {
	v, w := []int64{0, 0, 0}, []int64{5, -7, 1 << 40}
	for _, x := range [][]int64{v, w} {
		if err := (Gaussian{1}).Add(x, 0x1p-14, 1, noise.NewSeeded(1, "", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if w[0]-v[0] != 5 || w[1]-v[1] != -7 || w[2]-v[2] != 1<<40 {
		t.Errorf("noise depends on the sum: %v, %v", v, w)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	v, src := make([]int64, 100), noise.NewSeeded(1, "", 0)
	for _, m := range []Additive{Gaussian{2}, Laplace{2}, None{}} {
		if n := testing.AllocsPerRun(100, func() {
			if err := m.Add(v, 0x1p-14, 1, src); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%#v: Add allocates %v times", m, n)
		}
	}
}
