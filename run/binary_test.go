package run

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	"github.com/sottodp/sotto/run/runlog"
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
	if want := fmt.Sprintf("%x", sha256.Sum256(text)); runlog.Binary() != want {
		t.Errorf("found %q, want %q", runlog.Binary(), want)
	}
	for binary, want := range map[string]bool{runlog.Binary(): true, "": false, fmt.Sprintf("%x", sha256.Sum256(nil)): false} {
		if got := SameBuild(&runlog.Info{Version: runlog.Devel, Binary: binary}); got != want {
			t.Errorf("binary %q of a run without a version: found %v, want %v", binary, got, want)
		}
	}
}
