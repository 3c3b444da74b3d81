package private

import (
	"testing"

	"github.com/sottodp/sotto/internal/proofs"
)

// Every test that PROOFS.md names exists, here, in package model, schema or run, or in oracle/remote.
func TestProofs(t *testing.T) {
	proofs.Page(t, "../../model", "../../schema", "../../run", "../remote")
}
