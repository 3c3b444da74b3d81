package data

import (
	"context"

	"github.com/sottodp/sotto/schema"
)

// What the formats of package data/source do, which imports this one: formats_test.go sets them.
var (
	TestFormats []Format
	Skeleton    func(path, delimiter string) ([]byte, error)
)

// readTable is Read with all formats, packTable Pack.
func readTable(ctx context.Context, gate Gate, s *schema.Schema, path string, opt Options, train ...*Table) (*Table, *LoadStats, error) {
	opt.Formats, opt.factor = TestFormats, manyRows
	return Read(ctx, gate, s, path, opt, train...)
}

func packTable(ctx context.Context, gate Gate, s *schema.Schema, src, dst string, opt Options) (*LoadStats, error) {
	opt.Formats, opt.factor = TestFormats, manyRows
	return Pack(ctx, gate, s, src, dst, opt)
}

// manyRows lets the tests read many more rows than their schemas declare.
const manyRows = 1 << 20
