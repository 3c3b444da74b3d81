//go:build linux || darwin

package doctor

import "golang.org/x/sys/unix"

// freeBytes is the number of bytes that a user may still write on the disk of path.
func freeBytes(path string) (n uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
