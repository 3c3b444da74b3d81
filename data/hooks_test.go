package data

import (
	"context"

	"github.com/sottodp/sotto/schema"
)

// What the formats of package data/source do, which imports this one: formats_test.go sets them.
var (
	TestFormats []Format
	Skeleton    func(ctx context.Context, path, delimiter string) ([]byte, error)
)

// readTable is Read with all formats and without a load limit, packTable Pack.
func readTable(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options, train ...*Table) (*Table, *LoadStats, error) {
	opt.Formats, opt.unlimited = TestFormats, true
	return Read(ctx, gate, s, path, opt, train...)
}

func packTable(ctx context.Context, gate Gate, s *schema.Schema, src, dst string, opt Options) (*LoadStats, error) {
	opt.Formats, opt.unlimited = TestFormats, true
	return Pack(ctx, gate, s, src, dst, opt)
}
