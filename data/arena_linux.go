package data

import "golang.org/x/sys/unix"

// adviseLarge asks for large pages in m, before its first use.
func adviseLarge(m []byte) {
	unix.Madvise(m, unix.MADV_HUGEPAGE) // advice only: an error changes no result
}
