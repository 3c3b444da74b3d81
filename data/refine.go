package data

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sottodp/sotto/schema"
)

// A Refinement says how the rows of a table are encoded instead. All of it is public.
type Refinement struct {
	Columns []Bumped // the numeric columns, in the order of their features
	Lines   bool     // their bumps become 0
	// Of each pair, the next features from First on become the products of bumps of two of the columns, which all precede
	// them.
	Pairs [][2]int
	First int
}

// A Bumped is a numeric column: its line is feature At, followed by its bumps.
type Bumped struct{ At, Bumps int }

// Refine returns the table with its rows encoded so, in memory: as they would have been read, up to the rounding of
// their numbers. A row has at most four numbers more for each pair. The tables share labels and units. The pass ends
// with ctx.
func (t *Table) Refine(ctx context.Context, r Refinement, workers int) (*Table, error) {
	out := *t
	out.unmap, out.pages = nil, nil
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
			f := refiner{Refinement: r, rule: rule, line: make([]float64, len(r.Columns))}
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
	rule   rowRule
	memory Arena
	line   []float64 // of each column, from −1 to 1; NaN where the row has no value
	col    []int32   // the row, ascending
	val    []float64
	last   []int32 // features behind those of pairs
	after  []float64
	start  []int32 // of a sparse block
	cols   []int32
	vals   []float32
}

// block returns the refined rows of b.
func (f *refiner) block(b *Block) *Block {
	k := *b
	k.Norm = f.memory.Floats(b.N)
	if k.X = nil; b.Start == nil {
		k.X = f.memory.Floats(b.N * b.Dim)
	}
	f.start, f.cols, f.vals = append(f.start[:0], 0), f.cols[:0], f.vals[:0]
	for i := range b.N {
		f.row(b, i)
		k.Norm[i] = f.rule.apply(f.val)
		if b.Start == nil {
			x := k.X[i*b.Dim:][:b.Dim]
			for n, j := range f.col {
				x[j] = float32(f.val[n])
			}
			continue
		}
		f.cols, f.vals = append(f.cols, f.col...), appendFloat32(f.vals, f.val)
		f.start = append(f.start, int32(len(f.cols)))
	}
	if b.Start != nil {
		k.Start, k.Col = f.memory.Ints(len(f.start)), f.memory.Ints(len(f.cols))
		copy(k.Start, f.start)
		copy(k.Col, f.cols)
		k.Val = f.memory.copy(f.vals)
	}
	return &k
}

// row sets col and val to a refined row before the row rule.
func (f *refiner) row(b *Block, i int) {
	f.col, f.val, f.last, f.after = f.col[:0], f.val[:0], f.last[:0], f.after[:0]
	end := f.First + len(f.Pairs)*schema.PairFeatures
	take := func(j int32, v float32) {
		switch {
		case v == 0:
		case len(f.Pairs) == 0 || int(j) < f.First:
			f.col, f.val = append(f.col, j), append(f.val, float64(v))
		case int(j) >= end:
			f.last, f.after = append(f.last, j), append(f.after, float64(v))
		}
	}
	if b.Start == nil {
		for j, v := range b.X[i*b.Dim:][:b.Dim] {
			take(int32(j), v)
		}
	} else {
		for k := b.Start[i]; k < b.Start[i+1]; k++ {
			take(b.Col[k], b.Val[k])
		}
	}
	scale := f.columns()
	f.products(scale)
	f.col, f.val = append(f.col, f.last...), append(f.val, f.after...)
	for k := range f.val {
		f.val[k] /= scale
	}
}

// columns sets line from the row, and leaves bumps out where that is asked. It returns what the whole row was
// multiplied by: two bumps of an unscaled row sum to 1, and rounding toward zero makes their sum less, never more. It
// is 1 where no column has a value, as such a row loses and gets nothing.
func (f *refiner) columns() float64 {
	scale, kept, k := 0.0, 0, 0
	keep := func() {
		f.col[kept], f.val[kept] = f.col[k], f.val[k]
		kept++
	}
	for c, column := range f.Columns {
		for ; k < len(f.col) && int(f.col[k]) < column.At; k++ {
			keep()
		}
		line, bumps := 0.0, 0.0
		for ; k < len(f.col) && int(f.col[k]) <= column.At+column.Bumps; k++ {
			isLine := int(f.col[k]) == column.At
			if isLine {
				line = f.val[k]
			} else {
				bumps += f.val[k]
			}
			if isLine || !f.Lines {
				keep()
			}
		}
		if f.line[c] = math.NaN(); bumps > 0 {
			f.line[c] = line
		}
		scale = max(scale, bumps)
	}
	for ; k < len(f.col); k++ {
		keep()
	}
	f.col, f.val = f.col[:kept], f.val[:kept]
	if scale == 0 {
		return 1
	}
	for c := range f.line {
		f.line[c] = max(-1, min(1, f.line[c]/scale)) // NaN stays NaN
	}
	return scale
}

// products adds the features of pairs, multiplied by scale as the others are.
func (f *refiner) products(scale float64) {
	add := func(j int, v float64) {
		if v != 0 {
			f.col, f.val = append(f.col, int32(j)), append(f.val, v*scale)
		}
	}
	for n, pair := range f.Pairs {
		a, b := f.line[pair[0]], f.line[pair[1]]
		if a != a || b != b {
			continue
		}
		i, left, right := schema.Bumps(schema.PairBumps, a)
		j, low, high := schema.Bumps(schema.PairBumps, b)
		at := f.First + schema.PairBumps*(schema.PairBumps*n+i) + j
		add(at, left*low)
		add(at+1, left*high)
		add(at+schema.PairBumps, right*low)
		add(at+schema.PairBumps+1, right*high)
	}
}
