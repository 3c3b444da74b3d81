package data

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An error of these calls is none: they advise. pageSize is the system's.
var pageSize = os.Getpagesize()

// request asks for the pages of m from one byte to another, without waiting for them.
func request(m []byte, from, to int) {
	unix.Madvise(m[from&^(pageSize-1):to], unix.MADV_WILLNEED)
}

// resident says whether the page of a byte of m is in memory. It answers yes if the system does not tell, as of other
// persons' files.
func resident(m []byte, at int) bool {
	var in byte
	_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[at&^(pageSize-1)])), 1,
		uintptr(unsafe.Pointer(&in)))
	return e != 0 || in&1 != 0
}

// giveBack takes pages out of the process, and if drop is true out of memory: of other persons' files and before Linux
// 5.4 the system does not.
func giveBack(m []byte, drop bool) {
	if drop {
		unix.Madvise(m, unix.MADV_PAGEOUT)
	}
	unix.Madvise(m, unix.MADV_DONTNEED)
}

// majorFaults is how often the process has waited for a page.
func majorFaults() int64 {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u)
	return u.Majflt
}
