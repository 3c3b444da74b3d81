package runlog

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
)

// Binary is the hash of the program that runs, and tells builds apart that have no version.
func TestBinary(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(text)); Binary() != want {
		t.Errorf("found %q, want %q", Binary(), want)
	}
	for binary, want := range map[string]bool{Binary(): true, "": false, fmt.Sprintf("%x", sha256.Sum256(nil)): false} {
		if got := SameBuild(&Info{Version: Devel, Binary: binary}); got != want {
			t.Errorf("binary %q of a run without a version: found %v, want %v", binary, got, want)
		}
	}
}
