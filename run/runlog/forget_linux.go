package runlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget tells the system that what f holds on disk will not be read soon. Its pages serve
// the next group then, where a growing record would take ever new ones: first touched,
// on a virtual machine, they cost more than all else that a large record does, and they
// would push the rows of a mapped table out of memory. Advice may be refused: nothing
// depends on it.
func forget(f *os.File) { unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
