package newfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteWhole: a stream gets all, however much it is, or nothing, and no file is left.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	broken := errors.New("broken")
	for _, size := range []int{0, 1, heldBytes, heldBytes + 1, 3 * heldBytes} {
		text := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
		for _, path := range []string{"", "-", filepath.Join(t.TempDir(), "made")} {
			var out bytes.Buffer
			if err := WriteWhole(&out, "out", path, write); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if path != "" && path != "-" {
				b, _ := os.ReadFile(path)
				got += string(b)
			}
			if got != text {
				t.Errorf("%d bytes to %q arrive as %d", size, path, len(got))
			}
			os.Remove(path)
			out.Reset()
			err := WriteWhole(&out, "out", path, func(w io.Writer) error { return errors.Join(write(w), broken) })
			if !errors.Is(err, broken) || out.Len() > 0 {
				t.Errorf("%d bytes to %q, which end with an error: %v, and %d bytes arrive", size, path, err, out.Len())
			}
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%d bytes which end with an error leave a file", size)
			}
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
}
