package data

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// units says which rows of a table belong to one unit. Units are numbered in the order of their
// first rows.
type units struct {
	of    []int32    // the unit of each row; −1: of none, and the row is dropped
	start []int32    // the rows of unit u that count are rows[start[u]:start[u+1]], ascending
	rows  []int32    //
	share []float64  // of each row; 0: the row does not count
	ids   [][16]byte // of each unit, hashed under a key of this process, or Options.IDKey; nil: not known
}

// Units is how many units the rows belong to; without a unit column each row is one.
// Under add-or-remove it is as private as Rows.
func (t *Table) Units() int {
	if t.units == nil {
		return t.Rows()
	}
	return len(t.units.start) - 1
}

// UnitRows appends to dst the rows of unit u that count, ascending: at most as many as the schema allows,
// and none if all of them were dropped and the unit keeps its position. Without a unit column that is row
// u, dropped or not.
func (t *Table) UnitRows(dst []int32, u int) []int32 {
	if t.units == nil {
		return append(dst, int32(u))
	}
	return append(dst, t.units.rows[t.units.start[u]:t.units.start[u+1]]...)
}

// UnitIDs are the hashes of the units' ids, under Options.IDKey or a key of this process; nil if they are not known, as
// of a packed table. The slice belongs to the table.
func (t *Table) UnitIDs() [][16]byte {
	if t.units == nil {
		return nil
	}
	return t.units.ids
}

// Away stands for a table of the schema whose rows are elsewhere, and whose units have these ids, hashed as in UnitIDs.
func Away(s *schema.Schema, ids [][16]byte) *Table {
	t := Empty(s)
	if ids != nil {
		t.units = &units{start: make([]int32, 1), ids: ids}
	}
	return t
}

// MostUnitRows is the largest number of rows of a unit that count.
func (t *Table) MostUnitRows() (most int) {
	if t.units == nil {
		return min(1, t.Rows())
	}
	for u, end := range t.units.start[1:] {
		most = max(most, int(end-t.units.start[u]))
	}
	return most
}

// Shares is the weight of each row in its unit: 1/n for one of n rows that count, rounded down to a
// float32, so that n of them add up to at most 1 and to more than 1−2⁻²²; 0 for a row that does not
// count. It is nil if each row is a unit. The slice belongs to the table.
func (t *Table) Shares() []float64 {
	if t.units == nil {
		return nil
	}
	return t.units.share
}

// SetUnits assigns the rows of a table in memory to units: unit[r] is the unit of row r, numbered in the
// order of their first rows, or −1 for a row that is dropped and belongs to no unit. The slice belongs to
// t afterward. Rows in Drop do not count. SetUnits panics at other numbers, and at a unit of more than
// 65536 rows that count.
func (t *Table) SetUnits(unit []int32) {
	u := groupRows(t, unit)
	if u == nil {
		panic("data: units that do not fit the rows")
	}
	t.units = u
}

// Append returns t with the rows of b after its own. If t has units, these rows are one more unit. The
// result shares the blocks of t.
func (t *Table) Append(b *Block) *Table {
	t = t.plain()
	out := *t
	out.Blocks = append(slices.Clip(t.Blocks), b)
	if t.units != nil {
		of := slices.Clone(t.units.of)
		for range b.N {
			of = append(of, int32(t.Units()))
		}
		out.SetUnits(of)
	}
	return &out
}

// groupRows lists the rows of each unit; nil if the numbers are not in order, a unit has too many rows,
// or a row without a unit counts.
func groupRows(t *Table, of []int32) *units {
	u := &units{of: of, share: make([]float64, len(of))}
	var count []int32 // rows of each unit that count
	row := 0
	for _, b := range t.Blocks {
		if len(of)-row < b.N {
			return nil
		}
		for i := range b.N {
			k, dropped := int(of[row]), b.Drop != nil && b.Drop[i]
			switch row++; {
			case k < -1 || k > len(count) || k == -1 && !dropped:
				return nil
			case k == len(count):
				count = append(count, 0)
			}
			if dropped {
				continue
			}
			if count[k]++; count[k] > schema.MaxUnitRows {
				return nil
			}
			u.share[row-1] = 1 // for now: it counts
		}
	}
	if row != len(of) {
		return nil
	}
	u.start = make([]int32, 1, len(count)+1)
	for _, n := range count {
		u.start = append(u.start, u.start[len(u.start)-1]+n)
	}
	u.rows = make([]int32, u.start[len(count)])
	next := slices.Clone(u.start)
	for row, k := range of {
		if u.share[row] == 0 {
			continue
		}
		u.rows[next[k]] = int32(row)
		next[k]++
		u.share[row] = shareOf(int(count[k]))
	}
	return u
}

// shareOf is the largest float32 that is not above 1/n, for n up to 2¹⁶.
func shareOf(n int) float64 {
	s := float32(1 / float64(n))
	if float64(s)*float64(n) > 1 { // 24 bits by 17: exact
		s = math.Nextafter32(s, 0)
	}
	return float64(s)
}

// A grouper assigns rows to units while they are read.
//
// Of a unit with more rows than the schema allows, the rows whose encoded content has the smallest hashes
// count. This choice depends only on the unit's own rows: not on the rows of others, nor on the order of
// the table, which a database may change when a row is added elsewhere. Of rows with equal content either
// may go. Nothing counts the rows left out: their number is private.
type grouper struct {
	most   int
	number map[[16]byte]int32 // of the units, by hashed id
	ids    [][16]byte
	of     []int32  // the unit of each row; −1: of none
	print  []uint64 // hash of each row's content
	gone   []bool   // rows that were dropped as bad ones
	text   []byte
}

func newGrouper(most int) *grouper {
	return &grouper{most: most, number: map[[16]byte]int32{}, ids: [][16]byte{}} // known, also where there are none
}

// add records the unit and the content of a row.
func (g *grouper) add(r *record) {
	u := int32(-1)
	if r.unit.known {
		var ok bool
		if u, ok = g.number[r.unit.hash]; !ok {
			u = int32(len(g.ids))
			g.number[r.unit.hash] = u
			g.ids = append(g.ids, r.unit.hash)
		}
	}
	g.of = append(g.of, u)
	g.gone = append(g.gone, r.dropped)
	g.print = append(g.print, 0)
	if r.dropped {
		return
	}
	g.text = g.text[:0]
	for i, j := range r.col {
		g.text = appendValue(g.text, j, r.val[i])
	}
	sum := sha256.Sum256(binary.LittleEndian.AppendUint32(g.text, math.Float32bits(r.y)))
	g.print[len(g.print)-1] = binary.LittleEndian.Uint64(sum[:])
}

// beyond returns the rows above the limit of their unit, ascending.
func (g *grouper) beyond() []int32 {
	if len(g.print) == 0 { // of a table that is grouped already
		return nil
	}
	count := make([]int, len(g.ids))
	over := false
	for row, u := range g.of {
		if !g.gone[row] {
			count[u]++
			over = over || count[u] > g.most
		}
	}
	if !over {
		return nil
	}
	rows := map[int32][]int32{}
	for row, u := range g.of {
		if !g.gone[row] && count[u] > g.most {
			rows[u] = append(rows[u], int32(row))
		}
	}
	var out []int32
	for _, r := range rows {
		slices.SortFunc(r, func(a, b int32) int { return cmp.Or(cmp.Compare(g.print[a], g.print[b]), cmp.Compare(a, b)) })
		out = append(out, r[g.most:]...)
	}
	slices.Sort(out)
	return out
}

// group drops the rows above the limit of their unit from the table and assigns the others.
func (g *grouper) group(t *Table) {
	for _, row := range g.beyond() {
		t.Blocks[row/BlockRows].erase(int(row % BlockRows))
	}
	t.SetUnits(g.of)
	t.units.ids = g.ids
}

// erase drops row i, which keeps its position.
func (b *Block) erase(i int) {
	b.form().erase(i)
	if b.Y != nil {
		b.Y[i] = 0
	}
	b.Norm[i] = 0
	if b.Drop == nil {
		b.Drop = make([]bool, b.N)
	}
	b.Drop[i] = true
}

// idKey keys the hashes of ids. It never leaves this process.
var idKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	rand.Read(key)
	return key
})

// hashID hashes an id: a table keeps no ids.
func hashID(key []byte, id string) [16]byte {
	if key == nil {
		key = idKey()
	}
	var short [96]byte // most ids need no other memory
	sum := sha256.Sum256(append(append(short[:0], key...), id...))
	return [16]byte(sum[:16])
}

// apart checks that no unit of t is in the tables train, whose model t scores (R12). A unit in both is a
// [*config.Error], which names no row, and so is a table without ids, such as a packed one. If the scores
// left such rows out silently, they would reveal who is in the training data.
func (t *Table) apart(s *schema.Schema, path string, train []*Table) error {
	if len(train) == 0 || t.units == nil {
		return nil
	}
	bad := &config.Error{File: Public(path), Field: "unit"}
	known := map[[16]byte]bool{}
	for _, table := range append(slices.Clip(train), t) {
		if table.units == nil || table.units.ids == nil {
			bad.Found, bad.Allowed = "a table whose ids are not here, as those of a packed one",
				"tables of another form to train and to score on: only ids show whether a "+s.Unit+" is in both"
			return bad
		}
	}
	for _, table := range train {
		for _, id := range table.units.ids {
			known[id] = true
		}
	}
	if slices.ContainsFunc(t.units.ids, func(id [16]byte) bool { return known[id] }) {
		bad.Found, bad.Allowed = "a "+s.Unit+" who has rows to train on too",
			"others: all rows of a "+s.Unit+" are on one side"
		return bad
	}
	return nil
}
