package mech

import (
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/proofs"
)

// Every test that PROOFS.md names exists, and every mechanism has a section that names it.
func TestProofs(t *testing.T) {
	page := proofs.Page(t, "../../oracle/private")
	for _, name := range mechanisms(t) {
		used := false
		for _, line := range strings.Split(page, "*Used.*")[1:] {
			line, _, _ = strings.Cut(line, "*Tests.*")
			used = used || strings.Contains(line, "`"+name+"`")
		}
		if !used && name != "None" { // which claims nothing
			t.Errorf("mechanism %s: no section of privacy/mech/PROOFS.md is used by it; write one with its claim and proof, "+
				"whose line *Used.* names `%s`, and after it *Tests.*", name, name)
		}
	}
}
