package data

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sottodp/sotto/schema"
)

// A Refinement says how the rows of a table are encoded instead. All of it is public. The last feature of a row is its
// intercept.
type Refinement struct {
	Columns []Curved // the numeric columns, in the order of their features
	// Of each pair, the next features from First on become the products of bumps of two of the columns, which all precede
	// them. Places is the number of pairs that rows have features for; those without a pair stay 0.
	Pairs  [][2]int
	First  int
	Places int
	Gone   [][2]int // features, each from one on up to another, that become 0 in every row
	Narrow bool     // they leave the table
}

// A Curved is a numeric column: its line is feature At, and the Features after it are its bumps or waves.
type Curved struct{ At, Features int }

// places are where the features of a row go, −1 where they become 0, and the number of features afterwards.
func (r Refinement) places(dim int) (to []int32, n int) {
	to = make([]int32, dim)
	for j := range to {
		gone := slices.ContainsFunc(r.Gone, func(g [2]int) bool { return g[0] <= j && j < g[1] })
		if to[j] = int32(n); gone {
			to[j] = -1
		}
		if !gone || !r.Narrow {
			n++
		}
	}
	return to, n
}

// Refine returns the table with its rows encoded so, in memory: as they would have been read, up to the rounding of
// their numbers. A row has at most four numbers more for each pair. The tables share labels and units. The pass ends
// with ctx.
func (t *Table) Refine(ctx context.Context, r Refinement, workers int) (*Table, error) {
	if t.Curves != nil {
		return t.curve(ctx, t.Curves.refined(r), t.wide(), workers)
	}
	out := *t
	to, dim := r.places(t.Dim)
	out.unmap, out.pages, out.Dim = nil, nil, dim
	out.Blocks = make([]*Block, len(t.Blocks))
	rule := t.rule
	if rule.bound == 0 { // a table that no schema made
		rule = newRowRule(t.NormBound, t.Unit, false, false)
	}
	t.BeginPass()
	var next atomic.Int64
	var all sync.WaitGroup
	for range max(1, workers) {
		all.Go(func() {
			f := refiner{Refinement: r, to: to, dim: dim, rule: rule, line: make([]float64, len(r.Columns))}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(t.Blocks) {
					return
				}
				t.Reach(t.Blocks[i])
				out.Blocks[i] = f.block(t.Blocks[i])
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &out, nil
}

// A refiner is one goroutine's memory.
type refiner struct {
	Refinement
	to     []int32 // Refinement.places
	dim    int
	rule   rowRule
	memory Arena
	line   []float64 // of each column, from −1 to 1; NaN where the row has no value
	col    []int32   // the row, ascending
	val    []float64
	last   []int32 // features behind those of pairs
	after  []float64
	to32   record // the same, rounded
	fill   filler
}

// block returns the refined rows of b.
func (f *refiner) block(b *Block) *Block {
	k := *b
	k.Norm, k.Dim = f.memory.Floats(b.N), f.dim
	k.X, k.Start, k.Col, k.Val = nil, nil, nil, nil
	if f.fill == nil {
		f.fill = b.form().filler(f.dim)
	}
	f.fill.begin(&f.memory)
	for i := range b.N {
		f.row(b, i)
		k.Norm[i] = f.rule.apply(f.val)
		f.to32.col, f.to32.val = f.col, appendFloat32(f.to32.val[:0], f.val)
		f.fill.add(i, &f.to32)
	}
	f.fill.end(&k, &f.memory)
	return &k
}

// row sets col and val to a refined row before the row rule.
func (f *refiner) row(b *Block, i int) {
	f.col, f.val, f.last, f.after = f.col[:0], f.val[:0], f.last[:0], f.after[:0]
	end, one := f.First+f.Places*schema.PairFeatures, 1.0 // what the whole row was multiplied by, as its intercept was
	take := func(j int32, v float32) {
		switch {
		case v == 0:
		case int(j) < f.First:
			f.col, f.val = append(f.col, j), append(f.val, float64(v))
		case int(j) >= end:
			f.last, f.after = append(f.last, f.to[j]), append(f.after, float64(v))
		}
		if int(j) == b.Dim-1 && v > 0 {
			one = float64(v)
		}
	}
	col, val := b.Values(i, nil)
	for k, v := range val {
		if col == nil {
			take(int32(k), v)
		} else {
			take(col[k], v)
		}
	}
	f.lines(one)
	f.move()
	f.products(one)
	f.col, f.val = append(f.col, f.last...), append(f.val, f.after...)
	for k := range f.val {
		f.val[k] /= one
	}
}

// lines sets line from the row, which was multiplied by one. A column without a value has no bumps or waves either, of
// which one at least is not 0 otherwise.
func (f *refiner) lines(one float64) {
	k := 0
	for c, column := range f.Columns {
		for ; k < len(f.col) && int(f.col[k]) < column.At; k++ {
		}
		line, curved := 0.0, false
		for ; k < len(f.col) && int(f.col[k]) <= column.At+column.Features; k++ {
			if int(f.col[k]) == column.At {
				line = f.val[k]
			} else {
				curved = true
			}
		}
		if f.line[c] = math.NaN(); curved {
			f.line[c] = max(-1, min(1, line/one))
		}
	}
}

// move leaves what the row keeps of its features, where they go.
func (f *refiner) move() {
	k := 0
	for n, j := range f.col {
		if f.to[j] >= 0 {
			f.col[k], f.val[k] = f.to[j], f.val[n]
			k++
		}
	}
	f.col, f.val = f.col[:k], f.val[:k]
}

// products adds the features of pairs, multiplied by scale as the others are.
func (f *refiner) products(scale float64) {
	for n, pair := range f.Pairs {
		at, of := pairOf(f.line[pair[0]], f.line[pair[1]])
		for k, v := range of {
			if v != 0 {
				f.col = append(f.col, f.to[f.First+schema.PairFeatures*n+at[k]])
				f.val = append(f.val, v*scale)
			}
		}
	}
}
