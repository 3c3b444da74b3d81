package private

import (
	"testing"

	"github.com/sottodp/sotto/internal/proofs"
)

// Every test that PROOFS.md names exists, here or in package model.
func TestProofs(t *testing.T) { proofs.Page(t, "../../model") }
