//go:build !unix

package data

import (
	"os"
	"unsafe"
)

// mapFile reads the file at path: here a packed table needs memory for its rows.
func mapFile(path string) (m []byte, unmap func() error, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, openError(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, openError(path, err)
	}
	defer f.Close()
	aligned := make([]float64, (st.Size()+7)/8) // its numbers stand at multiples of their size
	if len(aligned) == 0 {
		return nil, func() error { return nil }, nil
	}
	m = unsafe.Slice((*byte)(unsafe.Pointer(&aligned[0])), st.Size())
	for n := 0; n < len(m); {
		k, err := f.Read(m[n:])
		if n += k; err != nil {
			return nil, nil, openError(path, err)
		}
	}
	return m, func() error { return nil }, nil
}

// advise: the table is in memory.
func advise([]byte, bool) {}

// syncDir: what a rename leaves is the system's affair here.
func syncDir(string) error { return nil }
