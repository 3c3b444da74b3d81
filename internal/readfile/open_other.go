//go:build !unix

package readfile

import (
	"io/fs"
	"os"
)

const (
	nonblock = 0
	reopens  = false
)

// duplicate: only standard input is inherited. It is read once, to its end.
func duplicate(path string, fd uintptr) (*os.File, error) {
	if fd != 0 {
		return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return os.Stdin, nil
}
