package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A shortCase is rows of 16-bit numbers with parameters and weights.
type shortCase struct {
	m, n, k, stride int
	x               []int16
	row             []float64
	w               []float64
	a               [][]float64 // weights in whole numbers
}

// drawShorts are random rows or, where full, rows, parameters and weights of one size and sign: worst makes all limbs the
// largest that there are, or the most negative.
func drawShorts(r *rand.Rand, m, n, k int, full bool, worst float64) *shortCase {
	c := &shortCase{m: m, n: n, k: k, stride: (n + ShortColumns - 1) / ShortColumns * ShortColumns}
	c.x, c.row, c.w = make([]int16, m*c.stride), make([]float64, m), make([]float64, k*n)
	for i := range m {
		c.row[i] = math.Exp2(float64(r.IntN(40) - 20))
		for j := range n {
			if c.x[i*c.stride+j] = int16(r.IntN(2*ShortMost+1) - ShortMost); full {
				c.x[i*c.stride+j] = -ShortMost
			}
		}
	}
	for j := range c.w {
		if c.w[j] = r.NormFloat64(); full {
			c.w[j] = worst * 0x1p-20
		}
	}
	for range k {
		a := make([]float64, m)
		for i := range a {
			if a[i] = float64(r.IntN(2*ShortMost+1) - ShortMost); full {
				a[i] = worst
			}
		}
		c.a = append(c.a, a)
	}
	return c
}

func shortCases() (all []*shortCase) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, m := range []int{1, 2, 3, 7, 8, 9, 31} {
		for _, n := range []int{1, 15, 16, 17, 31, 32, 33, 49, 300} {
			for _, k := range []int{1, 2, 5, 6, 11} {
				all = append(all, drawShorts(r, m, n, k, false, 0))
			}
		}
	}
	for _, n := range []int{31, ShortWidth} { // as many products as there may be: limbs 127 and 128, −128 and −128, 127 and 0
		for _, worst := range []float64{ShortMost, 127*256 + 127, -ShortMost, -128*256 + 128, -127*256 - 128, -128 * 255, 32640} {
			for _, k := range []int{1, 5} {
				all = append(all, drawShorts(r, ShortRows, n, k, true, worst))
			}
		}
	}
	return all
}

func TestLimbs(t *testing.T) {
	for v := -ShortMost; v <= ShortMost; v++ {
		high, low := limbs(int16(v))
		if int(high)*256+int(low) != v || high < -128 || high > 128 || low < -128 || low > 127 {
			t.Fatalf("%d has the limbs %d and %d", v, high, low)
		}
	}
}

// margins checks the margins of a case under all levels: words are parameters but for half a unit, and their products are exact.
func (c *shortCase) margins(t *testing.T) {
	t.Helper()
	var want []float64
	under(t, func() {
		var p Shorts
		p.Set(c.w, c.k, c.n, c.stride)
		z := make([]float64, c.k*c.m)
		p.Dot(z, c.m, c.x, c.row)
		for class := range c.k {
			var words []int64
			most := int64(0)
			for _, v := range c.w[class*c.n:][:c.n] {
				word := int64(math.RoundToEven(v / p.scale[class]))
				words, most = append(words, word), max(most, word, -word)
			}
			if most > ShortMost || most < 1<<14-1 {
				t.Fatalf("words of up to %d", most)
			}
			for i, r := range c.row {
				var sum int64
				for j, v := range words {
					sum += v * int64(c.x[i*c.stride+j])
				}
				if exact := float64(sum) * float64(p.scale[class]*r); z[class*c.m+i] != exact {
					t.Fatalf("%v: %d rows, %d columns, class %d of %d: margin %v, want %v", use, c.m, c.n, class, c.k, z[class*c.m+i], exact)
				}
			}
		}
		if want == nil {
			want = z
		} else if !slices.Equal(want, z) {
			t.Fatalf("%v: other margins than plain Go", use)
		}
	})
}

// sums checks the weighted sums of a case under all levels.
func (c *shortCase) sums(t *testing.T) {
	t.Helper()
	const unit = 0x1p-30
	want := make([]float64, c.k*c.n)
	for class, a := range c.a {
		for j := range c.n {
			var sum int64
			for i, v := range a {
				sum += int64(v) * int64(c.x[i*c.stride+j])
			}
			want[class*c.n+j] = float64(sum) * unit
		}
	}
	twins(t, fmt.Sprintf("AddShorts %d×%d, %d classes", c.m, c.n, c.k), make([]float64, c.k*c.n), func(dst []float64) {
		weights := make([]ShortLimbs, c.k)
		for class, a := range c.a {
			scaled := make([]float64, len(a))
			for i, v := range a {
				scaled[i] = v * unit
			}
			for i := range weights[class] {
				for j := range weights[class][i] {
					weights[class][i][j] = -1 // what is after the weights is set, too
				}
			}
			if !weights[class].Set(scaled, unit) {
				t.Fatal("weights are no words")
			}
		}
		AddShorts(dst, c.n, weights, c.x, c.stride, c.m, unit)
		if !slices.Equal(dst, want) {
			t.Fatalf("%v: %d×%d, %d classes: sums are not exact", use, c.m, c.n, c.k)
		}
	})
}

// TestShorts holds margins and sums against whole numbers.
func TestShorts(t *testing.T) {
	for _, c := range shortCases() {
		c.margins(t)
		c.sums(t)
	}
}

func FuzzShorts(f *testing.F) {
	f.Add(uint64(1), uint16(3), uint16(40), uint8(7))
	f.Add(uint64(2), uint16(255), uint16(33), uint8(5))
	f.Add(uint64(3), uint16(1), uint16(4095), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, m, n uint16, k uint8) {
		c := drawShorts(rand.New(rand.NewPCG(seed, 1)), 1+int(m)%ShortRows, 1+int(n)%ShortWidth, 1+int(k)%11, false, 0)
		c.margins(t)
		c.sums(t)
	})
}

// TestShortsOfOddParameters: what is not finite makes margins that are no numbers, and nothing else does.
func TestShortsOfOddParameters(t *testing.T) {
	const n = 40
	x, row := make([]int16, ShortColumns*2), []float64{1}
	x[3], x[39] = -ShortMost, 1
	for _, v := range []float64{0, math.SmallestNonzeroFloat64, 0x1p-1000, math.MaxFloat64, math.Inf(-1), math.NaN()} {
		for _, at := range []int{3, 39} {
			w := make([]float64, 6*n)
			for class := range 6 {
				w[class*n+at] = v
			}
			under(t, func() {
				var p Shorts
				p.Set(w, 6, n, 64)
				z := make([]float64, 6)
				p.Dot(z, 1, x, row)
				for _, got := range z {
					if finite := v-v == 0; finite == math.IsNaN(got) || v == 0 && got != 0 {
						t.Errorf("%v: a parameter %v at %d gives the margin %v", use, v, at, got)
					}
				}
			})
		}
	}
}

// TestShortLimbsInRange: a weight that is no word is refused.
func TestShortLimbsInRange(t *testing.T) {
	for _, v := range []float64{ShortMost, -ShortMost, ShortMost + 1, -ShortMost - 1, 1 << 40} {
		for n := range 5 {
			for at := range n {
				a := make([]float64, n)
				a[at] = v * 0.25
				var l ShortLimbs
				if ok := l.Set(a, 0.25); ok != (math.Abs(v) <= ShortMost) {
					t.Errorf("a weight %v, the %d. of %d: %v", v, at+1, n, ok)
				}
			}
		}
	}
}

func BenchmarkShorts(b *testing.B) {
	for _, k := range []int{1, 10} {
		const m, n, stride = 64, 3969, 3968 + 32
		r := rand.New(rand.NewPCG(5, 6))
		c := drawShorts(r, m, n, k, false, 0)
		z, dst := make([]float64, m*k), make([]float64, k*n)
		a := make([]ShortLimbs, k)
		for class := range a {
			a[class].Set(c.a[class], 1)
		}
		var p Shorts
		p.Set(c.w, k, n, stride)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%d", name, k), func(b *testing.B) {
				for b.Loop() {
					f()
				}
			})
		}
		run("set", func() { p.Set(c.w, k, n, stride) })
		run("dot", func() { p.Dot(z, m, c.x, c.row) })
		run("add", func() { AddShorts(dst, n, a, c.x, stride, m, 1) })
		x := make([]float32, m*n)
		for i := range x {
			x[i] = float32(i%1001) - 500
		}
		coef := make([]float64, m*k)
		run("dot32", func() { DotMany(z, m, x, n, nil, m, c.w, k, nil) })
		run("add32", func() { AxpyMany(dst, coef, m, x, n, nil, m, k, nil) })
	}
}
