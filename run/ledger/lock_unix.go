//go:build unix

package ledger

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/readfile"
)

// lockFile locks a file. While another holder has it, it waits or returns errHeld. The lock goes with
// the process, also when it is killed.
func lockFile(path string, mode os.FileMode, wait bool) (unlock func(), err error) {
	f, err := readfile.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			break
		}
	}
	switch err {
	case nil:
		return func() { f.Close() }, nil
	case unix.EWOULDBLOCK:
		err = errHeld
	}
	f.Close()
	return nil, err
}
