package data

// BlockRows is the maximum number of rows in a block.
const BlockRows = 1024

// A Block holds up to BlockRows encoded rows, dense or sparse, with their labels and norms. Its fields
// are private data: only models and the private oracle (oracle/private) see blocks.
type Block struct {
	N   int // rows in this block
	Dim int // encoded features per row, intercept included

	X []float32 // dense: N×Dim, row after row; nil for a sparse block, and a narrow one

	Start []int32   // sparse: row i is Col[Start[i]:Start[i+1]] and Val likewise; nil for dense
	Col   []int32   // ascending within a row
	Val   []float32 // the values at Col

	Bytes  []byte    // of a block of images as bytes: row i is Bytes[i·Stride:], with Factor; nil for others
	Factor []float64 // of each such row
	Pixels *Pixels   // what bytes mean

	Shorts []int16 // of a block of 16-bit numbers: row i is Shorts[i·Stride:], with Shift; nil for others
	Shift  []byte  // of each such row
	Short  *Short  // what they mean

	// Of rows with curves: the stored rows that they follow from, one after the other, and the factor of each. Without X
	// the block is narrow: Widen makes X of them.
	Lines   []float32
	Factors []float64
	Curves  *Curves

	Made *curveTile // of the rows of a Widener, which also has them without most of their zeros

	Y    []float32 // label: class index 0, 1, …, or the clamped value of a numeric label
	Norm []float32 // ‖x‖₂ of each row, rounded up: never below the true norm of the stored values
	Drop []bool    // rows that keep their position with weight 0 (R9); nil if there are none
}

// A Table is an encoded table in memory, or mapped into it. Every stored value is a multiple of
// Unit, a power of two, and every row's norm is at most NormBound: both are
// public facts, which the schema implies. With weights that are multiples of
// another power of two, sums over rows are then exact in any order.
//
// The number of rows is private under add-or-remove; see Rows.
type Table struct {
	Dim       int     // encoded features, intercept included
	Classes   int     // number of classes; 0 for a numeric label or no label
	NormBound float64 // every row has ‖x‖₂ ≤ NormBound
	Unit      float64 // every value is a multiple of Unit, a power of two
	Labeled   bool    // the rows carry labels
	Cells     bool    // every value is 1, of a cell that the row is in, or 0
	Clamped   int     // numeric labels that were clamped to the schema's bounds
	Pixels    *Pixels // the rows are bytes; nil: numbers
	Short     *Short  // the rows are numbers of 16 bits; nil: of float32, or bytes
	Curves    *Curves // how the rows follow from stored ones; nil: they are as they are stored
	Blocks    []*Block

	rule  rowRule      // of the schema; zero: a table that none made
	units *units       // whose rows they are; nil: each row is a unit
	unmap func() error // of a packed table
	pages *pages       // likewise
}

// Close unmaps a packed table; do not use its blocks afterward. For other tables it does nothing.
func (t *Table) Close() error {
	if t.unmap == nil {
		return nil
	}
	unmap := t.unmap
	t.unmap, t.pages, t.Blocks = nil, nil, nil
	return unmap()
}

// Rows counts the rows, including dropped ones that keep their position. The number is private under
// add-or-remove: only the private oracle may call Rows, and none of its outputs may depend on the number.
func (t *Table) Rows() int {
	n := 0
	for _, b := range t.Blocks {
		n += b.N
	}
	return n
}

// A View names rows of one block: those listed in Rows, or all of From … To-1
// when Rows is nil. It is the piece that a model evaluates at once.
type View struct {
	*Block
	Rows     []int32 // row numbers within the block, ascending; nil: the range
	From, To int
	Next     [][]float32 // dense rows, of this block or others, that are read soon; nil: not known
}

// Len is the number of rows that v names.
func (v View) Len() int {
	if v.Rows != nil {
		return len(v.Rows)
	}
	return v.To - v.From
}

// Row is the number within the block of the i-th row of v.
func (v View) Row(i int) int {
	if v.Rows != nil {
		return int(v.Rows[i])
	}
	return v.From + i
}
