// Package source reads the formats of tables, one file each. Only access imports it, so every access
// passes the gate.
//
// To add a format: a file here with its reader, and a line in formats. A program outside of
// this module calls [Register] before it opens a table.
package source

import (
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/registry"
)

var formats = registry.InTurn("format", func(f data.Format) string { return f.Name },
	sqlFormat, parquetFormat, arrowFormat, jsonLines, idx, libsvm, csvFormat)

// Register adds a format. Sotto offers a table to the formats in the order of their registration. It panics if the
// name is taken.
func Register(f data.Format) { formats.Register(f) }

// Formats returns all formats, in the order in which Sotto offers them a table.
func Formats() []data.Format { return formats.All() }
