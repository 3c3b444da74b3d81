//go:build unix

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func (OS) Lock(f File, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(f.(*os.File).Fd()), how); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrHeld
		default:
			return err
		}
	}
}
