package data

import (
	"fmt"
	"maps"
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
