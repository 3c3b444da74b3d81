package paper

import (
	"context"
	"math"
	"os"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/schema"
)

// Read reads a public dataset under a schema. It refuses rows that the user's own ledger protects.
func Read(ctx context.Context, desc, file string) (*data.Table, error) {
	s, err := schema.Parse("schema", []byte(desc))
	if err != nil {
		return nil, err
	}
	t, err := run.Read(ctx, "", "", access.Gate{Unprotected: true}, access.Lab, s, file, data.Options{})
	if err != nil {
		return nil, err
	}
	return t, keeperOf(ctx).reads(file)
}

// Synthetic reads a text that the caller has made, under a schema like any other.
func Synthetic(ctx context.Context, desc, text string) (*data.Table, error) {
	s, err := schema.Parse("schema", []byte(desc))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sotto-paper-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := dir + "/rows"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var gate access.Gate
	opened, err := gate.Open(ctx, access.Synthetic, s, file, data.Options{})
	if err != nil {
		return nil, err
	}
	return opened.Take(ctx, nil, "")
}

// A Builder makes a labeled table of two classes row by row.
type Builder struct{ Table *data.Table }

// NewBuilder makes an empty table; features are whole multiples of unit.
func NewBuilder(dim int, normBound, unit float64) *Builder {
	return &Builder{&data.Table{Dim: dim, Classes: 2, NormBound: normBound, Unit: unit, Labeled: true}}
}

// Add adds a row, times scale, truncated to the unit. It is given by its columns, ascending, and their values; with nil
// columns by all values.
func (b *Builder) Add(cols []int32, x []float64, scale float64, positive bool) {
	t := b.Table
	if n := len(t.Blocks); n == 0 || t.Blocks[n-1].N == data.BlockRows {
		k := &data.Block{Dim: t.Dim}
		if cols != nil {
			k.Start = []int32{0}
		}
		t.Blocks = append(t.Blocks, k)
	}
	k := t.Blocks[len(t.Blocks)-1]
	square := 0.0
	for _, v := range x {
		v = math.Trunc(v*scale/t.Unit) * t.Unit
		square += v * v
		if cols == nil {
			k.X = append(k.X, float32(v))
		} else {
			k.Val = append(k.Val, float32(v))
		}
	}
	if cols != nil {
		k.Col = append(k.Col, cols...)
		k.Start = append(k.Start, int32(len(k.Col)))
	}
	k.Norm = append(k.Norm, min(float32(t.NormBound), math.Nextafter32(float32(math.Sqrt(square)), math.MaxFloat32)))
	y := float32(0)
	if positive {
		y = 1
	}
	k.Y = append(k.Y, y)
	k.N++
}

// Norm is ‖x‖₂.
func Norm(x []float64) float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	return math.Sqrt(square)
}
