// Package race says whether the race detector is on, which slows arithmetic about tenfold and networks a hundredfold.
// Tests that only compute, or start one command after the other, do less under it; .ci/run runs the tests of every
// package that imports this one again without it.
package race

import (
	"os"
	"testing"
)

// Skip skips a test under the race detector.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("runs without the race detector")
	}
}

// Slower is by how much something is slower than without the race detector, if it is that much slower under it.
func Slower(under int) int {
	if Enabled {
		return under
	}
	return 1
}

// Ran reports whether .ci/run has run the tests under the race detector before these: what is the same without it need
// not run once more.
func Ran() bool { return !Enabled && os.Getenv("SOTTO_RACE_RAN") != "" }
