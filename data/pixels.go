package data

import (
	"encoding/binary"
	"math"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/schema"
)

// Pixels say what rows of bytes mean. Row i of a block, with bytes v_ij and factor f_i, is
//
//	x_ij = f_i·(v_ij − Center) for j < N,  and f_i·One, if there is an intercept
//
// where Center and One are multiples of ByteStep. So a row's gradient is f_i times a whole-number row that is never
// formed. All of it is public but bytes and factors.
type Pixels struct {
	N      int     // pixels of a row
	Stride int     // bytes from one row to the next, with zeros after the pixels
	Center float64 // from 0 to 255
	One    float64 // 0: there is no intercept
	Norm   float64 // a bound on the norm of (v_ij − Center, One) over all images

	scale bool    // bring every row to the bound
	plain float64 // the factor of a row that keeps its size
	bound float64 // on a row's norm
	unit  float64 // of numbers
}

// ByteStep is what Center and One are multiples of.
const ByteStep = 0x1p-10

// most is the largest One, and least the smallest divisor of pixels: then the center's rounding is below 2⁻¹¹ of a
// feature.
const mostOne, leastScale = 256, 1

// PixelsOf says what images of the schema are as bytes; nil if they must be numbers.
func PixelsOf(s *schema.Schema) *Pixels {
	m := s.Image
	if s.Format.Kind != schema.KindIDX || m == nil || m.Encode != "" || s.UnitRows > 0 || s.Norm == schema.NormL1 {
		return nil
	}
	n := m.Pixels()
	if n > kern.ByteWidth || len(m.Center) != 1 || len(m.Scale) != 1 {
		return nil
	}
	center, scale := m.Center[0], m.Scale[0]
	if center < 0 || center > math.MaxUint8 || scale < leastScale || s.Intercept && scale > mostOne {
		return nil
	}
	p := &Pixels{N: n, Stride: (n + kern.ByteColumns - 1) / kern.ByteColumns * kern.ByteColumns,
		Center: steps(center) * ByteStep}
	if s.Intercept {
		p.One = steps(scale) * ByteStep
	}
	far := max(p.Center, math.MaxUint8-p.Center)
	p.Norm = math.Sqrt(float64(n)*far*far+p.One*p.One) * (1 + 0x1p-50)
	p.bound, p.unit = s.RowRule()
	p.scale, p.plain = s.RowScaling == schema.RowScale, 1/scale
	return p
}

// steps is v in whole steps.
func steps(v float64) float64 { return math.RoundToEven(v / ByteStep) }

// factor returns the factor of an image and a bound on the norm of its row: at least 1 + 2⁻⁴⁰ times that, so that it
// covers the rounding of a product with the factor, and at most the bound of the schema.
//
// In steps, squares are below 2³⁶ and their sum is below 2⁴⁹, so it is exact.
func (p *Pixels) factor(image []byte) (factor float64, norm float32) {
	var sum, squares int64
	for _, v := range image {
		sum += int64(v)
		squares += int64(v) * int64(v)
	}
	center, one := int64(p.Center/ByteStep), int64(p.One/ByteStep)
	const byStep = 1 / ByteStep
	all := squares*(byStep*byStep) - 2*byStep*center*sum + int64(len(image))*center*center + one*one
	if all == 0 {
		return p.plain, 0 // all at the center
	}
	size := math.Sqrt(float64(all)) * ByteStep
	const above = 1 + 0x1p-39
	factor = p.plain
	if p.scale || factor*size*above > p.bound {
		factor = (1 - 0x1p-38) * p.bound / size
	}
	return factor, upTo32(factor * size * above)
}

// upTo32 is v rounded up to float32.
func upTo32(v float64) float32 {
	f := float32(v)
	if float64(f) < v {
		f = math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

// expand sets x to the row as numbers: multiples of the table's unit, each rounded toward zero, so that the row's norm
// bounds them, too.
func (p *Pixels) expand(x []float32, image []byte, factor float64) {
	inverse := 1 / p.unit
	number := func(v float64) float32 { return float32(math.Trunc(factor*v*inverse)*p.unit + 0) } // not −0
	for j, v := range image[:p.N] {
		x[j] = number(float64(v) - p.Center)
	}
	if p.One > 0 {
		x[p.N] = number(p.One)
	}
}

// byteRows are rows of bytes: row i is Bytes[i·Stride:], with Factor. x_i = f_i·u_i with u_i = (v_i − m, one), bytes
// v_i less a center. Both products are those of whole numbers, exact in any order; the center is a correction of rank
// one:
//
//	z_ik = f_i·(Σ_j v_ij·w_kj − m·Σ_j w_kj + one·w_k,one)       with w_kj rounded to 15 digits of the largest
//	Σ_i c_i·∇_k ℓ_i = Σ_i a_ik·u_i = Σ_i a_ik·v_i − m·Σ_i a_ik   with a_ik = c_i·f_i·r_ik truncated to the unit
//
// Rounded parameters move the margins, and so the gradient that is asked for: no more than another w would, so no bound
// on a record rests on them.
type byteRows struct{ base }

func (r byteRows) size() int { return r.Pixels.Stride }

// of are the bytes of rows from … end−1.
func (r byteRows) of(from, end int) []byte {
	return r.Bytes[from*r.Pixels.Stride : end*r.Pixels.Stride]
}

func (r byteRows) fill(x []float32, i int) { r.Pixels.expand(x, r.of(i, i+1), r.Factor[i]) }

// appendCode: the same numbers may be other bytes with another factor.
func (r byteRows) appendCode(dst []byte, i int) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, r.of(i, i+1)...), math.Float64bits(r.Factor[i]))
}

func (r byteRows) memory(i int) [2][]byte { return [2][]byte{r.of(i, i+1), asBytes(r.Factor[i : i+1])} }

func (r byteRows) copyTo(to *Block, i int) {
	to.Bytes, to.Factor, to.Pixels = append(to.Bytes, r.of(i, i+1)...), append(to.Factor, r.Factor[i]), r.Pixels
}

// byteSpace is what a pass over rows of bytes needs.
type byteSpace struct {
	words   kern.Words
	loaded  *float64 // the parameters of words, while they are held
	factor  []float64
	weights [][kern.ByteRows]int16
	off     []float64
}

func (r byteRows) margins(z, w []float64, k int, v View, s *Space) {
	b, px := &s.bytes, r.Pixels
	if !s.keeps(&b.loaded, w) {
		d := r.Dim
		b.words.Set(w, d, k, px.N, px.Stride)
		for c := range k {
			off := -px.Center * b.words.Sum(c)
			if px.One > 0 {
				off += px.One * w[c*d+px.N] / b.words.Scale(c)
			}
			b.words.Off(c, off)
		}
	}
	b.words.Dot(z, v.Len(), r.of(v.From, v.To), r.Factor[v.From:v.To])
}

// sizes: the sum is exact, and the factor covers two roundings.
func (r byteRows) sizes(dst []float64, v View) {
	px := r.Pixels
	for i := range dst {
		sum := px.One
		for _, b := range r.of(v.From+i, v.From+i+1)[:px.N] {
			sum += math.Abs(float64(b) - px.Center)
		}
		dst[i] = sum * r.Factor[v.From+i] * (1 + 0x1p-40)
	}
}

// weights are c_i·f_i.
func (r byteRows) weights(c []float64, v View, s *Space) []float64 {
	s.bytes.factor = grow(s.bytes.factor, len(c))
	for i, f := range r.Factor[v.From:v.To] {
		p := c[i] * f
		if p < 0x1p-1000 {
			p = 0 // below any unit; just above the subnormal numbers, whose rounding could lengthen a row
		}
		s.bytes.factor[i] = p
	}
	return s.bytes.factor
}

// add adds Σ_i a_ik·u_i. The coefficients are multiples of the unit, so every number here is one of ByteStep·unit.
func (r byteRows) add(dst, a []float64, k int, v View, unit float64, s *Space) {
	needUnit(unit)
	b, px, n, d := &s.bytes, r.Pixels, v.Len(), r.Dim
	for len(b.weights) < k {
		b.weights, b.off = append(b.weights, [kern.ByteRows]int16{}), append(b.off, 0)
	}
	x := r.of(v.From, v.To)
	for from := 0; from < n; from += kern.ByteRows {
		m := min(n-from, kern.ByteRows)
		rows := x[from*px.Stride:][:m*px.Stride]
		for c := range k {
			sum, ok := kern.ByteWeights(&b.weights[c], a[c*n+from:][:m], unit)
			if !ok {
				px.addLarge(dst[c*d:], a[c*n+from:][:m], rows, unit)
				sum, _ = kern.ByteWeights(&b.weights[c], a[c*n+from:][:m], unit)
			}
			b.off[c] = -px.Center * sum
			if px.One > 0 {
				dst[c*d+px.N] += px.One * sum * unit
			}
		}
		kern.AddBytes(dst, d, px.N, b.weights[:k], rows, px.Stride, m, b.off, unit)
	}
}

// needUnit panics without a unit: a programmer error.
func needUnit(unit float64) {
	if unit == 0 {
		panic("data: rows of bytes or 16-bit numbers are summed in a unit")
	}
}

// addLarge adds the rows whose coefficients are no words, those of rare small rows, and sets the coefficients to 0.
func (p *Pixels) addLarge(dst, a []float64, x []byte, unit float64) {
	for i, ai := range a {
		if math.Abs(ai) <= kern.ByteWord*unit {
			continue
		}
		for j, b := range x[i*p.Stride:][:p.N] {
			dst[j] += ai * (float64(b) - p.Center)
		}
		if p.One > 0 {
			dst[p.N] += ai * p.One
		}
		a[i] = 0
	}
}

// byteFiller makes such rows.
type byteFiller struct {
	*Pixels
	bytes  []byte
	factor []float64
}

func (f *byteFiller) begin(memory *Arena) {
	f.bytes, f.factor = memory.Bytes(BlockRows*f.Stride), make([]float64, BlockRows)
}

func (f *byteFiller) add(i int, r *record) {
	if !r.dropped {
		copy(f.bytes[i*f.Stride:], r.image)
		f.factor[i] = r.factor
	}
}

func (f *byteFiller) end(k *Block, _ *Arena) {
	k.Bytes, k.Factor, k.Pixels = f.bytes[:k.N*f.Stride], f.factor[:k.N], f.Pixels
}

// OfImages returns a table in memory of images as bytes, as Read makes it of a file with Options.Bytes. PixelsOf must
// find that images of the schema may be bytes. A label is the number of a class.
func OfImages(s *schema.Schema, images [][]byte, labels []float32) *Table {
	b, px := newBuilder(s, Options{}), PixelsOf(s)
	b.bytes(px)
	for i, image := range images {
		r := record{image: image[:px.N], y: labels[i]}
		r.factor, r.norm = px.factor(r.image)
		if err := b.add(&r); err != nil {
			panic(err) // of memory that never fails
		}
	}
	if err := b.flush(); err != nil {
		panic(err)
	}
	return b.table
}
