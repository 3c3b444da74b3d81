//go:build unix

package data

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/config"
)

// mapFile maps the file at path into memory, read-only. Nobody may use the memory
// after unmap.
func mapFile(path string) (p *pages, unmap func() error, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if f.OS == nil || f.Size() == 0 {
		return readAligned(path, f)
	}
	m, err := unix.Mmap(int(f.OS.Fd()), 0, int(f.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, config.FileError(path, &os.PathError{Op: "map", Path: path, Err: err})
	}
	return &pages{mem: m, mapped: true}, func() error { return unix.Munmap(m) }, nil
}

// advise says in what order mapped memory will be read.
func advise(m []byte, how reading) {
	// advice only: an error changes no result
	unix.Madvise(m,
		[...]int{readNormal: unix.MADV_NORMAL, readRandom: unix.MADV_RANDOM, readSequential: unix.MADV_SEQUENTIAL}[how])
}
