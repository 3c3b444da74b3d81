package newfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	for _, text := range []string{"one", "another, longer", ""} {
		if err := Replace(path, 0o600, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("holds %q, want %q: %v", got, text, err)
		}
	}
	// A reader that holds the old file keeps it whole: it is replaced, not rewritten.
	if err := Replace(path, 0o600, []byte("old")); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := Replace(path, 0o600, []byte("new")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, _ := old.Read(b); string(b[:n]) != "old" {
		t.Errorf("the old file now holds %q", b[:n])
	}
	// A failure leaves the target and no litter: here the target is a directory.
	if err := os.MkdirAll(filepath.Join(dir, "full", "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "full"), 0o600, []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d names are left, want 2: %v %v", len(entries), entries, err)
	}
	if err := Replace(filepath.Join(dir, "absent", "x"), 0o600, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}
