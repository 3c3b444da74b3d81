//go:build unix

package ledger

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/readfile"
)

// lockFile waits until no other holder of the file is left. The lock goes with the
// process, also when it is killed.
func lockFile(path string, mode os.FileMode) (unlock func(), err error) {
	return flock(path, mode, unix.LOCK_EX)
}

// tryLockFile is lockFile, or an error at once where there is another holder.
func tryLockFile(path string, mode os.FileMode) (unlock func(), err error) {
	return flock(path, mode, unix.LOCK_EX|unix.LOCK_NB)
}

func flock(path string, mode os.FileMode, how int) (unlock func(), err error) {
	f, err := readfile.OpenFile(path, os.O_CREATE|os.O_RDWR, mode)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		if err == unix.EWOULDBLOCK {
			err = errHeld
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}
