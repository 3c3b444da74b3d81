package data

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
)

// Subset is a table in memory of the records for which in returns true: their rows, in the order of the
// tables. A record is a row or, if rows belong to units, a unit with all its rows, so no unit is on both
// sides of a split. Records are numbered across the tables, one after the other. The tables have one
// schema, and no unit is in two of them.
func Subset(tables []*Table, in func(record int) bool) *Table {
	if c := tables[0].Curves; c != nil {
		flat := make([]*Table, len(tables))
		for i, t := range tables {
			flat[i] = t.flat()
		}
		all := context.Background() // it does not end early
		out, _ := Subset(flat, in).curve(all, c, tables[0].wide(), runtime.GOMAXPROCS(0))
		return out
	}
	out := *tables[0]
	out.Blocks, out.units, out.unmap, out.pages = nil, nil, nil, nil
	var all Table    // the tables one behind the other
	var rows []int32 // of all: those that out gets
	var of []int32   // the unit of each row of out
	units, record, row := int32(0), 0, int32(0)
	for _, t := range tables {
		number := make([]int32, t.Units()) // 1 + that of the unit in out; 0: no row of it yet; −1: not wanted
		for k := range number {
			if !in(record) {
				number[k] = -1
			}
			record++
		}
		first := row
		for _, b := range t.Blocks {
			for range b.N {
				k := row - first
				if t.units != nil {
					k = t.units.of[k]
				}
				row++
				if k < 0 || number[k] < 0 {
					continue
				}
				if number[k] == 0 {
					units++
					number[k] = units
				}
				rows, of = append(rows, row-1), append(of, number[k]-1)
			}
		}
		all.Blocks = append(all.Blocks, t.Blocks...)
	}
	all.Dim = out.Dim
	copier, memory := NewCopier(&all), Arena{}
	work := Block{Dim: out.Dim}
	for some := range slices.Chunk(rows, BlockRows) {
		copier.Copy(&work, some, len(some), 0)
		out.Blocks = append(out.Blocks, work.clone(&memory))
	}
	if tables[0].units != nil {
		out.SetUnits(of)
	}
	return &out
}

// RowHashes returns a number from 0 to 2⁶⁴−1 for each record of the tables, numbered as in Subset: a
// keyed hash of the encoded values and labels of its rows and of its number among equal records. Thus
// adding or removing a record changes no other record's hash (R10), and equal records, which are
// different people, have independent hashes.
func RowHashes(tables []*Table, key []byte) []uint64 {
	var coins []uint64
	toss := newTosser(key)
	for _, t := range tables {
		for _, content := range contents(t, appendRow) {
			coins = append(coins, toss.coin(content))
		}
	}
	return coins
}

// Fingerprints returns a keyed hash of the encoded values and the label of each row of t, without rows that were
// dropped. Equal rows have equal hashes, in whatever form of file they came.
func Fingerprints(t *Table, key []byte) []uint64 {
	hashes := make([]uint64, 0, t.Rows())
	var text []byte
	for _, b := range t.Blocks {
		for i := range b.N {
			if b.Drop != nil && b.Drop[i] {
				continue
			}
			text = appendRow(append(text[:0], key...), b, i)
			sum := sha256.Sum256(text)
			hashes = append(hashes, binary.LittleEndian.Uint64(sum[:]))
		}
	}
	return hashes
}

// Order identifies a table by what is summed of it: each row's place, encoded values and label, whether it was dropped,
// and whose it is. Tables of one order have the same sums, in whatever form of file they came. It leaves memory only
// under a key (R4).
func Order(t *Table) (order [sha256.Size]byte) {
	h := sha256.New()
	var text []byte
	row := 0
	for _, b := range t.Blocks {
		for i := range b.N {
			text = appendRow(append(text[:0], 0, 0, 0, 0), b, i)
			binary.LittleEndian.PutUint32(text, uint32(len(text)))
			if t.units != nil {
				if u := t.units.of[row]; u >= 0 && t.units.ids != nil {
					text = append(text, t.units.ids[u][:]...)
				} else {
					text = binary.LittleEndian.AppendUint32(text, uint32(u))
				}
			}
			h.Write(text)
			row++
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// A tosser gives each record its coin: a keyed hash of its content and of its number among equal records.
type tosser struct {
	key  []byte
	seen map[[16]byte]uint64
	text []byte
}

func newTosser(key []byte) *tosser { return &tosser{key: key, seen: map[[16]byte]uint64{}} }

func (t *tosser) coin(content [16]byte) uint64 {
	t.text = append(append(t.text[:0], t.key...), content[:]...)
	t.text = binary.LittleEndian.AppendUint64(t.text, t.seen[content])
	t.seen[content]++
	sum := sha256.Sum256(t.text)
	return binary.LittleEndian.Uint64(sum[:])
}

// HeldOut says of each record of t, numbered as in Subset, whether it is in the part that is held out: whether its coin
// is below that share of all. It looks at each record by itself, so that a record more or less changes one part by that
// record and the other not at all. Which of equal records have which coins does not matter. ADR 51.
func HeldOut(t *Table, key []byte, share float64) []bool {
	below, toss := uint64(share*0x1p64), newTosser(key)
	held := make([]bool, 0, t.Units())
	for _, content := range contents(t, appendWhole) {
		held = append(held, toss.coin(content) < below)
	}
	return held
}

// HeldOutOf is HeldOut for tables of a public number of records: n of them are held out, those with the smallest coins.
// Of two tables that differ in one record each part differs in one record at most. ADR 51.
func HeldOutOf(t *Table, key []byte, n int) []bool {
	type record struct {
		coin    uint64
		content [16]byte
		number  int
	}
	toss := newTosser(key)
	var records []record
	for i, content := range contents(t, appendWhole) {
		records = append(records, record{toss.coin(content), content, i})
	}
	slices.SortFunc(records, func(a, b record) int { // never by position but among equal records
		return cmp.Or(cmp.Compare(a.coin, b.coin), bytes.Compare(a.content[:], b.content[:]), a.number-b.number)
	})
	held := make([]bool, len(records))
	for _, r := range records[:min(n, len(records))] {
		held[r.number] = true
	}
	return held
}

// contents is a hash of each record, by what appendRow appends of its rows. It does not depend on their order.
func contents(t *Table, appendRow func(dst []byte, b *Block, i int) []byte) [][16]byte {
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

// appendWhole appends all that is known of row i of b, so that rows of equal text are alike in every sum.
func appendWhole(dst []byte, b *Block, i int) []byte {
	dst = appendRow(dst, b, i)
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(b.Norm[i]))
	return b.form().appendCode(dst, i)
}

// appendRow appends row i of b: its nonzero values with their positions, and its label.
func appendRow(dst []byte, b *Block, i int) []byte {
	dst = b.form().appendText(dst, i)
	dropped, label := byte(0), float32(0)
	if b.Drop != nil && b.Drop[i] {
		dropped = 1
	}
	if b.Y != nil {
		label = b.Y[i]
	}
	return append(binary.LittleEndian.AppendUint32(dst, math.Float32bits(label)), dropped)
}

// appendValue appends a nonzero value with its position.
func appendValue(dst []byte, j int32, v float32) []byte {
	if v == 0 {
		return dst
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(j))
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
}
