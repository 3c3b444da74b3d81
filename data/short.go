package data

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/sottodp/sotto/internal/kern"
	"github.com/sottodp/sotto/schema"
)

// A Short says what rows of 16-bit numbers mean. Row i of a block, with numbers v_ij within ±kern.ShortMost and shift
// s_i, is
//
//	x_ij = v_ij·2^s_i·Unit
//
// So it is a row of numbers like others: multiples of the table's unit, within its bound, of which Norm is the norm.
type Short struct {
	Stride int // numbers from one row to the next, with zeros after those of a row
	Unit   float64
}

// The shift of a row is the least with which its numbers fit 16 bits and their norm is at most 2^shortNorm. So rows of
// different shifts are about as long in whole numbers, and their coefficients have about as many digits.
const (
	shortBits = 15
	shortNorm = 16
	mostShift = 6 // values of a row are at most 2²⁰ units
)

// ShortOf says what rows of the schema are as 16-bit numbers; nil if they must be float32.
func ShortOf(s *schema.Schema) *Short {
	if s.Sparse() || s.Dim() > kern.ShortWidth {
		return nil
	}
	_, unit := s.RowRule()
	return &Short{Stride: shortStride(s.Dim()), Unit: unit}
}

func shortStride(dim int) int {
	return (dim + kern.ShortColumns - 1) / kern.ShortColumns * kern.ShortColumns
}

// shortTile is how many rows are evaluated at once, more of short ones. They stay in the second-level cache.
const shortTile = 64

func (sh *Short) tile() int { return min(kern.ShortRows, max(shortTile, 64<<10/sh.Stride&^7)) }

// Shorten returns the table with rows of 16-bit numbers, as Pack writes them: digits that are too many are cut off, so
// that no norm grows. Its rows are dense float32, of at most kern.ShortWidth columns.
func (t *Table) Shorten() *Table {
	c := *t
	c.Short = &Short{Stride: shortStride(t.Dim), Unit: t.Unit}
	c.Blocks, c.unmap, c.pages = nil, nil, nil
	var memory Arena
	for _, b := range t.Blocks {
		c.Blocks = append(c.Blocks, c.Short.block(b, &memory))
	}
	return &c
}

// block is a block of dense float32 rows as one of 16-bit numbers.
func (sh *Short) block(b *Block, memory *Arena) *Block {
	c := *b
	c.X, c.Short = nil, sh
	c.Shorts, c.Shift, c.Norm = memory.Shorts(b.N*sh.Stride), memory.Bytes(b.N), memory.Floats(b.N)
	rule := rowRule{unit: sh.Unit}
	for i := range b.N {
		x := b.X[i*b.Dim : (i+1)*b.Dim]
		c.Shift[i] = sh.shift(x)
		inverse, sum := math.Ldexp(1/sh.Unit, -int(c.Shift[i])), int64(0)
		for j, v := range c.Shorts[i*sh.Stride:][:b.Dim] {
			v = int16(float64(x[j]) * inverse) // toward zero
			c.Shorts[i*sh.Stride+j] = v
			sum += int64(v) * int64(v)
		}
		c.Norm[i] = rule.normUp(float64(sum << (2 * c.Shift[i])))
	}
	return &c
}

// shift is that of a row, of multiples of the unit.
func (sh *Short) shift(x []float32) (s uint8) {
	var most, sum int64
	for _, v := range x {
		k := int64(float64(v) * (1 / sh.Unit))
		most = max(most, k, -k)
		sum += k * k
	}
	for most >= 1<<(shortBits+s) || sum > 1<<(2*shortNorm+2*s) {
		s++
	}
	return s
}

// Scale is what the numbers of row i are multiples of.
func (b *Block) Scale(i int) float64 { return math.Ldexp(b.Short.Unit, int(b.Shift[i])) }

// shortRows are rows of 16-bit numbers: row i is Shorts[i·Stride:], with Shift. x_i = f_i·v_i with whole numbers v_i
// and f_i, a power of two. Both products are those of whole numbers, exact in any order:
//
//	z_ik = f_i·Σ_j v_ij·w_kj               with w_kj rounded to 15 digits of the largest
//	Σ_i c_i·∇_k ℓ_i = u·Σ_i a_ik·v_i       with a_ik = c_i·(f_i/u)·r_ik truncated to the unit, u the unit of the table
//
// As for bytes, no bound on a record rests on the rounded parameters.
type shortRows struct{ base }

func (r shortRows) size() int { return 2 * r.Short.Stride }

// of are the numbers of rows from … end−1.
func (r shortRows) of(from, end int) []int16 {
	return r.Shorts[from*r.Short.Stride : end*r.Short.Stride]
}

func (r shortRows) fill(x []float32, i int) {
	scale := r.Scale(i)
	for j, v := range r.of(i, i+1)[:r.Dim] {
		x[j] = float32(float64(v) * scale) // 15 digits: exact
	}
}

// appendCode: the same numbers may be other ones of 16 bits with another shift.
func (r shortRows) appendCode(dst []byte, i int) []byte {
	for _, v := range r.of(i, i+1) {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	return append(dst, r.Shift[i])
}

func (r shortRows) memory(i int) [2][]byte { return [2][]byte{asBytes(r.of(i, i+1)), r.Shift[i : i+1]} }

func (r shortRows) copyTo(to *Block, i int) {
	to.Shorts, to.Shift, to.Short = append(to.Shorts, r.of(i, i+1)...), append(to.Shift, r.Shift[i]), r.Short
}

func (r shortRows) parts() [][]byte { return [][]byte{asBytes(r.Shorts), r.Shift} }

func (r shortRows) valid() bool {
	for i, s := range r.Shift {
		if s > mostShift {
			return false
		}
		for j, v := range r.of(i, i+1) {
			if v < -kern.ShortMost || j >= r.Dim && v != 0 {
				return false
			}
		}
	}
	return true
}

// shortPack is how such rows lie in a chunk.
var shortPack = packForm{
	sizes: func(rows, _, dim int) []int { return []int{2 * rows * shortStride(dim), rows} },
	open: func(k *Block, s *schema.Schema, parts [][]byte) {
		k.Short, k.Shorts, k.Shift = ShortOf(s), numbers[int16](parts[0]), parts[1]
	},
}

// shortFiller makes such rows of dense ones.
type shortFiller struct {
	denseFiller
	of *Short
}

func (f *shortFiller) end(k *Block, memory *Arena) {
	f.denseFiller.end(k, memory)
	*k = *f.of.block(k, memory)
}

// float32s puts the blocks of a table of 16-bit numbers into memory as float32, with all that they hold.
func (t *Table) float32s() {
	var memory Arena
	for k, b := range t.Blocks {
		t.Blocks[k] = b.float32(&memory)
	}
}

// float32 is a block of 16-bit numbers as float32, with all that it holds, in memory; another block is as it is.
func (b *Block) float32(memory *Arena) *Block {
	if b.Short == nil {
		return b
	}
	c := new(Block)
	b.floats(c, memory.Floats(b.N*b.Dim), 0, b.N)
	c.Y, c.Norm, c.Drop = memory.copy(b.Y), memory.copy(b.Norm), slices.Clone(b.Drop)
	return c
}

// shortSpace is what a pass over rows of 16-bit numbers needs.
type shortSpace struct {
	words   kern.Shorts
	loaded  *float64 // the parameters of words, while they are held
	factor  []float64
	weights []kern.ShortLimbs
}

func (r shortRows) margins(z, w []float64, k int, v View, s *Space) {
	b := &s.short
	if !s.keeps(&b.loaded, w) {
		b.words.Set(w, k, r.Dim, r.Short.Stride)
	}
	b.factor = grow(b.factor, v.Len())
	for i := range b.factor {
		b.factor[i] = r.Scale(v.From + i)
	}
	b.words.Dot(z, v.Len(), r.of(v.From, v.To), b.factor)
}

// sizes are exact.
func (r shortRows) sizes(dst []float64, v View) {
	for i := range dst {
		var sum int64
		for _, x := range r.of(v.From+i, v.From+i+1)[:r.Dim] {
			sum += max(int64(x), -int64(x))
		}
		dst[i] = float64(sum) * r.Scale(v.From+i)
	}
}

// weights are c_i·f_i in units of the table.
func (r shortRows) weights(c []float64, v View, s *Space) []float64 {
	s.short.factor = grow(s.short.factor, len(c))
	for i, shift := range r.Shift[v.From:v.To] {
		s.short.factor[i] = c[i] * float64(uint(1)<<shift) // exact
	}
	return s.short.factor
}

// add adds u·Σ_i a_ik·v_i. The coefficients are multiples of the unit, so every number here is one of u·unit.
func (r shortRows) add(dst, a []float64, k int, v View, unit float64, s *Space) {
	needUnit(unit)
	b, n, d, stride := &s.short, v.Len(), r.Dim, r.Short.Stride
	for len(b.weights) < k {
		b.weights = append(b.weights, kern.ShortLimbs{})
	}
	x := r.of(v.From, v.To)
	for from := 0; from < n; from += kern.ShortRows {
		m := min(n-from, kern.ShortRows)
		rows := x[from*stride:][:m*stride]
		for c := range k {
			some := a[c*n+from:][:m]
			if b.weights[c].Set(some, unit) {
				continue
			}
			// Those that are no words: of short rows, and such with few numbers that count.
			for i, ai := range some {
				if math.Abs(ai) <= kern.ShortMost*unit {
					continue
				}
				for j, x := range rows[i*stride:][:d] {
					dst[c*d+j] += ai * (float64(x) * r.Short.Unit)
				}
				some[i] = 0
			}
			b.weights[c].Set(some, unit)
		}
		kern.AddShorts(dst, d, b.weights[:k], rows, stride, m, unit*r.Short.Unit)
	}
}
