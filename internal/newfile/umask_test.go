//go:build unix

package newfile

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that a flag names may be read by whom the umask lets.
func TestWriteFollowsUmask(t *testing.T) {
	for umask, want := range map[int]os.FileMode{0o022: 0o644, 0o077: 0o600} {
		before := unix.Umask(umask)
		path := filepath.Join(t.TempDir(), "out.csv")
		err := Write(nil, "out", path, func(w io.Writer) error { _, err := io.WriteString(w, "a\n"); return err })
		unix.Umask(before)
		if info, statErr := os.Stat(path); err != nil || statErr != nil || info.Mode().Perm() != want {
			t.Errorf("umask %o: %v, %v, %v", umask, info, err, statErr)
		}
	}
}
