package data

import (
	"io"
	"unsafe"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
)

// readAligned reads a packed table that cannot be mapped.
func readAligned(path string, f *readfile.File) (p *pages, unmap func() error, err error) {
	unmap = func() error { return nil }
	aligned := make([]float64, (f.Size()+7)/8) // so that its numbers are aligned
	if len(aligned) == 0 {
		return &pages{}, unmap, nil
	}
	m := unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), f.Size())
	if _, err := io.ReadFull(f, m); err != nil {
		return nil, nil, config.FileError(path, err)
	}
	return &pages{mem: m}, unmap, nil
}
