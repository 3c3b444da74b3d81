// Package proofs checks that the tests exist that a page of proofs names. It is a helper of tests.
package proofs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Page reads PROOFS.md of the package under test and returns it. Every test that it names must stand in
// a test file of this package or of the others, given as folders.
func Page(t *testing.T, others ...string) string {
	t.Helper()
	page, err := os.ReadFile("PROOFS.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, folder := range append([]string{"."}, others...) {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", folder, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	for _, part := range strings.Split(string(page), "`Test")[1:] {
		name, _, _ := strings.Cut(part, "`")
		if !strings.Contains(source.String(), "func Test"+name+"(") {
			t.Errorf("PROOFS.md names Test%s, which does not exist", name)
		}
	}
	return string(page)
}
