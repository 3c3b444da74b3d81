package mech

import (
	"math"
	"slices"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// Entries of the diagonal have variance (σ·sens)², those beside it half of that. Limits
// are 5.5 standard errors, as in TestClaimIsDeed: one seed in 2·10⁷ for each of the two.
func TestSymmetricGaussian(t *testing.T) {
	const d, rounds, sens = 5, 20_000, 3.0
	m := SymmetricGaussian{Sigma: 0.7}
	if !privacy.Equal(m.Event(), privacy.Gaussian{Sigma: 0.7}) {
		t.Errorf("the event is %v", m.Event())
	}
	const grid = 0x1p-12
	src := noise.NewSeeded(1, "symmetric", 0)
	v := make([]int64, d*(d+1)/2)
	var squares [2]float64
	for range rounds {
		clear(v)
		if err := m.Add(v, grid, sens, src); err != nil {
			t.Fatal(err)
		}
		at := 0
		for i := range d {
			for j := i; j < d; j++ {
				x := float64(v[at]) * grid
				if i == j {
					squares[0] += x * x
				} else {
					squares[1] += x * x
				}
				at++
			}
		}
	}
	want := 0.7 * 0.7 * sens * sens
	for i, c := range []struct {
		n, want float64
	}{{d * rounds, want}, {d * (d - 1) / 2 * rounds, want / 2}} {
		if got := squares[i] / c.n; math.Abs(got-c.want) > 5.5*c.want*math.Sqrt(2/c.n) {
			t.Errorf("variance %d is %v; want %v", i, got, c.want)
		}
	}
}

func TestSymmetricRefuses(t *testing.T) {
	triangles := []int{1, 3, 6, 10, 15, 21}
	for n := range 25 {
		v, src := make([]int64, n), noise.NewSeeded(1, "", 0)
		err := SymmetricGaussian{1}.Add(v, 1, 100, src)
		if ok := slices.Contains(triangles, n); (err == nil) != ok {
			t.Errorf("%d numbers: %v", n, err)
		} else if !ok && (!slices.Equal(v, make([]int64, n)) || src.Uint64() != noise.NewSeeded(1, "", 0).Uint64()) {
			t.Errorf("%d numbers: drew noise in spite of the error", n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 1<<20).Draw(t, "d")
		if got, ok := order(d * (d + 1) / 2); got != d || !ok {
			t.Fatalf("order of %d is %d, %v", d*(d+1)/2, got, ok)
		}
		if _, ok := order(d*(d+1)/2 + rapid.IntRange(1, d).Draw(t, "more")); ok {
			t.Fatalf("%d and some more is a triangle", d)
		}
	})
	for _, c := range []struct{ sigma, grid, sens float64 }{{0, 1, 1}, {math.NaN(), 1, 1}, {1, 3, 4}, {1, 1, 0.5}, {1, 1, 0x1p60}} {
		if err := (SymmetricGaussian{c.sigma}).Check(c.grid, c.sens); err == nil {
			t.Errorf("%+v: no error", c)
		}
		if err := (SymmetricGaussian{c.sigma}).Add([]int64{1}, c.grid, c.sens, nil); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// Two symmetric matrices whose upper triangles are rounded differ in the Frobenius norm by no
// more than before and Slack(g, d·d, 2).
func TestSymmetricSlack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 8).Draw(t, "d")
		shift := uint(rapid.IntRange(0, 12).Draw(t, "shift"))
		g := math.Ldexp(1, int(shift))
		n := d * (d + 1) / 2
		a := rapid.SliceOfN(rapid.Int64Range(-1<<14, 1<<14), n, n).Draw(t, "a")
		b := slices.Clone(a)
		for i := range b {
			b[i] += rapid.Int64Range(-5, 5).Draw(t, "step") << rapid.IntRange(0, 10).Draw(t, "size")
		}
		frobenius := func(a, b []int64) float64 {
			sum, at := 0.0, 0
			for i := range d {
				for j := i; j < d; j++ {
					x := float64(a[at] - b[at])
					sum += x * x
					if i != j {
						sum += x * x
					}
					at++
				}
			}
			return math.Sqrt(sum)
		}
		before, after := frobenius(a, b), frobenius(round(a, shift), round(b, shift))*g
		if after > (before+Slack(g, d*d, 2))*(1+0x1p-40) {
			t.Fatalf("%v after rounding, %v before, slack %v", after, before, Slack(g, d*d, 2))
		}
	})
}
