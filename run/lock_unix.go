//go:build unix

package run

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/readfile"
)

// Abandoned reports whether the process that worked on the run in dir is gone. It is false where that cannot be told:
// without a lock file, or without the right to read it.
func Abandoned(dir string) bool {
	f, err := readfile.OpenFile(filepath.Join(dir, lockFile), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close() // releases the lock
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}
