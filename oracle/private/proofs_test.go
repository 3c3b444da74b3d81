package private

import (
	"testing"

	"github.com/sottodp/sotto/internal/proofs"
)

// Every test that PROOFS.md names exists, here, in package data, model, schema, run or run/describe, or in oracle/remote or replay.
func TestProofs(t *testing.T) {
	proofs.Page(t, "../../data", "../../model", "../../schema", "../../run", "../../run/describe", "../remote", "../replay")
}
