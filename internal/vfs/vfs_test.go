package vfs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// told is a file system that tells which directories are synced.
type told struct {
	OS
	synced *[]string
}

func (d told) SyncDir(dir string) error {
	*d.synced = append(*d.synced, dir)
	return d.OS.SyncDir(dir)
}

// A directory that exists may have been made by a process that was killed before it was durable.
func TestMkdirAll(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "a", "b", "c")
	for range 2 {
		var synced []string
		if err := MkdirAll(told{synced: &synced}, dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if want := []string{filepath.Join(base, "a", "b"), filepath.Join(base, "a"), base}; len(synced) < 3 || !slices.Equal(synced[:3], want) {
			t.Errorf("synced %v, want %v and those above", synced, want)
		}
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		t.Fatal(err)
	}
}
