package needs

import (
	"testing"
	"time"
)

// Patience is how long a test waits for a condition that an idle machine meets at
// once. A machine at a load of 20 may take minutes.
const Patience = 6 * time.Minute

// Until waits for a condition, and fails the test if it does not hold in time.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
