package data

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// A batch holds encoded rows, in the order of the table. It keeps its memory for the next ones.
type batch struct {
	full    bool  // a row of which most values are not zero has all of them in val, and none in col
	end     []int // of each row: the end of its values in val
	columns []int // of each row: the end of their columns in col
	col     []int32
	val     []float32
	y, norm []float32
	images  []byte // of rows of bytes, with their factors: none of a bad row
	factor  []float64
	units   []unitID      // beside y, if the rows have units
	bad     []badRow      // ascending
	first   *config.Error // of the first bad row
	badIn   []bool        // of each of the encoder's columns: a cell of it makes a row bad
	clamped []int         // values that were clamped, by column; at 0 those of a table without columns
	raw     []uint64      // hashes of the raw rows
	moved   []uint64      // those by position
	err     error         // what ended the reading after these rows, io.EOF at the end; nil: there may be more
}

// A badRow is a row that was not parsed.
type badRow struct {
	row    int
	column string
}

// fill replaces the rows of b by those of a piece.
func (b *batch) fill(piece RowReader, row *Row) {
	b.end, b.columns, b.col, b.val = b.end[:0], b.columns[:0], b.col[:0], b.val[:0]
	b.y, b.norm, b.units = b.y[:0], b.norm[:0], b.units[:0]
	b.images, b.factor = b.images[:0], b.factor[:0]
	b.bad, b.first, b.err = b.bad[:0], nil, nil
	b.clamped = append(b.clamped[:0], make([]int, len(row.cols)+1)...)
	b.badIn = append(b.badIn[:0], make([]bool, len(row.cols))...)
	if row.raw != nil {
		row.raw.rows, row.raw.positions = b.raw[:0], b.moved[:0]
		defer func() { b.raw, b.moved = row.raw.rows, row.raw.positions }()
	}
	for {
		row.begin() // not every record gets as far as the encoder
		f, err := piece.Next(row)
		if err == io.EOF {
			return
		}
		if err != nil {
			b.err = err
			return
		}
		if f.Found != "" {
			if row.tally != nil && !row.tallied {
				row.tally.fault(f)
			}
			if b.first == nil {
				b.first = piece.Place(f)
				b.first.Field, b.first.Found, b.first.Allowed = columnField(f.Column), f.Found, f.Allowed
			}
			b.bad = append(b.bad, badRow{len(b.end), f.Column})
			for _, i := range row.faults {
				b.badIn[i] = true
			}
			row.y, row.norm = 0, 0
		} else {
			row.finish()
			b.images = append(b.images, row.image8...)
			b.factor = append(b.factor, row.factor)
			b.add(row)
			for _, i := range row.clamped {
				b.clamped[i+1]++
			}
		}
		b.end, b.columns = append(b.end, len(b.val)), append(b.columns, len(b.col))
		b.y, b.norm = append(b.y, row.y), append(b.norm, row.norm)
		if row.unit >= 0 {
			b.units = append(b.units, row.whose)
		}
	}
}

// add appends the values of a row.
func (b *batch) add(row *Row) {
	switch n := len(b.val); {
	case !b.full || 2*len(row.val) <= row.dim:
		b.col, b.val = append(b.col, row.col...), appendFloat32(b.val, row.val)
	case len(row.val) == row.dim && len(row.absent) == 0: // absent lines come last, out of order
		b.val = appendFloat32(b.val, row.val)
	default:
		b.val = slices.Grow(b.val, row.dim)[:n+row.dim]
		val := b.val[n:]
		clear(val)
		for i, j := range row.col {
			val[j] = float32(row.val[i])
		}
	}
}

// appendFloat32 appends x, rounded.
func appendFloat32(dst []float32, x []float64) []float32 {
	n := len(dst)
	dst = slices.Grow(dst, len(x))[:n+len(x)]
	for i, v := range x {
		dst[n+i] = float32(v)
	}
	return dst
}

// merge adds the rows of b to the table.
func (r *reader) merge(ctx context.Context, b *batch) error {
	bad, from, at := b.bad, 0, 0 // in val and col
	var rec record
	images, factor, size := b.images, b.factor, 0
	if len(factor) > 0 {
		size = len(images) / len(factor) // 0 where rows are no bytes
	}
	for i, end := range b.end {
		rec = record{col: b.col[at:b.columns[i]], val: b.val[from:end], y: b.y[i], norm: b.norm[i]}
		from, at = end, b.columns[i]
		if len(b.units) > 0 {
			rec.unit = b.units[i]
		}
		column := ""
		if len(bad) > 0 && bad[0].row == i {
			rec.dropped, column, bad = true, bad[0].column, bad[1:]
		} else {
			rec.image, images = images[:size], images[size:]
			rec.factor, factor = factor[0], factor[1:]
		}
		if err := r.add(&rec, column, b.first); err != nil {
			return err
		}
		if r.stats.Rows%BlockRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for i, n := range b.clamped {
		if n > 0 {
			r.stats.Clamped[r.clampName(i-1)] += n
		}
	}
	if len(b.bad) > 0 {
		if r.badIn == nil {
			r.badIn = make([]bool, len(b.badIn))
		}
		for i, bad := range b.badIn {
			r.badIn[i] = r.badIn[i] || bad
		}
	}
	r.raw.Add(b.raw...)
	r.end = b.err
	for _, h := range b.moved {
		r.positions.Add(h)
	}
	return nil
}

// add adds a row to the table, or counts it; column and fault are of a bad one.
func (r *reader) add(rec *record, column string, fault *config.Error) error {
	r.stats.Rows++
	if err := r.limit.over(r.stats.Rows, r.records()); err != nil {
		return err
	}
	switch {
	case !rec.dropped:
	case r.Schema.OnBadRow == schema.BadRowDrop:
		r.stats.Dropped++
		if r.stats.DroppedBy == nil {
			r.stats.DroppedBy = map[string]int{}
		}
		r.stats.DroppedBy[column]++
		if !r.Options.KeepBad {
			return nil
		}
	default:
		r.bad++
		if r.first == nil {
			r.first = fault
		}
	}
	if r.first != nil {
		return nil
	}
	return r.build.add(rec)
}

// A task is a piece of the table, and then its rows.
type task struct {
	batch
	piece RowReader
	cut   error         // what Piece returned instead of a piece
	ready chan struct{} // gets a value when the batch is full
}

// next takes the next piece of the table, which may have no row. It returns false at the end.
func (t *task) next(ctx context.Context, in Pieces) bool {
	if t.cut = ctx.Err(); t.cut == nil {
		t.piece, t.cut = in.Piece(t.piece)
	}
	return t.cut == nil
}

// encode fills the batch from the piece, if there is one.
func (t *task) encode(row *Row) {
	if t.cut != nil {
		t.batch = batch{err: t.cut}
		return
	}
	t.fill(t.piece, row)
}

// read reads all rows. Their batches are merged in the order of the table, so neither the table nor an
// error depends on the number of workers.
func (r *reader) read(ctx context.Context, in Pieces) error {
	full := r.build.dense && r.build.units == nil
	workers := r.Workers()
	if _, ok := in.(*serial); ok || workers == 1 {
		for t := (&task{batch: batch{full: full}}); r.end == nil; {
			t.next(ctx, in)
			t.encode(r.row)
			if err := r.merge(ctx, &t.batch); err != nil {
				return err
			}
		}
		return nil
	}

	// One goroutine takes the pieces, workers encode their rows, this one merges them. The number of tasks
	// bounds the memory.
	free := make(chan *task, workers+2)
	work, order := make(chan *task, cap(free)), make(chan *task, cap(free))
	for range cap(free) {
		free <- &task{batch: batch{full: full}, ready: make(chan struct{}, 1)}
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(free) // ends the goroutine below
	all.Go(func() {
		defer close(work)
		for t := range free {
			more := t.next(ctx, in)
			order <- t
			work <- t
			if !more {
				return
			}
		}
	})
	for range workers {
		row := r.row.clone()
		all.Go(func() {
			for t := range work {
				t.encode(row)
				t.ready <- struct{}{}
			}
		})
	}
	for r.end == nil {
		t := <-order
		<-t.ready
		if err := r.merge(ctx, &t.batch); err != nil {
			return err
		}
		free <- t
	}
	return nil
}
