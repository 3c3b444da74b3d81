//go:build !unix

package data

import (
	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
)

// mapFile reads the file at path: on these systems a packed table needs memory for its rows.
func mapFile(path string) (p *pages, unmap func() error, err error) {
	f, err := readfile.Open(path)
	if err != nil {
		return nil, nil, config.FileError(path, err)
	}
	defer f.Close()
	return readAligned(path, f)
}

// advise: the table is in memory.
func advise([]byte, reading) {}
