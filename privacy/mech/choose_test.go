package mech

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/noise"
	"pgregory.net/rapid"
)

// flipLaw is the law of permute and flip: the sum over all orders.
func flipLaw(w []float64) []float64 {
	p := make([]float64, len(w))
	orders := 0.0
	var walk func(left []int, reach float64)
	walk = func(left []int, reach float64) {
		if len(left) == 0 {
			orders++
			return
		}
		for k, i := range left {
			p[i] += reach * w[i] * factorial(len(left)-1)
			rest := append(append([]int(nil), left[:k]...), left[k+1:]...)
			walk(rest, reach*(1-w[i]))
		}
	}
	var all []int
	for i := range w {
		all = append(all, i)
	}
	walk(all, 1)
	for i := range p {
		p[i] /= orders
	}
	return p
}

func factorial(n int) float64 {
	f := 1.0
	for ; n > 1; n-- {
		f *= float64(n)
	}
	return f
}

// Outcomes of 2·10⁵ choices against the laws of PROOFS.md. Chi-square with at most 5 degrees of freedom:
// 50 is passed by one seed in 10⁸.
func TestChoiceLaw(t *testing.T) {
	const n, grid, sens = 200_000, 0x1p-3, 1.5
	scores := []int64{-7, 10, 3, 12, 0, 11}
	for _, c := range []struct {
		m    Chooser
		rate float64 // for each grid step
		flip bool
	}{
		{Select{Epsilon: 2}, 2 * grid / (2 * sens), false},
		{Select{Epsilon: 2, Monotone: true}, 2 * grid / sens, false},
		{PermuteAndFlip{Epsilon: 2}, 2 * grid / (2 * sens), true},
		{PermuteAndFlip{Epsilon: 2, Monotone: true}, 2 * grid / sens, true},
	} {
		want, sum := make([]float64, len(scores)), 0.0
		for i, s := range scores {
			want[i] = math.Exp(-c.rate * float64(12-s))
			sum += want[i]
		}
		if c.flip {
			want, sum = flipLaw(want), 1
		}
		src := noise.NewSeeded(1, "choice", 0)
		count := make([]float64, len(scores))
		for range n {
			i, err := c.m.Choose(scores, grid, sens, src)
			if err != nil {
				t.Fatal(err)
			}
			count[i]++
		}
		chi := 0.0
		for i, w := range want {
			w *= n / sum
			chi += (count[i] - w) * (count[i] - w) / w
		}
		if chi > 50 {
			t.Errorf("%+v: counts %v, chi-square %.1f", c.m, count, chi)
		}
	}
}

func TestChoiceEvents(t *testing.T) {
	if e := (Select{Epsilon: 0.5, Monotone: true}).Event(); !privacy.Equal(e, privacy.Select{Epsilon: 0.5}) {
		t.Errorf("Select claims %v", e)
	}
	if e := (PermuteAndFlip{Epsilon: 0.5}).Event(); !privacy.Equal(e, privacy.PureDP{Epsilon: 0.5}) {
		t.Errorf("PermuteAndFlip claims %v", e)
	}
}

// rate·span never exceeds ε, in exact arithmetic.
func TestRateRoundsDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grid := math.Ldexp(1, rapid.IntRange(-40, 40).Draw(t, "grid"))
		sens := grid * rapid.Float64Range(1, 1<<30).Draw(t, "sens")
		epsilon := rapid.Float64Range(1e-6, 100).Draw(t, "epsilon")
		for span, monotone := range map[int64]bool{1: true, 2: false} {
			r, err := rate(nil, epsilon, monotone, grid, sens)
			if err != nil {
				t.Fatal(err)
			}
			got := new(big.Rat).SetFloat64(r)
			got.Mul(got, new(big.Rat).SetFloat64(sens/grid))
			got.Mul(got, big.NewRat(span, 1))
			want := new(big.Rat).SetFloat64(epsilon)
			if near := new(big.Rat).Mul(got, big.NewRat(1<<50+1, 1<<50)); got.Cmp(want) > 0 || near.Cmp(want) < 0 {
				t.Fatalf("ε = %v, sens = %v, grid = %v: rate is %v", epsilon, sens, grid, r)
			}
		}
	})
}

// Scores that all move in one direction still do when they are rounded, by Slack more at most.
func TestScoresStayMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := uint(rapid.IntRange(0, 20).Draw(t, "shift"))
		s, up := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "score"), rapid.Int64Range(0, 1<<30).Draw(t, "up")
		a, b := round([]int64{s}, shift)[0], round([]int64{s + up}, shift)[0]
		g := math.Ldexp(1, int(shift))
		if d := float64(b-a) * g; d < 0 || d > float64(up)+Slack(g, 1, 1) {
			t.Fatalf("%d moved up by %d, rounded to 2^%d, moves by %v", s, up, shift, d)
		}
	})
}

func TestChooseRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, epsilon := range []float64{0, -1, nan, inf, 1} {
		for _, sens := range []float64{0.5, nan, inf, 1} {
			for _, m := range []Chooser{Select{Epsilon: epsilon}, PermuteAndFlip{Epsilon: epsilon}} {
				src := noise.NewSeeded(1, "", 0)
				_, err := m.Choose([]int64{1, 2}, 1, sens, src)
				if bad := epsilon != 1 || sens != 1; (err != nil) != bad || (m.Check(1, sens) != nil) != bad {
					t.Errorf("%+v, sensitivity %v: %v, Check says %v", m, sens, err, m.Check(1, sens))
				} else if bad && src.Uint64() != noise.NewSeeded(1, "", 0).Uint64() {
					t.Errorf("%+v, sensitivity %v: drew in spite of the error", m, sens)
				}
				if _, err := m.Choose(nil, 1, 1, src); err == nil {
					t.Errorf("%+v chose among no candidates", m)
				}
			}
		}
	}
	for _, c := range []struct{ epsilon, grid, sens float64 }{{5e-324, 1, 1}, {math.MaxFloat64, 0x1p-1000, 0x1p1000}, {1, 3, 4}} {
		if err := (Select{Epsilon: c.epsilon}).Check(c.grid, c.sens); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// One candidate is chosen whatever its score; extreme scores do not overflow; more candidates than
// the stack has room for are fine.
func TestChoiceOfExtremes(t *testing.T) {
	src := noise.NewSeeded(1, "", 0)
	many := make([]int64, 300)
	for i := range many {
		many[i] = math.MinInt64
	}
	many[299] = math.MaxInt64
	for _, m := range []Chooser{Select{Epsilon: 1}, PermuteAndFlip{Epsilon: 1}} {
		for _, c := range []struct {
			scores []int64
			want   int
		}{{[]int64{math.MinInt64}, 0}, {[]int64{math.MinInt64, math.MaxInt64}, 1}, {many, 299}} {
			if i, err := m.Choose(c.scores, 1, 1, src); i != c.want || err != nil {
				t.Errorf("%+v chose %d, want %d (%v)", m, i, c.want, err)
			}
		}
	}
}

// Seeded runs must reproduce across versions and platforms: this hash never changes.
func TestMechanismsGolden(t *testing.T) {
	const want = "a85dd00b25e59e3e6e98bdc70cac8eb718879d18ea28bd45e7cdcf096f194ed6"
	h := sha256.New()
	src := noise.NewSeeded(42, "golden", 4)
	for range 50 {
		for _, m := range []Chooser{Select{Epsilon: 1}, PermuteAndFlip{Epsilon: 1, Monotone: true}} {
			i, err := m.Choose([]int64{3, 1, 4, 1, 5, 9, 2, 6}, 1, 2.5, src)
			fmt.Fprintln(h, i, err)
		}
		s, err := AboveThreshold{Threshold: 2, Query: 4, Max: 5}.Start(3, 1, 1, src)
		for err == nil {
			var reached bool
			reached, err = s.Ask(1)
			fmt.Fprintln(h, reached, err)
		}
		v := make([]int64, 6)
		fmt.Fprintln(h, v, SymmetricGaussian{1}.Add(v, 1, 100, src), v)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("golden hash is %s; was %s", got, want)
	}
}

func BenchmarkChoose(b *testing.B) {
	scores := make([]int64, 40)
	for i := range scores {
		scores[i] = int64(i * i)
	}
	for name, m := range map[string]Chooser{"select": Select{Epsilon: 1}, "permute and flip": PermuteAndFlip{Epsilon: 1}} {
		b.Run(name, func(b *testing.B) {
			src := noise.NewSeeded(1, "", 0)
			for b.Loop() {
				if _, err := m.Choose(scores, 1, 100, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
