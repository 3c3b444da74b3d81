package run

import (
	"fmt"
	"testing"

	"github.com/sottodp/sotto/method"
)

// What each method's run records is found to hold by verify: its plan, its charges, its
// releases, and the model that they replay to.
func TestVerifyEveryMethod(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLedger(t, dir)
	defer l.Close()
	for _, e := range method.Registry {
		job, out := begin(t, dir, e.Name, fmt.Sprintf("method: {name: %s}", e.Name))
		if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		found, err := Verify(t.Context(), out, l)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		for _, f := range found {
			if !f.Holds {
				t.Errorf("%s: %s does not hold: %s", e.Name, f.What, f.Detail)
			}
		}
	}
}
