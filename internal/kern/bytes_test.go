package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A pixelCase is rows of bytes with parameters and weights.
type pixelCase struct {
	m, n, k, d, stride int
	x                  []byte
	row                []float64
	w                  []float64
	a                  [][]float64 // weights in whole numbers
	off                []float64
}

// pixelCases are random ones, and such with the largest bytes, parameters and weights of one sign.
func pixelCases() (all []pixelCase) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, m := range []int{1, 2, 3, 7, 8, 9, 31, 256} {
		for _, n := range []int{1, 15, 31, 32, 33, 49, 784} {
			for _, k := range []int{1, 2, 5, 6, 10, 17} {
				for _, full := range []bool{false, true} {
					c := pixelCase{m: m, n: n, k: k, d: n + r.IntN(3), stride: (n + ByteColumns - 1) / ByteColumns * ByteColumns}
					c.x, c.row, c.w = make([]byte, m*c.stride), make([]float64, m), make([]float64, k*c.d)
					for i := range m {
						c.row[i] = r.Float64()
						for j := range n {
							c.x[i*c.stride+j] = byte(r.Uint32())
							if full {
								c.x[i*c.stride+j] = 255
							}
						}
					}
					for j := range c.w {
						c.w[j] = r.NormFloat64()
						if full {
							c.w[j] = -1
						}
					}
					for range k {
						a := make([]float64, m)
						for i := range a {
							a[i] = float64(r.IntN(2*ByteWord+1) - ByteWord)
							if full {
								a[i] = -ByteWord
							}
						}
						c.a, c.off = append(c.a, a), append(c.off, float64(r.IntN(1000)-500))
					}
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// TestWords: words are the parameters but for half a unit, and their products with bytes are exact.
func TestWords(t *testing.T) {
	for _, c := range pixelCases() {
		var want []float64
		under(t, func() {
			var p Words
			p.Set(c.w, c.d, c.k, c.n, c.stride)
			z := make([]float64, c.k*c.m)
			for class := range c.k {
				p.Off(class, 0.375)
			}
			p.Dot(z, c.m, c.x, c.row)
			for class := range c.k {
				w := c.w[class*c.d:][:c.n]
				var words []float64
				var size, most float64
				for _, v := range w {
					words = append(words, math.RoundToEven(v/p.Scale(class)))
					size += math.Abs(words[len(words)-1])
					most = max(most, math.Abs(words[len(words)-1]))
				}
				if most > ByteWord || 255*size >= 1<<31 {
					t.Fatalf("words of up to %v, %v together", most, size)
				}
				if most < 1<<14-1 && 255*size < 1<<29 && size > 0 {
					t.Errorf("words of at most %v, %v together, waste digits", most, size)
				}
				for i, r := range c.row {
					var sum float64
					for j, v := range words {
						sum += v * float64(c.x[i*c.stride+j])
					}
					if exact := float64(sum+0.375) * float64(p.Scale(class)*r); z[class*c.m+i] != exact {
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
}

// TestWordsOfOddParameters: what is not finite makes margins that are no numbers, and nothing else does.
func TestWordsOfOddParameters(t *testing.T) {
	const n = 40
	x, row := make([]byte, ByteColumns*2), []float64{1}
	x[3], x[39] = 255, 1
	for _, v := range []float64{0, math.SmallestNonzeroFloat64, 0x1p-1000, math.MaxFloat64, math.Inf(-1), math.NaN()} {
		for _, at := range []int{3, 39} {
			w := make([]float64, 6*n)
			for class := range 6 {
				w[class*n+at] = v
			}
			under(t, func() {
				var p Words
				p.Set(w, n, 6, n, 64)
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

// TestAddBytes holds sums against whole numbers.
func TestAddBytes(t *testing.T) {
	const unit = 0x1p-30
	for _, c := range pixelCases() {
		want := make([]float64, c.k*c.d)
		for class := range c.k {
			for j := range c.n {
				sum := int64(c.off[class])
				for i := range c.m {
					sum += int64(c.a[class][i]) * int64(c.x[i*c.stride+j])
				}
				want[class*c.d+j] = float64(sum) * unit
			}
		}
		twins(t, fmt.Sprintf("AddBytes %d×%d, %d classes", c.m, c.n, c.k), make([]float64, c.k*c.d), func(dst []float64) {
			words := make([][ByteRows]int16, c.k)
			for class, a := range c.a {
				scaled := make([]float64, len(a))
				total := 0.0
				for i, v := range a {
					scaled[i] = v * unit
					total += v
				}
				if sum, ok := ByteWeights(&words[class], scaled, unit); !ok || sum != total {
					t.Fatalf("%v: weights of sum %v, %v; want %v", use, sum, ok, total)
				}
			}
			AddBytes(dst, c.d, c.n, words, c.x, c.stride, c.m, c.off, unit)
			if !slices.Equal(dst, want) {
				t.Fatalf("%v: %d×%d, %d classes: sums are not exact", use, c.m, c.n, c.k)
			}
		})
	}
}

// TestByteWeightsInRange: a weight that is no word is refused.
func TestByteWeightsInRange(t *testing.T) {
	for _, v := range []float64{ByteWord, -ByteWord, ByteWord + 1, -ByteWord - 1, 1 << 40} {
		for n := range 9 {
			for at := range n {
				a := make([]float64, n)
				a[at] = v * 0.25
				under(t, func() {
					var words [ByteRows]int16
					sum, ok := ByteWeights(&words, a, 0.25)
					if sum != v || ok != (math.Abs(v) <= ByteWord) {
						t.Errorf("%v: a weight %v, the %d. of %d: sum %v, %v", use, v, at+1, n, sum, ok)
					}
				})
			}
		}
	}
}

func BenchmarkBytes(b *testing.B) {
	const m, n, k, stride = 256, 784, 10, 800
	r := rand.New(rand.NewPCG(5, 6))
	x, w, row := make([]byte, m*stride), make([]float64, k*n), make([]float64, m)
	for i := range x {
		x[i] = byte(r.Uint32())
	}
	for j := range w {
		w[j] = r.NormFloat64()
	}
	z, dst, off := make([]float64, m*k), make([]float64, k*n), make([]float64, k)
	a := make([][ByteRows]int16, k)
	var p Words
	b.Run("set", func(b *testing.B) {
		for b.Loop() {
			p.Set(w, n, k, n, stride)
		}
	})
	p.Set(w, n, k, n, stride)
	b.Run("dot", func(b *testing.B) {
		for b.Loop() {
			p.Dot(z, m, x, row)
		}
	})
	b.Run("add", func(b *testing.B) {
		for b.Loop() {
			AddBytes(dst, n, n, a, x, stride, m, off, 1)
		}
	})
}
