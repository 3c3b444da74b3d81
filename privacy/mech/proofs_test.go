package mech

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every test that PROOFS.md names exists, and every mechanism has a section that names it.
func TestProofs(t *testing.T) {
	page, err := os.ReadFile("PROOFS.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	door, err := filepath.Glob("../../oracle/live/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, name := range append(files, door...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(data)
	}
	for _, part := range strings.Split(string(page), "`Test")[1:] {
		name, _, _ := strings.Cut(part, "`")
		if !strings.Contains(source.String(), "func Test"+name+"(") {
			t.Errorf("PROOFS.md names Test%s, which does not exist", name)
		}
	}
	for _, name := range []string{"Gaussian", "Laplace", "SymmetricGaussian", "AboveThreshold", "Select", "PermuteAndFlip"} {
		used := false
		for _, line := range strings.Split(string(page), "*Used.*")[1:] {
			line, _, _ = strings.Cut(line, "*Tests.*")
			used = used || strings.Contains(line, "`"+name+"`")
		}
		if !used {
			t.Errorf("PROOFS.md has no section used by %s", name)
		}
	}
}
