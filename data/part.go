package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// Subset is a table in memory of the records that in says yes to: their rows, in the
// order of the tables. A record is a row or, where rows belong to units, a unit with all
// its rows, so no unit is on two sides of a division. Records are numbered across the
// tables, one after the other. These must be of one schema, and a unit in one of them
// alone.
func Subset(tables []*Table, in func(record int) bool) *Table {
	out := *tables[0]
	out.Blocks, out.units, out.unmap, out.mapped = nil, nil, nil, nil
	p := packer{to: &out}
	var of []int32 // the unit of each row of out
	units := int32(0)
	from := 0 // the number of the table's first record
	for _, t := range tables {
		wanted := make([]bool, t.Units())
		for k := range wanted {
			wanted[k] = in(from + k)
		}
		from += len(wanted)
		number := make([]int32, len(wanted)) // 1 + that of the unit in out; 0: no row of it yet
		row := 0
		for _, b := range t.Blocks {
			for i := range b.N {
				k := row
				if t.units != nil {
					k = int(t.units.of[row])
				}
				row++
				if k < 0 || !wanted[k] {
					continue
				}
				p.add(b, i, out.Dim)
				if number[k] == 0 {
					units++
					number[k] = units
				}
				of = append(of, number[k]-1)
			}
		}
	}
	p.flush()
	if tables[0].units != nil {
		out.SetUnits(of)
	}
	return &out
}

// A packer fills blocks with rows of others.
type packer struct {
	to    *Table
	arena Arena
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
		p.b = &Block{Dim: dim, Norm: p.arena.Floats(BlockRows)[:0]}
		if from.Y != nil {
			p.b.Y = p.arena.Floats(BlockRows)[:0]
		}
		if from.Start == nil {
			p.b.X = p.arena.Floats(BlockRows * dim)[:0]
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
		b.Col = p.arena.Ints(len(p.col))
		copy(b.Col, p.col)
		b.Val = p.arena.Floats(len(p.val))
		copy(b.Val, p.val)
		p.start, p.col, p.val = p.start[:0], p.col[:0], p.val[:0]
	}
	if b.Drop != nil {
		b.Drop = b.Drop[:b.N]
	}
	p.to.Blocks, p.b = append(p.to.Blocks, b), nil
}

// RowHashes is a number from 0 to 2⁶⁴−1 for each record of the tables, numbered as in Subset:
// a keyed hash of the encoded values and labels of its rows and, where records are equal,
// of its number among them. So a record more, or one less, moves no other's coin (R10),
// and equal records, who are different people, have independent ones.
func RowHashes(tables []*Table, key []byte) []uint64 {
	var coins []uint64
	seen := map[[16]byte]uint64{}
	var text []byte
	for _, t := range tables {
		for _, content := range contents(t) {
			text = append(append(text[:0], key...), content[:]...)
			text = binary.LittleEndian.AppendUint64(text, seen[content])
			seen[content]++
			sum := sha256.Sum256(text)
			coins = append(coins, binary.LittleEndian.Uint64(sum[:]))
		}
	}
	return coins
}

// contents is a hash of each record, which does not depend on the order of its rows.
func contents(t *Table) [][16]byte {
	rows := make([][16]byte, 0, t.Rows())
	var text []byte
	for _, b := range t.Blocks {
		for i := range b.N {
			text = appendRow(text[:0], b, i)
			sum := sha256.Sum256(text)
			rows = append(rows, [16]byte(sum[:16]))
		}
	}
	if t.units == nil {
		return rows
	}
	all := make([][16]byte, t.Units())
	var of []int32
	for u := range all {
		of = t.UnitRows(of[:0], u)
		slices.SortFunc(of, func(a, b int32) int { return bytes.Compare(rows[a][:], rows[b][:]) })
		text = text[:0]
		for _, row := range of {
			text = append(text, rows[row][:]...)
		}
		sum := sha256.Sum256(text)
		all[u] = [16]byte(sum[:16])
	}
	return all
}

// appendRow writes row i of b: its values that are not 0 with their places, and its label.
func appendRow(dst []byte, b *Block, i int) []byte {
	if b.Start != nil {
		for p := b.Start[i]; p < b.Start[i+1]; p++ {
			dst = appendValue(dst, b.Col[p], b.Val[p])
		}
	} else {
		for j, v := range b.X[i*b.Dim : (i+1)*b.Dim] {
			dst = appendValue(dst, int32(j), v)
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

// appendValue writes a value that is not 0 with its place.
func appendValue(dst []byte, j int32, v float32) []byte {
	if v == 0 {
		return dst
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(j))
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
}
