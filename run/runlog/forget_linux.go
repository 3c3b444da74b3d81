package runlog

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/vfs"
)

// forget tells the system that the content of f will not be read soon, so that the next group reuses its
// pages. On a virtual machine the first use of a fresh page costs more than all other work on a large
// record, and fresh pages push the rows of a mapped table out of memory. No result depends on this
// advice.
func forget(f vfs.File) {
	if f, ok := f.(*os.File); ok {
		unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	}
}
