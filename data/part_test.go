package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// a table of made rows, dense or sparse, in blocks of the usual size; row r holds the
// numbers that content[r] stands for.
func rowsOf(content []int, sparse bool) *Table {
	t := &Table{Dim: 3, Classes: 2, NormBound: 10, Unit: 0.5, Labeled: true}
	for from := 0; from < len(content); from += BlockRows {
		part := content[from:min(len(content), from+BlockRows)]
		b := &Block{N: len(part), Dim: 3, Drop: make([]bool, len(part))}
		if sparse {
			b.Start = []int32{0}
		}
		for i, c := range part {
			for j := range 3 {
				v := float32(c>>(2*j)&3) / 2
				switch {
				case !sparse:
					b.X = append(b.X, v)
				case v != 0:
					b.Col, b.Val = append(b.Col, int32(j)), append(b.Val, v)
				}
			}
			if sparse {
				b.Start = append(b.Start, int32(len(b.Col)))
			}
			b.Y, b.Norm = append(b.Y, float32(c>>6&1)), append(b.Norm, float32(c))
			b.Drop[i] = c>>7&1 == 1
		}
		t.Blocks = append(t.Blocks, b)
	}
	return t
}

// words is what a row of a table holds, in words.
func (t *Table) words() []string {
	var out []string
	for _, b := range t.Dense().Blocks {
		for i := range b.N {
			out = append(out, fmt.Sprint(b.X[3*i:3*i+3], b.Y[i], b.Norm[i], b.Drop != nil && b.Drop[i]))
		}
	}
	return out
}

// Subset keeps the rows named, whole and in order, in full blocks.
func TestSubset(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		var content, want []int
		for r := range 2500 {
			content = append(content, r*7%256)
		}
		in := func(row int) bool { return row%5 != 0 }
		for r, c := range content {
			if in(r) {
				want = append(want, c)
			}
		}
		got := Subset([]*Table{rowsOf(content[:1500], sparse), rowsOf(content[1500:], sparse)}, in)
		if !slices.Equal(got.words(), rowsOf(want, sparse).words()) {
			t.Errorf("sparse %v: other rows", sparse)
		}
		for i, b := range got.Blocks {
			if b.N != BlockRows && i != len(got.Blocks)-1 || (b.Start != nil) != sparse {
				t.Errorf("sparse %v: block %d has %d rows", sparse, i, b.N)
			}
		}
	}
}

// coinsOf is the coins of each content, as a multiset.
func coinsOf(content []int, sparse bool) map[string]int {
	out := map[string]int{}
	for r, c := range RowHashes([]*Table{rowsOf(content, sparse)}, []byte("key")) {
		out[fmt.Sprint(content[r], c)]++
	}
	return out
}

// A coin belongs to the row, not to its place: rows in another order have the same
// coins, a row more brings one coin and moves none, stored dense or sparse (R10).
func TestRecordHashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.IntRange(0, 255), 1, 40).Draw(t, "rows") // 40 of 256: often equal ones
		more := rapid.IntRange(0, 255).Draw(t, "more")
		at := rapid.IntRange(0, len(content)).Draw(t, "at")
		before := coinsOf(content, false)
		if !maps.Equal(before, coinsOf(content, true)) {
			t.Fatal("sparse rows have other coins")
		}
		after := coinsOf(slices.Insert(slices.Clone(content), at, more), false)
		added := 0
		for k, n := range after {
			if n < before[k] {
				t.Fatal("a coin has moved")
			}
			added += n - before[k]
		}
		for k := range before {
			if after[k] < before[k] {
				t.Fatal("a coin has gone")
			}
		}
		if added != 1 {
			t.Fatalf("%d coins more", added)
		}
		for k, n := range after {
			if n > 1 {
				t.Fatalf("equal rows share the coin %s", k)
			}
		}
	})
	a, b := RowHashes([]*Table{rowsOf([]int{1, 2}, false)}, []byte("a")), RowHashes([]*Table{rowsOf([]int{1, 2}, false)}, []byte("b"))
	if a[0] == b[0] || a[0] == a[1] {
		t.Error("coins do not depend on the key or on the row")
	}
}

// partsOf are the records in the part to train on and in the one held out, as multisets.
func partsOf(content []int, held []bool) (parts [2]map[int]int) {
	parts = [2]map[int]int{{}, {}}
	for i, c := range content {
		if held[i] {
			parts[1][c]++
		} else {
			parts[0][c]++
		}
	}
	return parts
}

// apartBy is how many records two multisets differ in: those to take away from the one, or to add, whichever is more.
func apartBy(a, b map[int]int) int {
	gone, come := 0, 0
	for c := range 256 {
		gone += max(0, a[c]-b[c])
		come += max(0, b[c]-a[c])
	}
	return max(gone, come)
}

// A record more changes the part that it enters, by itself, and the other part not at all, wherever it stands.
func TestHeldOutOfOneRecordMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.IntRange(0, 255), 0, 60).Draw(t, "rows")
		more, at := rapid.IntRange(0, 255).Draw(t, "more"), rapid.IntRange(0, len(content)).Draw(t, "at")
		key, share := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"), rapid.Float64Range(0.01, 0.5).Draw(t, "share")
		parts := func(content []int) [2]map[int]int {
			return partsOf(content, HeldOut(rowsOf(content, rapid.Bool().Draw(t, "sparse")), key, share))
		}
		before, after := parts(content), parts(slices.Insert(slices.Clone(content), at, more))
		train, held := apartBy(before[0], after[0]), apartBy(before[1], after[1])
		if train+held != 1 {
			t.Fatalf("one record more: the parts differ in %d and %d records", train, held)
		}
	})
}

// Under replace-one each part has a public number of records, and differs in one at most where a record is replaced.
func TestHeldOutOfOneRecordReplaced(t *testing.T) {
	both := 0
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.IntRange(0, 255), 2, 60).Draw(t, "rows")
		key, n := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"), rapid.IntRange(1, len(content)-1).Draw(t, "held out")
		other := slices.Clone(content)
		other[rapid.IntRange(0, len(content)-1).Draw(t, "at")] = rapid.IntRange(0, 255).Draw(t, "other")
		order := rapid.Permutation(other).Draw(t, "order") // neighbors need not agree about it
		before := partsOf(content, HeldOutOf(rowsOf(content, false), key, n))
		after := partsOf(order, HeldOutOf(rowsOf(order, false), key, n))
		for _, parts := range [][2]map[int]int{before, after} {
			count := 0
			for _, times := range parts[1] {
				count += times
			}
			if count != n {
				t.Fatalf("%d records are held out, not %d", count, n)
			}
		}
		train, held := apartBy(before[0], after[0]), apartBy(before[1], after[1])
		if train > 1 || held > 1 {
			t.Fatalf("one record replaced: the parts differ in %d and %d records", train, held)
		}
		if train+held == 2 {
			both++
		}
	})
	if both == 0 {
		t.Error("no replacement ever moved both parts: their costs would not have to be added")
	}
}

// A unit is held out with all its rows, whatever their order, by what it is alone.
func TestHeldOutUnits(t *testing.T) {
	table := func(units ...[]int) *Table {
		var content []int
		var of []int32
		for u, rows := range units {
			for _, c := range rows {
				content, of = append(content, c&127), append(of, int32(u)) // none is dropped
			}
		}
		out := rowsOf(content, false)
		out.SetUnits(of)
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 127), 1, 4), 1, 20).Draw(t, "units")
		key := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")
		u := rapid.IntRange(0, len(units)-1).Draw(t, "unit")
		turned := slices.Clone(units)
		turned[u] = slices.Clone(units[u])
		slices.Reverse(turned[u])
		whole, reversed := HeldOut(table(units...), key, 0.4), HeldOut(table(turned...), key, 0.4)
		if !slices.Equal(whole, reversed) || len(whole) != len(units) {
			t.Fatal("the order of a unit's rows moves it, or another unit")
		}
		last := len(units) - 1
		if !slices.Equal(whole[:last], HeldOut(table(units[:last]...), key, 0.4)) {
			t.Fatal("a unit less moves others")
		}
	})
}

// Coins are evenly spread, independent of another key's, and of equal records about the share are held out.
func TestHeldOutShare(t *testing.T) {
	content := make([]int, 20000) // one row in four is as many others are
	for i := range content {
		content[i] = i * 7 % 256 * min(1, i%4)
	}
	rows := rowsOf(content, false)
	a, b := HeldOut(rows, []byte("a"), 0.2), HeldOut(rows, []byte("b"), 0.2)
	count, both, zeros := 0, 0, 0
	for i := range a {
		if a[i] {
			count++
			if content[i] == 0 {
				zeros++
			}
		}
		if a[i] && b[i] {
			both++
		}
	}
	// Five standard deviations: 283 of 4000, 140 of 800, 142 of some 1050. The keys are fixed, so the test never fails by chance.
	if math.Abs(float64(count)-4000) > 283 || math.Abs(float64(both)-800) > 140 || math.Abs(float64(zeros)-0.2*5060) > 142 {
		t.Errorf("held out %d of 20000, %d under both keys, %d of equal rows", count, both, zeros)
	}
}

// Images of equal numbers and other bytes are different records: sums of bytes may tell them apart.
func TestHeldOutBytes(t *testing.T) {
	px := &Pixels{N: 1, Stride: 32}
	block := func(pixel byte, factor float64) *Block {
		b := &Block{N: 1, Dim: 1, Bytes: make([]byte, px.Stride), Factor: []float64{factor}, Pixels: px, Y: []float32{1}, Norm: []float32{1}}
		b.Bytes[0] = pixel
		return b
	}
	text := func(whole bool, b *Block) string {
		if whole {
			return string(appendWhole(nil, b, 0))
		}
		return string(appendRow(nil, b, 0))
	}
	one, other := block(1, 2), block(2, 1)
	if text(false, one) != text(false, other) || text(true, one) == text(true, other) || text(true, one) != text(true, block(1, 2)) {
		t.Error("bytes of equal numbers are not told apart, or those of one image are")
	}
}

// TestHeldOutTellsShiftsApart: two rows of 16-bit numbers with the same values, which differ as the kernels read them, are two
// contents, so that each has a coin of its own.
func TestHeldOutTellsShiftsApart(t *testing.T) {
	block := func(shift uint8, numbers ...int16) *Block {
		short := &Short{Stride: shortStride(2), Unit: 0.25}
		b := &Block{N: 1, Dim: 2, Short: short, Shorts: make([]int16, short.Stride), Shift: []uint8{shift}, Norm: []float32{9}}
		copy(b.Shorts, numbers)
		return b
	}
	a, b := block(1, 2, 4), block(0, 4, 8)
	if !slices.Equal(appendRow(nil, a, 0), appendRow(nil, b, 0)) {
		t.Fatal("the rows have other values")
	}
	if slices.Equal(appendWhole(nil, a, 0), appendWhole(nil, b, 0)) {
		t.Error("rows of other numbers have the same content")
	}
}
