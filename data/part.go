package data

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Gather is a table in memory of the rows that in says yes to, in their order. Rows
// are numbered across the tables, one after the other; these must be of one schema.
func Gather(tables []*Table, in func(row int) bool) *Table {
	out := *tables[0]
	out.Blocks, out.unmap, out.mapped = nil, nil, nil
	p := packer{to: &out}
	row := 0
	for _, t := range tables {
		for _, b := range t.Blocks {
			for i := range b.N {
				if in(row) {
					p.add(b, i, out.Dim)
				}
				row++
			}
		}
	}
	p.flush()
	return &out
}

// A packer fills blocks with rows of others.
type packer struct {
	to    *Table
	room  Room
	b     *Block
	start []int32
	col   []int32
	val   []float32
}

func (p *packer) add(from *Block, i, dim int) {
	if p.b != nil && p.b.N == BlockRows {
		p.flush()
	}
	if p.b == nil {
		p.b = &Block{Dim: dim, Norm: p.room.Floats(BlockRows)[:0]}
		if from.Y != nil {
			p.b.Y = p.room.Floats(BlockRows)[:0]
		}
		if from.Start == nil {
			p.b.X = p.room.Floats(BlockRows * dim)[:0]
		}
	}
	b := p.b
	b.Norm = append(b.Norm, from.Norm[i])
	if from.Y != nil {
		b.Y = append(b.Y, from.Y[i])
	}
	if from.Start == nil {
		b.X = append(b.X, from.X[i*dim:(i+1)*dim]...)
	} else {
		p.start = append(p.start, int32(len(p.col)))
		p.col = append(p.col, from.Col[from.Start[i]:from.Start[i+1]]...)
		p.val = append(p.val, from.Val[from.Start[i]:from.Start[i+1]]...)
	}
	if from.Drop != nil && from.Drop[i] {
		if b.Drop == nil {
			b.Drop = make([]bool, BlockRows)
		}
		b.Drop[b.N] = true
	}
	b.N++
}

func (p *packer) flush() {
	b := p.b
	if b == nil {
		return
	}
	if b.X == nil {
		b.Start = append(append([]int32(nil), p.start...), int32(len(p.col)))
		b.Col = p.room.Ints(len(p.col))
		copy(b.Col, p.col)
		b.Val = p.room.Floats(len(p.val))
		copy(b.Val, p.val)
		p.start, p.col, p.val = p.start[:0], p.col[:0], p.val[:0]
	}
	if b.Drop != nil {
		b.Drop = b.Drop[:b.N]
	}
	p.to.Blocks, p.b = append(p.to.Blocks, b), nil
}

// Coins is a number from 0 to 2⁶⁴−1 for each row of the tables, numbered as in Gather:
// a keyed hash of the row's encoded values and label and, where rows are equal, of its
// number among them. So a row more, or one less, moves no other's coin (R10), and equal
// rows, who are different people, have independent ones.
func Coins(tables []*Table, key []byte) []uint64 {
	var coins []uint64
	seen := map[[16]byte]uint64{}
	var text []byte
	for _, t := range tables {
		for _, b := range t.Blocks {
			for i := range b.N {
				text = appendRow(text[:0], b, i)
				sum := sha256.Sum256(text)
				content := [16]byte(sum[:16])
				text = append(append(text[:0], key...), sum[:16]...)
				text = binary.LittleEndian.AppendUint64(text, seen[content])
				seen[content]++
				sum = sha256.Sum256(text)
				coins = append(coins, binary.LittleEndian.Uint64(sum[:]))
			}
		}
	}
	return coins
}

// appendRow writes row i of b: its values that are not 0 with their places, and its label.
func appendRow(dst []byte, b *Block, i int) []byte {
	put := func(j int32, v float32) {
		if v != 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(j))
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	if b.Start != nil {
		for p := b.Start[i]; p < b.Start[i+1]; p++ {
			put(b.Col[p], b.Val[p])
		}
	} else {
		for j, v := range b.X[i*b.Dim : (i+1)*b.Dim] {
			put(int32(j), v)
		}
	}
	dropped, label := byte(0), float32(0)
	if b.Drop != nil && b.Drop[i] {
		dropped = 1
	}
	if b.Y != nil {
		label = b.Y[i]
	}
	return append(binary.LittleEndian.AppendUint32(dst, math.Float32bits(label)), dropped)
}
