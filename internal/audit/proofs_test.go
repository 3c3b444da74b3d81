package audit

import (
	"testing"

	"github.com/sottodp/sotto/internal/proofs"
)

// Every test that PROOFS.md names exists, here or in study/audit.
func TestProofs(t *testing.T) { proofs.Page(t, "../../study/audit") }
