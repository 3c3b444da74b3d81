package data

import (
	"context"
	"errors"

	"github.com/sottodp/sotto/schema"
)

// Stream reads the table at path as [Read] does, but hands over its blocks in order instead of keeping them: begin is
// called before the first block and returns the function that gets each one, which is valid during that call. Stream
// needs memory for some blocks, whatever the number of rows, and 8 bytes more for each row if the gate has a key. Rows
// are not grouped by units, so opt.ByRow must be set if the schema has units.
//
// The gate decides on the content, which is known after the last block. So the caller must give away nothing that
// depends on a block before Stream returns without an error. After an error of the gate, Stream may be called again.
// Only package access and tests call Stream (R24).
func Stream(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options,
	begin func() func(*Block) error) (*LoadStats, error) {
	if gate == nil {
		return nil, errNoGate
	}
	path, err := readable(s, path)
	if err != nil {
		return nil, err
	}
	s, curves := snapped(s, path, &opt)
	widen := func(b *Block, _ *Arena) *Block { return b }
	if curves != nil {
		w := widener{Curves: curves}
		widen = func(b *Block, memory *Arena) *Block { return w.block(b, true, memory) }
	}
	switch {
	case s.UnitRows > 0 && !opt.ByRow:
		return nil, errors.New("data: a table is streamed row by row, and the schema groups its rows by units")
	case !IsPacked(path):
		b := newBuilder(s, opt)
		each := begin()
		b.emit = func(k *Block) error {
			defer b.arena.reset()
			return each(widen(k, b.arena))
		}
		stats, content, err := readInto(ctx, gate.RowKey(), s, path, opt, b)
		if err == nil {
			err = gate.Admit(ctx, content)
		}
		return stats, err
	}
	if err := refusePacked(s, path, opt); err != nil {
		return nil, err
	}
	opt.Short = true // converted block by block, if they are short
	t, stats, err := openPacked(ctx, gate, s, path, opt)
	if err != nil {
		return nil, err
	}
	each := begin()
	return stats, errors.Join(t.stream(func(b *Block, memory *Arena) error { return each(widen(b, memory)) }), t.Close())
}

// stream hands over the blocks of a packed table, whose pages are given back on the way, with memory for one.
func (t *Table) stream(each func(*Block, *Arena) error) error {
	t.BeginPass()
	var memory Arena
	for i, b := range t.Blocks {
		t.Reach(b)
		if err := each(b.float32(&memory), &memory); err != nil {
			return err
		}
		memory.reset()
		t.Blocks[i] = nil
	}
	return nil
}
