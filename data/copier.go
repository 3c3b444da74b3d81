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
	forms  []form // of the blocks
	pages  *pages // of a packed table
	ahead  int    // rows between prefetching one and reading it
}

// NewCopier is for the rows that t has now.
func NewCopier(t *Table) Copier {
	size := 4 * t.Dim
	if len(t.Blocks) > 0 {
		size = t.Blocks[0].form().size()
	}
	c := Copier{blocks: t.Blocks, pages: t.pages, ahead: max(2, min(16, 4096/max(4, size)))}
	row := 0
	for _, b := range t.Blocks {
		c.Start, c.forms = append(c.Start, row), append(c.forms, b.form())
		row += b.N
	}
	return c
}

// Locate returns the block of a row of the table, and the row's number in that block.
func (c *Copier) Locate(row int) (*Block, int) {
	k, i := c.locate(row)
	return c.blocks[k], i
}

// locate is Locate with the number of the block.
func (c *Copier) locate(row int) (block, i int) {
	i = min(row/BlockRows, len(c.Start)-1) // where all blocks but the last are full
	if n := row - c.Start[i]; n < 0 || n >= c.blocks[i].N {
		i = sort.SearchInts(c.Start, row+1) - 1
	}
	return i, row - c.Start[i]
}

// Copy sets to to the first n rows. The rows of a large table are rarely in the cache, so Copy prefetches
// them some time before it reads them, also those after the first n. The features of the first fetched
// rows are in the cache already.
func (c *Copier) Copy(to *Block, rows []int32, n, fetched int) {
	to.empty(n)
	for k, row := range rows[:n] {
		if k+c.ahead < len(rows) {
			c.prefetch(int(rows[k+c.ahead]), k+c.ahead < fetched)
		}
		at, i := c.locate(int(row))
		b := c.blocks[at]
		c.forms[at].copyTo(to, i)
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
	at, i := c.locate(row)
	b := c.blocks[at]
	if !fetched {
		c.forms[at].prefetch(i)
	}
	if b.Y != nil {
		kern.Prefetch(b.Y[i : i+1])
	}
	kern.Prefetch(b.Norm[i : i+1])
}
