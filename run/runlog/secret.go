package runlog

import (
	"fmt"
	"os"
	"runtime"
)

// Secret refuses a file that others may read, on systems with such modes. It leaves what is not a
// regular file to its reader. To another user, a file of root's may be readable by its group, as a mounted secret of
// Kubernetes is: root has chosen who is in it. PostgreSQL has the same rule for its keys.
func Secret(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || !info.Mode().IsRegular() || !open(info, os.Geteuid()) {
		return nil
	}
	return fmt.Errorf("found mode %04o, so others may read it; run chmod 600 %s", info.Mode().Perm(), path)
}

// open says that more than the owner, or root and a group of the process's user, may read or change the file.
func open(info os.FileInfo, user int) bool {
	if user != 0 && byRoot(info) {
		return info.Mode().Perm()&0o037 != 0
	}
	return info.Mode().Perm()&0o077 != 0
}
