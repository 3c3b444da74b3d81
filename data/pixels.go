package data

import (
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

// Numbers returns rows from … to-1 of b, which are bytes or numbers of 16 bits, as dense float32, with all else that b
// has of them, in the memory of to.
func (b *Block) Numbers(to *Block, from, end int) {
	n := end - from
	x := to.X
	if cap(x) < n*b.Dim {
		x = make([]float32, n*b.Dim)
	}
	x = x[:n*b.Dim]
	for i := range n {
		b.expand(x[i*b.Dim:(i+1)*b.Dim], from+i)
	}
	*to = Block{N: n, Dim: b.Dim, X: x, Norm: b.Norm[from:end]}
	if b.Y != nil {
		to.Y = b.Y[from:end]
	}
	if b.Drop != nil {
		to.Drop = b.Drop[from:end]
	}
}

// expand sets x to row i of b, which is bytes or numbers of 16 bits.
func (b *Block) expand(x []float32, i int) {
	if b.Short != nil {
		b.expandShort(x, i)
		return
	}
	b.Pixels.expand(x, b.Bytes[i*b.Pixels.Stride:], b.Factor[i])
}

// OfImages returns a table in memory of images as bytes, as Read makes it of a file with Options.Bytes. PixelsOf must
// find that images of the schema may be bytes. A label is the number of a class.
func OfImages(s *schema.Schema, images [][]byte, labels []float32) *Table {
	b, px := newBuilder(s, Options{}), PixelsOf(s)
	b.table.Pixels = px
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
