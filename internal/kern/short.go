package kern

import "math"

// Rows of 16-bit numbers are a matrix of whole numbers from −ShortMost to ShortMost, each row stride numbers long, a
// multiple of ShortColumns, with zeros after its last column. Parameters and weights have 15 digits and a sign. Kernels
// multiply by their two limbs, word = 256·high + low with low from −128 to 127, so high is within ±128. Their products
// are sums of whole numbers, so all sets of kernels give the same bits in any order.
const (
	ShortColumns = 32    // a row has a multiple of as many
	ShortRows    = 256   // most rows of AddShorts
	ShortWidth   = 4096  // most columns of a row
	ShortMost    = 32767 // largest size of a number, a parameter and a weight
)

// A kernel adds up products of numbers and limbs in 32 bits: those of a row in eight sums or more, those of a column in
// one.
const (
	_ = uint(1<<31 - 1 - ShortWidth/8*ShortMost*128)
	_ = uint(1<<31 - 1 - ShortRows*ShortMost*128)
)

// Shorts are the parameters of some classes, rounded for products with rows of 16-bit numbers: w_cj is close to
// word_cj·scale_c, where scale_c is a power of two and a word has 15 digits and a sign. The memory is kept for the next
// parameters.
type Shorts struct {
	k, stride int
	w         []int16   // of each group of classes, for each 32 columns, the limbs of each class: high ones, then low ones
	scale     []float64 // NaN for a class with a parameter that is not finite
	few       []int16   // rows, of which there are fewer than kernels take
}

// Set takes the parameters of k classes: those of class c are w[c·n] to w[c·n+n−1]; rows have that stride. A class with
// a parameter that is not finite gets margins that are not numbers.
func (p *Shorts) Set(w []float64, k, n, stride int) {
	if stride%ShortColumns != 0 || n > stride || stride > ShortWidth || len(w) < k*n {
		panic("kern: rows of 16-bit numbers have another width")
	}
	p.k, p.stride = k, stride
	if cap(p.w) < 2*k*stride {
		p.w = make([]int16, 2*k*stride)
	}
	if cap(p.scale) < k {
		p.scale = make([]float64, k)
	}
	p.w, p.scale = p.w[:2*k*stride], p.scale[:k]
	for first := 0; first < k; {
		width := shortClasses(k - first)
		for c := range width {
			p.scale[first+c] = shortWords(p.w[2*(first*stride+c*ShortColumns):], 2*width*ShortColumns, w[(first+c)*n:][:n],
				stride)
		}
		first += width
	}
}

// shortWords puts the limbs of the words of one class into dst, those of 32 columns step numbers after those before,
// and returns what the words are multiples of.
func shortWords(dst []int16, step int, w []float64, stride int) (scale float64) {
	most := math.Float64frombits(byteLargest(w))
	digits := 0
	switch {
	case most-most != 0:
		scale, w = math.NaN(), nil
	case most > 0:
		_, exp := math.Frexp(most) // most < 2^exp
		digits = 15 - max(exp, -960)
		if math.RoundToEven(math.Ldexp(most, digits)) > ShortMost {
			digits--
		}
		scale = math.Ldexp(1, -digits)
	}
	byteWords(dst, step, w, stride, math.Ldexp(1, digits))
	if shortSplitFast(dst, step, stride/ShortColumns) {
		return scale
	}
	for from := 0; from < stride/ShortColumns*step; from += step {
		high, low := dst[from:][:ShortColumns], dst[from+ShortColumns:][:ShortColumns]
		for j, v := range high {
			high[j], low[j] = limbs(v)
		}
	}
	return scale
}

// limbs are high and low with v = 256·high + low.
func limbs(v int16) (high, low int16) { return v>>8 + v>>7&1, int16(int8(v)) }

// Dot sets z[c·step+i] = (Σ_j x_ij·word_cj)·(scale_c·row_i) for the first len(row) rows of x and all classes. The sum
// is exact; the products are rounded.
func (p *Shorts) Dot(z []float64, step int, x []int16, row []float64) {
	m := len(row)
	if m == 0 {
		return
	}
	x = x[:m*p.stride]
	if step < m || len(z) < (p.k-1)*step+m {
		panic("kern: margins reach beyond their place")
	}
	for first := 0; first < p.k; {
		width := shortClasses(p.k - first)
		if !p.dotFast(z[first*step:], step, x, m, first, width) {
			for i := range m {
				z[first*step+i] = p.product(x[i*p.stride:][:p.stride], first)
			}
		}
		first += width
	}
	for c, scale := range p.scale {
		for i, r := range row {
			z[c*step+i] *= float64(scale * r)
		}
	}
}

// product is Σ_j x_j·word_j of a class that is a group of its own.
func (p *Shorts) product(x []int16, class int) float64 {
	var sum int64
	w := p.w[2*class*p.stride:]
	for j, v := range x {
		at := j/ShortColumns*2*ShortColumns + j%ShortColumns
		sum += int64(v) * (int64(w[at])<<8 + int64(w[at+ShortColumns]))
	}
	return float64(sum)
}

// ShortLimbs are the limbs of a class's weights: the high ones, then the low ones.
type ShortLimbs [2][ShortRows]int16

// Set sets the limbs to those of a_i/unit, and the rest to 0, where all of a are multiples of unit, a power of two. It
// returns false if one is larger than ShortMost: then the limbs mean nothing.
func (l *ShortLimbs) Set(a []float64, unit float64) (ok bool) {
	inverse, ok := 1/unit, true
	for i, v := range a {
		v *= inverse
		ok = ok && math.Abs(v) <= ShortMost
		l[0][i], l[1][i] = limbs(int16(v))
	}
	clear(l[0][len(a):])
	clear(l[1][len(a):])
	return ok
}

// AddShorts adds (Σ_i a_ci·x_ij)·unit to dst[c·n+j] for the first m rows of x, at most ShortRows, and all classes of a,
// whose weights of rows from m on are 0. unit is a power of two. The sum is exact as long as the magnitudes in each
// entry of dst sum up to less than 2⁵³ units.
func AddShorts(dst []float64, n int, a []ShortLimbs, x []int16, stride, m int, unit float64) {
	if len(a) == 0 || m == 0 || n == 0 {
		return
	}
	x = x[:m*stride]
	if m > ShortRows || stride%ShortColumns != 0 || n > stride || stride > ShortWidth || len(dst) < len(a)*n {
		panic("kern: sums of rows of 16-bit numbers reach beyond their place")
	}
	for first := 0; first < len(a); {
		width := shortClasses(len(a) - first)
		to := dst[first*n:]
		if !addShortsFast(to, n, a[first:first+width], x, stride, m, unit) {
			var sum [ShortWidth]int64
			for i := range m {
				w := int64(a[first][0][i])<<8 + int64(a[first][1][i])
				if w == 0 {
					continue
				}
				for j, v := range x[i*stride:][:n] {
					sum[j] += w * int64(v)
				}
			}
			for j, v := range sum[:n] {
				to[j] += float64(v) * unit
			}
		}
		first += width
	}
}
