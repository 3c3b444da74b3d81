//go:build unix

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
	for range 10 { // Abandoned has the lock for a moment
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: another process is at work on this run", dir)
	}
	return func() { f.Close() }, nil
}

// Abandoned reports whether the process that worked on the run in dir is gone. It is false where that cannot be told: without a
// lock file, or without the right to read it.
func Abandoned(dir string) bool {
	f, err := readfile.OpenFile(filepath.Join(dir, lockFile), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close() // releases the lock
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

const lockFile = ".lock"
