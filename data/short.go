package data

import (
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

// expandShort sets x to row i.
func (b *Block) expandShort(x []float32, i int) {
	scale := b.Scale(i)
	for j, v := range b.Shorts[i*b.Short.Stride:][:b.Dim] {
		x[j] = float32(float64(v) * scale) // 15 digits: exact
	}
}

// checkShort says whether the rows of a block of a packed table are as block makes them, but for what is checked of all
// rows.
func (b *Block) checkShort() bool {
	for i, s := range b.Shift {
		row := b.Shorts[i*b.Short.Stride:][:b.Short.Stride]
		if s > mostShift {
			return false
		}
		for j, v := range row {
			if v < -kern.ShortMost || j >= b.Dim && v != 0 {
				return false
			}
		}
	}
	return true
}

// float32s puts the blocks of a table of 16-bit numbers into memory as float32, with all that they hold.
func (t *Table) float32s() {
	var memory Arena
	for k, b := range t.Blocks {
		t.Blocks[k] = b.float32(&memory)
	}
}

// float32 is a block of 16-bit numbers as float32, with all that it holds, in memory.
func (b *Block) float32(memory *Arena) *Block {
	c := &Block{N: b.N, Dim: b.Dim, X: memory.Floats(b.N * b.Dim), Y: memory.copy(b.Y), Norm: memory.copy(b.Norm),
		Drop: slices.Clone(b.Drop)}
	for i := range b.N {
		b.expandShort(c.X[i*b.Dim:(i+1)*b.Dim], i)
	}
	return c
}
