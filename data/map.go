package data

import (
	"io"
	"unsafe"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
)

const readFirst = 64 << 20 // bytes

// readAligned reads a packed table that cannot be mapped.
func readAligned(path string, f *readfile.File) (p *pages, unmap func() error, err error) {
	unmap = func() error { return nil }
	var aligned []float64 // so that its numbers are aligned
	var m []byte
	// memory follows what is there, not the size that a store says
	for done := int64(0); done < f.Size(); done = int64(len(m)) {
		size := min(f.Size(), max(readFirst, 2*done))
		more := make([]float64, (size+7)/8)
		copy(more, aligned)
		aligned = more
		m = unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), size)
		if _, err := io.ReadFull(f, m[done:]); err != nil {
			if failed := f.Err(); failed != nil {
				err = failed
			} else {
				err = config.FileError(path, err)
			}
			return nil, nil, err
		}
	}
	return &pages{mem: m}, unmap, nil
}
