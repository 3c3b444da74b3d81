package noise

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/race"
)

// Tails to 5 standard deviations, each side by itself, of 5·10⁷ values, and those of Laplace values to where
// they are as rare. Counts are Poisson; those with a mean above 100 are held to 5.5 standard deviations, one
// seed in 2·10⁷ each, the rarest ones to 1 and 45 where the mean is 14 (one seed in 10⁶ below or in 10¹⁰ above).
func TestTails(t *testing.T) {
	race.Skip(t)
	const n, chunk, scale = 50_000_000, 50_000, 1 << 30
	v := make([]int64, chunk)
	for _, c := range []struct {
		name string
		add  func(dst []int64, scale float64)
		tail func(x float64) float64 // of one side
		at   []float64
	}{
		{"gaussian", NewSeeded(12, "tails", 0).AddGaussian, func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }, []float64{3, 4, 4.5, 5}},
		{"laplace", NewSeeded(12, "tails", 1).AddLaplace, func(x float64) float64 { return math.Exp(-x) / 2 }, []float64{6, 10, 12, 14.4}},
	} {
		above, below := make([]float64, len(c.at)), make([]float64, len(c.at))
		for range n / chunk {
			clear(v)
			c.add(v, scale)
			for _, k := range v {
				x := math.Abs(float64(k)) / scale
				for i := 0; i < len(c.at) && x > c.at[i]; i++ {
					if k > 0 {
						above[i]++
					} else {
						below[i]++
					}
				}
			}
		}
		for i, at := range c.at {
			mean := n * c.tail(at)
			lo, hi := mean-5.5*math.Sqrt(mean), mean+5.5*math.Sqrt(mean)
			if mean < 100 {
				lo, hi = 1, 45
			}
			for side, count := range map[string]float64{"above": above[i], "below −": below[i]} {
				if count < lo || count > hi {
					t.Errorf("%s: %v values %s%v; want %.1f, from %.0f to %.0f", c.name, count, side, at, mean, lo, hi)
				}
			}
		}
	}
}

// chiLimit is what a chi-square of k degrees of freedom exceeds with probability e⁻¹⁷ = 4·10⁻⁸ at
// most, by the bound of Laurent and Massart.
func chiLimit(k float64) float64 { return k + 2*math.Sqrt(17*k) + 34 }

// Streams that differ in seed, name or batch only, and by as little as can be, are independent: pairs of their
// values fall into the 8×8 cells of equal probability alike often, and so do pairs of one's value and the other's next.
// Chi-square with 63 degrees of freedom each.
func TestStreamsAreIndependent(t *testing.T) {
	const n = 200_000
	base := NewSeeded(1, "noise", 7)
	for name, other := range map[string]*Source{
		"next seed":       NewSeeded(2, "noise", 7),
		"next batch":      NewSeeded(1, "noise", 8),
		"batch in a byte": NewSeeded(1, "noise", 7+256),
		"other name":      NewSeeded(1, "noisf", 7),
		"longer name":     NewSeeded(1, "noise\x00", 7),
		"swapped":         NewSeeded(7, "noise", 1),
	} {
		x, y := draws(n+1, base.AddGaussian), draws(n+1, other.AddGaussian)
		for lag := range 2 {
			var cells [64]float64
			for i := range n {
				cells[octile(x[i])*8+octile(y[i+lag])]++
			}
			chi := 0.0
			for _, c := range cells {
				chi += (c - n/64.0) * (c - n/64.0) / (n / 64.0)
			}
			if chi > chiLimit(63) {
				t.Errorf("%s, lag %d: chi-square is %.1f with 63 degrees of freedom", name, lag, chi)
			}
		}
	}
}

// octile says in which eighth of the normal law x lies.
func octile(x float64) int { return min(7, int(4*math.Erfc(-x/math.Sqrt2))) }

// The first values of many streams, one for each batch of a run, are as good as those of one stream:
// of the right law, uncorrelated from batch to batch and between a batch's sample and noise.
func TestManyShortStreams(t *testing.T) {
	const n = 100_000
	streams := SeededStreams(3)
	first := func(name string) []float64 {
		var src Source
		z := make([]float64, n)
		for i := range z {
			if err := streams.Reset(&src, name, i); err != nil {
				t.Fatal(err)
			}
			z[i] = draws(1, src.AddGaussian)[0]
		}
		return z
	}
	x, y := first("sample"), first("noise")
	checkMean(t, "correlation of neighboring batches", n-1, func(i int) float64 { return y[i] * y[i+1] }, 0, 1)
	checkMean(t, "correlation of sample and noise", n, func(i int) float64 { return x[i] * y[i] }, 0, 1)
	checkMean(t, "correlation of their squares", n, func(i int) float64 { return (x[i]*x[i] - 1) * (y[i]*y[i] - 1) }, 0, 4)
	checkKS(t, x, func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 })
	checkKS(t, y, func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 })
}

// Each bit of a word is set half the time, and words of neighboring streams differ in half of their bits. Each count is
// binomial: 6 standard deviations, one in 5·10⁸.
func TestBits(t *testing.T) {
	const n = 200_000
	a, b := NewSeeded(4, "noise", 0), NewSeeded(4, "noise", 1)
	var set [64]int
	differ := 0
	for range n {
		v, w := a.Uint64(), b.Uint64()
		differ += bits.OnesCount64(v ^ w)
		for i := range set {
			set[i] += int(v >> i & 1)
		}
	}
	for i, c := range append(set[:], differ) {
		total := float64(n)
		if i == 64 {
			total *= 64
		}
		if d := math.Abs(float64(c) - total/2); d > 6*math.Sqrt(total)/2 {
			t.Errorf("count %d is %d of %v", i, c, total)
		}
	}
}

// A secure stream and its seeded twin have one law: the two-sample test of Kolmogorov and Smirnov. Its limit
// is passed once in about 10¹⁰ runs (2·exp(−2x²), x = 3.45), whatever the system's randomness.
func TestSeededTwin(t *testing.T) {
	const n = 200_000
	secure, err := NewSecure()
	if err != nil {
		t.Fatal(err)
	}
	seeded := NewSeeded(13, "twin", 0)
	for name, add := range map[string]func(*Source, []int64, float64){"gaussian": (*Source).AddGaussian, "laplace": (*Source).AddLaplace} {
		x := draws(n, func(v []int64, scale float64) { add(secure, v, scale) })
		y := draws(n, func(v []int64, scale float64) { add(seeded, v, scale) })
		slices.Sort(x)
		slices.Sort(y)
		worst, i, j := 0.0, 0, 0
		for i < n && j < n {
			if x[i] <= y[j] {
				i++
			} else {
				j++
			}
			worst = max(worst, math.Abs(float64(i-j))/n)
		}
		if worst > 3.45*math.Sqrt(2.0/n) {
			t.Errorf("%s: the laws differ by %.4f", name, worst)
		}
	}
	if fmt.Sprint(secure, seeded) != "noise.Source(secure) noise.Source(seeded)" {
		t.Errorf("the streams are %v and %v", secure, seeded)
	}
}
