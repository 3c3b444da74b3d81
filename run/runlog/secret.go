package runlog

import (
	"fmt"
	"os"
	"runtime"
)

// Secret refuses a file that others may read, on systems with such modes. It leaves what is not a
// file to its reader.
func Secret(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("found mode %04o; allowed is a file that nobody else may read: chmod 600 %s", info.Mode().Perm(), path)
}
