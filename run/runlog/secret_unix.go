//go:build unix

package runlog

import (
	"os"
	"syscall"
)

// byRoot says that the file is root's.
func byRoot(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}
