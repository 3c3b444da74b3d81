package runlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget tells the system that what f holds on disk will not be read soon, so that the next group
// reuses its pages. Fresh pages, first touched on a virtual machine, cost more than all else of a
// large record, and would push the rows of a mapped table out of memory. Nothing depends on this
// advice.
func forget(f *os.File) { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
