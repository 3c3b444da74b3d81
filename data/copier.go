package data

import (
	"sort"

	"github.com/sottodp/sotto/internal/kern"
)

// A Copier copies rows from anywhere in a table to one block, so that later steps work on consecutive
// rows.
type Copier struct {
	Start  []int // number in the table of each block's first row
	blocks []*Block
	pages  *pages // of a packed table
	ahead  int    // rows between prefetching one and reading it
}

// NewCopier is for the rows that t has now.
func NewCopier(t *Table) Copier {
	size := 4 * max(1, t.Dim)
	if t.Pixels != nil {
		size = t.Pixels.Stride
	} else if t.Short != nil {
		size = 2 * t.Short.Stride
	} else if t.Curves != nil && !t.wide() {
		size = 4 * t.Curves.lines
	}
	c := Copier{blocks: t.Blocks, pages: t.pages, ahead: max(2, min(16, 4096/size))}
	row := 0
	for _, b := range t.Blocks {
		c.Start = append(c.Start, row)
		row += b.N
	}
	return c
}

// Locate returns the block of a row of the table, and the row's number in that block.
func (c *Copier) Locate(row int) (*Block, int) {
	i := min(row/BlockRows, len(c.Start)-1) // where all blocks but the last are full
	if n := row - c.Start[i]; n < 0 || n >= c.blocks[i].N {
		i = sort.SearchInts(c.Start, row+1) - 1
	}
	return c.blocks[i], row - c.Start[i]
}

// Copy sets to to the first n rows. The rows of a large table are rarely in the cache, so Copy prefetches
// them some time before it reads them, also those after the first n. The features of the first fetched
// rows are in the cache already.
func (c *Copier) Copy(to *Block, rows []int32, n, fetched int) {
	to.N = n
	to.X, to.Start, to.Col, to.Val = to.X[:0], to.Start[:0], to.Col[:0], to.Val[:0]
	to.Bytes, to.Factor, to.Pixels = to.Bytes[:0], to.Factor[:0], nil
	to.Shorts, to.Shift, to.Short = to.Shorts[:0], to.Shift[:0], nil
	to.Lines, to.Factors, to.Curves = to.Lines[:0], to.Factors[:0], nil
	to.Y, to.Norm, to.Drop = to.Y[:0], to.Norm[:0], to.Drop[:0]
	for k, row := range rows[:n] {
		if k+c.ahead < len(rows) {
			c.prefetch(int(rows[k+c.ahead]), k+c.ahead < fetched)
		}
		b, i := c.Locate(int(row))
		if b.Pixels != nil {
			to.Bytes = append(to.Bytes, b.Bytes[i*b.Pixels.Stride:][:b.Pixels.Stride]...)
			to.Factor, to.Pixels = append(to.Factor, b.Factor[i]), b.Pixels
		} else if b.Short != nil {
			to.Shorts = append(to.Shorts, b.Shorts[i*b.Short.Stride:][:b.Short.Stride]...)
			to.Shift, to.Short = append(to.Shift, b.Shift[i]), b.Short
		} else if b.Narrow() {
			to.Lines = append(to.Lines, b.stored(i)...)
			to.Factors, to.Curves = append(to.Factors, b.Factors[i]), b.Curves
		} else if b.Start == nil {
			to.X = append(to.X, b.X[i*b.Dim:(i+1)*b.Dim]...)
		} else {
			if len(to.Start) == 0 {
				to.Start = append(to.Start, 0)
			}
			to.Col = append(to.Col, b.Col[b.Start[i]:b.Start[i+1]]...)
			to.Val = append(to.Val, b.Val[b.Start[i]:b.Start[i+1]]...)
			to.Start = append(to.Start, int32(len(to.Col)))
		}
		if b.Y != nil {
			to.Y = append(to.Y, b.Y[i])
		}
		to.Norm = append(to.Norm, b.Norm[i])
		to.Drop = append(to.Drop, b.Drop != nil && b.Drop[i])
	}
	if len(to.Start) == 0 {
		to.Start = nil // dense
	}
}

// prefetch prefetches a row or, if its features are in the cache already, only its label and norm.
func (c *Copier) prefetch(row int, fetched bool) {
	b, i := c.Locate(row)
	if fetched {
		// Its features are in the cache.
	} else if b.Pixels != nil {
		kern.Prefetch(b.Bytes[i*b.Pixels.Stride:][:b.Pixels.Stride])
		kern.Prefetch(b.Factor[i : i+1])
	} else if b.Short != nil {
		kern.Prefetch(b.Shorts[i*b.Short.Stride:][:min(b.Short.Stride, 512)])
		kern.Prefetch(b.Shift[i : i+1])
	} else if b.Narrow() {
		x := b.stored(i)
		kern.Prefetch(x[:min(len(x), 256)])
		kern.Prefetch(b.Factors[i : i+1])
	} else if b.Start == nil {
		// The first part of a long row: the hardware prefetches the rest.
		kern.Prefetch(b.X[i*b.Dim:][:min(b.Dim, 256)])
	} else {
		kern.Prefetch(b.Col[b.Start[i]:b.Start[i+1]])
		kern.Prefetch(b.Val[b.Start[i]:b.Start[i+1]])
	}
	if b.Y != nil {
		kern.Prefetch(b.Y[i : i+1])
	}
	kern.Prefetch(b.Norm[i : i+1])
}

// Dense returns a row with its zeros: a part of b, or of *memory.
func (b *Block) Dense(row int, memory *[]float32) []float32 {
	if b.Start == nil && !b.Coded() && !b.Narrow() {
		return b.X[row*b.Dim : (row+1)*b.Dim]
	}
	if len(*memory) < b.Dim {
		*memory = make([]float32, b.Dim)
	}
	x := (*memory)[:b.Dim]
	if b.Coded() {
		b.expand(x, row)
		return x
	}
	clear(x)
	if b.Narrow() {
		b.widen(x, row)
		return x
	}
	for e := b.Start[row]; e < b.Start[row+1]; e++ {
		x[b.Col[e]] = b.Val[e]
	}
	return x
}
