// Package source lists the formats of files whose rows have named columns. Only run/access
// imports it: no access, no rows.
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
		jsonLines,
	}
)

// Register adds a format. Those registered before it come first.
func Register(f data.Format) {
	mu.Lock()
	defer mu.Unlock()
	formats = append(formats, f)
}

// Formats are all formats, in the order in which a file is offered to them.
func Formats() []data.Format {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(formats)
}
