// Package source reads the formats of tables, one file each. Only access imports it, so every access
// passes the gate.
//
// To add a format: a file here with its reader, and a line in formats. A program outside of
// this module calls [Register] before it opens a table.
package source

import (
	"slices"
	"sync"

	"github.com/sottodp/sotto/data"
)

var (
	mu      sync.Mutex
	formats = []data.Format{
		sqlFormat,
		parquetFormat,
		arrowFormat,
		jsonLines,
		idx,
		libsvm,
		csvFormat,
	}
)

// Register adds a format. Sotto offers a table to the formats in the order of their registration.
func Register(f data.Format) {
	mu.Lock()
	defer mu.Unlock()
	formats = append(formats, f)
}

// Formats returns all formats, in the order in which Sotto offers them a table.
func Formats() []data.Format {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(formats)
}
