package data

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFormsAgree: rows say the same of themselves in every form, also a row without any number: Values has the numbers of
// Dense, in columns that ascend; Run, Numbers and copies have them, too; and erased rows are 0.
func TestFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim, n := rapid.IntRange(1, 40).Draw(t, "dim"), rapid.IntRange(1, 5).Draw(t, "rows")
		wide := &Block{N: n, Dim: dim, Norm: make([]float32, n), X: make([]float32, n*dim)}
		entries := &Block{N: n, Dim: dim, Norm: wide.Norm, Start: []int32{0}}
		for i := range n {
			for j := range dim {
				if v := rapid.SampledFrom([]int{0, 0, 0, 1, -3}).Draw(t, "v"); v != 0 {
					wide.X[i*dim+j] = float32(v)
					entries.Col, entries.Val = append(entries.Col, int32(j)), append(entries.Val, float32(v))
				}
			}
			entries.Start = append(entries.Start, int32(len(entries.Col)))
		}
		short := (&Table{Dim: dim, Unit: 1, Blocks: []*Block{wide}}).Shorten().Blocks[0]
		px := &Pixels{N: dim, Stride: dim + 3, Center: 3, unit: 1}
		images := &Block{N: n, Dim: dim, Norm: wide.Norm, Pixels: px, Bytes: make([]byte, n*px.Stride), Factor: make([]float64, n)}
		for i := range n {
			images.Factor[i] = 1
			for j := range dim {
				images.Bytes[i*px.Stride+j] = byte(wide.X[i*dim+j] + 3)
			}
		}
		for name, b := range map[string]*Block{"dense": wide, "sparse": entries, "short": short, "bytes": images} {
			rows := []int32{}
			for i := range n {
				rows = append(rows, int32(n-1-i))
			}
			table := &Table{Dim: dim, Blocks: []*Block{b}}
			copier, copied, numbers := NewCopier(table), Block{Dim: dim}, Block{}
			copier.Copy(&copied, rows, n, 0)
			b.Numbers(&numbers, 0, n)
			dense := table.Dense().Blocks[0]
			if b.Coding() != copied.Coding() || b.Sparse() != (name == "sparse") || (b.Run(0, n) != nil) != (name == "dense") {
				t.Fatalf("%s: %+v, %t", name, b.Coding(), b.Sparse())
			}
			for i := range n {
				want, memory := wide.X[i*dim:][:dim], []float32(nil)
				for _, k := range []struct {
					*Block
					row int
				}{{b, i}, {&copied, n - 1 - i}, {&numbers, i}, {dense, i}, {copied.clone(new(Arena)), n - 1 - i}} {
					if got := k.Dense(k.row, &memory); !slices.Equal(got, want) {
						t.Fatalf("%s: row %d is %v, want %v", name, i, got, want)
					}
					if got := appendRow(nil, k.Block, k.row); !slices.Equal(got, appendRow(nil, wide, i)) {
						t.Fatalf("%s: row %d has another text", name, i)
					}
					got := make([]float32, dim)
					col, val := k.Values(k.row, &memory)
					if col == nil {
						copy(got, val)
					} else if !ascend(col, dim) {
						t.Fatalf("%s: row %d is in the columns %v", name, i, col)
					}
					for e, j := range col {
						got[j] = val[e]
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%s: row %d has the values %v, want %v", name, i, got, want)
					}
				}
			}
			gone := copied.clone(new(Arena))
			gone.erase(0)
			if got := gone.Dense(0, new([]float32)); !slices.Equal(got, make([]float32, dim)) {
				t.Fatalf("%s: an erased row is %v", name, got)
			} else if !gone.Drop[0] {
				t.Fatalf("%s: an erased row counts", name)
			}
		}
	})
}
