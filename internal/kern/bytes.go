package kern

import "math"

// Rows of bytes are a matrix of whole numbers from 0 to 255, each row stride bytes long, a multiple of ByteColumns,
// with zeros after its last column. Their products are sums of whole numbers, so all sets of kernels give the same bits
// in any order.
const (
	ByteColumns = 32   // a row of bytes has a multiple of as many
	ByteRows    = 256  // most rows of AddBytes
	ByteWidth   = 4096 // most columns of a row
)

// ByteWord is the largest size of a word: a parameter of Words, a weight of AddBytes.
const ByteWord = math.MaxInt16

// byteSum is what no sum of words times bytes reaches. AddBytes keeps below it by its number of rows:
// 256 · 255 · 32767 < 2³¹.
const byteSum = 1 << 31

// Words are the parameters of some classes, rounded for products with rows of bytes: w_cj is close to word_cj·scale_c,
// where scale_c is a power of two. A word has 15 digits and a sign, fewer where the products with bytes 255 would not
// fit 32 bits. The memory is kept for the next parameters.
type Words struct {
	k, stride int
	w         []int16   // of each group of classes, for each 32 columns, the words of each class
	sum       []float64 // Σ_j word_cj
	off       []float64 // see Dot
	scale     []float64
	few       []byte // rows, of which there are fewer than kernels take
}

// Set takes the parameters of k classes: those of class c are w[c·d] to w[c·d+n−1], n of them, and d ≥ n; rows have
// stride bytes. A class with a parameter that is not finite gets margins that are not numbers.
func (p *Words) Set(w []float64, d, k, n, stride int) {
	if stride%ByteColumns != 0 || n > stride || stride > ByteWidth || n > d || len(w) < (k-1)*d+n {
		panic("kern: rows of bytes have another width")
	}
	p.k, p.stride = k, stride
	if cap(p.w) < k*stride {
		p.w = make([]int16, k*stride)
	}
	p.w = p.w[:k*stride]
	padded := (k + 3) &^ 3 // kernels read four
	if cap(p.sum) < padded {
		p.sum, p.off, p.scale = make([]float64, padded), make([]float64, padded), make([]float64, padded)
	}
	p.sum, p.off, p.scale = p.sum[:padded], p.off[:padded], p.scale[:padded]
	first := 0
	for first < k {
		width := byteClasses(k - first)
		for c := range width {
			p.set(first+c, w[(first+c)*d:][:n], p.w[first*stride+c*ByteColumns:], width*ByteColumns)
		}
		first += width
	}
}

// set rounds the parameters of a class.
func (p *Words) set(class int, w []float64, to []int16, step int) {
	p.off[class], p.scale[class], p.sum[class] = 0, 1, 0
	most := math.Float64frombits(byteLargest(w))
	digits := 0
	switch {
	case most-most != 0:
		p.off[class] = math.NaN()
		w = nil
	case most > 0:
		_, exp := math.Frexp(most) // most < 2^exp
		digits = 15 - max(exp, -960)
		if math.RoundToEven(math.Ldexp(most, digits)) > ByteWord {
			digits--
		}
	}
	for {
		sum, size := byteWords(to, step, w, p.stride, math.Ldexp(1, digits))
		if 255*size < byteSum {
			p.sum[class], p.scale[class] = float64(sum), math.Ldexp(1, -digits)
			return
		}
		digits--
	}
}

// Scale is what class c's words are multiples of, and Sum is their sum.
func (p *Words) Scale(c int) float64 { return p.scale[c] }
func (p *Words) Sum(c int) float64   { return p.sum[c] }

// Off adds v words to the margins of class c, as Dot says.
func (p *Words) Off(c int, v float64) { p.off[c] += v }

// Dot sets z[c·step+i] = (Σ_j x_ij·word_cj + off_c)·(scale_c·row_i) for the first len(row) rows of x and all classes.
// The sum is exact; the addition and the two products are rounded.
func (p *Words) Dot(z []float64, step int, x []byte, row []float64) {
	m := len(row)
	if m == 0 {
		return
	}
	x = x[:m*p.stride]
	if step < m || len(z) < (p.k-1)*step+m {
		panic("kern: margins reach beyond their place")
	}
	for first := 0; first < p.k; {
		width := byteClasses(p.k - first)
		if !p.dotFast(z[first*step:], step, x, row, first, width) {
			w := p.w[first*p.stride:]
			for i, r := range row {
				var sum int64
				for j, v := range x[i*p.stride:][:p.stride] {
					sum += int64(v) * int64(w[j])
				}
				z[first*step+i] = float64(float64(sum)+p.off[first]) * float64(p.scale[first]*r)
			}
		}
		first += width
	}
}

// ByteWeights sets dst to a_i/unit, and the rest of dst to 0, where all of a are multiples of unit, a power of two. It
// returns their sum, and false if one is larger than ByteWord: then dst means nothing.
func ByteWeights(dst *[ByteRows]int16, a []float64, unit float64) (sum float64, ok bool) {
	inverse := 1 / unit
	n, most := 0, 0.0
	if use != plain && len(a) >= 4 {
		n = len(a) &^ 3
		sum, most = byteWeightsFast(dst[:n], a[:n], inverse)
	}
	for i, v := range a[n:] {
		v *= inverse
		sum += v
		most = max(most, math.Abs(v))
		dst[n+i] = int16(v)
	}
	clear(dst[len(a):])
	return sum, most <= ByteWord
}

// AddBytes adds (Σ_i a_ci·x_ij + off_c)·unit to dst[c·d+j], j < n, for the first m rows of x, at most ByteRows, and all
// classes of a, whose weights of rows from m on are 0. unit is a power of two. The sum is exact as long as the
// magnitudes in each entry of dst sum up to less than 2⁵³ units.
func AddBytes(dst []float64, d, n int, a [][ByteRows]int16, x []byte, stride, m int, off []float64, unit float64) {
	if len(a) == 0 || m == 0 || n == 0 {
		return
	}
	x = x[:m*stride]
	if m > ByteRows || stride%ByteColumns != 0 || n > stride || n > d || len(off) < len(a) || len(dst) < (len(a)-1)*d+n {
		panic("kern: sums of rows of bytes reach beyond their place")
	}
	for first := 0; first < len(a); {
		width := byteClasses(len(a) - first)
		to := dst[first*d:]
		if !addBytesFast(to, d, n, a[first:first+width], x, stride, m, off[first:], unit) {
			var sum [ByteWidth]int64
			for i := range m {
				w := int64(a[first][i])
				if w == 0 {
					continue
				}
				for j, v := range x[i*stride:][:n] {
					sum[j] += w * int64(v)
				}
			}
			for j, v := range sum[:n] {
				to[j] += (float64(v) + off[first]) * unit
			}
		}
		first += width
	}
}

// byteLargest is the bits of the largest |w_j|: of NaN, where there is one.
func byteLargest(w []float64) (most uint64) {
	n := 0
	if use != plain && len(w) >= 4 {
		n = len(w) &^ 3
		most = byteLargestFast(w[:n])
	}
	for _, v := range w[n:] {
		most = max(most, math.Float64bits(v)&^(1<<63))
	}
	return most
}

// byteWords rounds w·scale to words and puts 32 of them at a time into dst, each 32 step words after those before, with
// zeros up to stride. It returns their sum, and that of their absolute values.
func byteWords(dst []int16, step int, w []float64, stride int, scale float64) (sum, size int64) {
	from := 0
	if full := len(w) / ByteColumns; use != plain && full > 0 {
		sum, size = byteWordsFast(dst[:(full-1)*step+ByteColumns], step, w[:full*ByteColumns], scale)
		from = full * ByteColumns
	}
	for j := from; j < stride; j++ {
		v := 0.0
		if j < len(w) {
			v = math.RoundToEven(w[j] * scale)
		}
		sum += int64(v)
		size += int64(math.Abs(v))
		dst[j/ByteColumns*step+j%ByteColumns] = int16(v)
	}
	return sum, size
}
