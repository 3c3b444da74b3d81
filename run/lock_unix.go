//go:build unix

package run

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/readfile"
)

// LockDir keeps a second process out of a run directory. The lock goes with the
// process, also when it is killed.
func LockDir(dir string) (unlock func(), err error) {
	f, err := readfile.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: another process is at work on this run", dir)
	}
	return func() { f.Close() }, nil
}

const lockFile = ".lock"
