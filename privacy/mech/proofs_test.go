package mech

import (
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/proofs"
)

// Every test that PROOFS.md names exists, and every mechanism has a section that names it.
func TestProofs(t *testing.T) {
	page := proofs.Page(t, "../../oracle/private")
	for _, name := range []string{"Gaussian", "Share", "Laplace", "SymmetricGaussian", "AboveThreshold", "Select", "PermuteAndFlip"} {
		used := false
		for _, line := range strings.Split(page, "*Used.*")[1:] {
			line, _, _ = strings.Cut(line, "*Tests.*")
			used = used || strings.Contains(line, "`"+name+"`")
		}
		if !used {
			t.Errorf("PROOFS.md has no section used by %s", name)
		}
	}
}
