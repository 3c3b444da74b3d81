//go:build unix

package readfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// nonblock: opening a pipe does not wait for its other end, and a terminal does
// not become the process's own.
const nonblock = unix.O_NONBLOCK | unix.O_NOCTTY

const reopens = true // duplicate may be called again

// duplicate opens an inherited descriptor again.
func duplicate(path string, fd uintptr) (*os.File, error) {
	n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(n), path), nil
}
