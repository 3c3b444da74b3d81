package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every test that PROOFS.md names exists, here or in run/audit.
func TestProofs(t *testing.T) {
	page, err := os.ReadFile("PROOFS.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, pattern := range []string{"*_test.go", "../../run/audit/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
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
}
