package vfs

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMkdirAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MkdirAll(OS{}, dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		t.Fatal(err)
	}
}
