//go:build unix

package data

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/readfile"
)

// mapFile maps the file at path into memory, read-only. Nobody may use the memory
// after unmap.
func mapFile(path string) (m []byte, unmap func() error, err error) {
	f, err := readfile.Open(path)
	if err != nil {
		return nil, nil, config.FileError(path, err)
	}
	defer f.Close()
	if f.OS == nil || f.Size() == 0 {
		return readAligned(path, f)
	}
	if m, err = unix.Mmap(int(f.OS.Fd()), 0, int(f.Size()), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, nil, config.FileError(path, &os.PathError{Op: "map", Path: path, Err: err})
	}
	return m, func() error { return unix.Munmap(m) }, nil
}

// advise says how mapped memory will be read: in random order, where reading ahead is wasted, or
// in sequence.
func advise(m []byte, random bool) {
	how := unix.MADV_NORMAL
	if random {
		how = unix.MADV_RANDOM
	}
	unix.Madvise(m, how) // advice only: an error changes no result
}
