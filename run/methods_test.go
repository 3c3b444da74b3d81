package run

import (
	"fmt"
	"testing"

	"github.com/sottodp/sotto/method"
)

// onlyUnder is what the methods need that do not run under add-or-remove, or not with a budget.
var onlyUnder = map[string][]Override{
	"outpert":     {{Path: "privacy.adjacency", Value: "replace-one", From: "test"}},
	"outpert-sgd": {{Path: "privacy.adjacency", Value: "replace-one", From: "test"}},
	"amp":         {{Path: "privacy.adjacency", Value: "replace-one", From: "test"}},
	"optimum":     {{Path: "privacy", Value: "none", From: "test"}, {Path: "lab", Value: "true", From: "test"}},
}

// What each method's run records is found to hold by verify: its plan, its charges, its
// releases, and the model that they replay to.
func TestVerifyEveryMethod(t *testing.T) {
	t.Parallel()
	for _, e := range method.Registry {
		dir := t.TempDir() // with a ledger of its own: that of a dataset has one relation
		l := openLedger(t, dir)
		defer l.Close()
		job, out := begin(t, dir, e.Name, fmt.Sprintf("method: {name: %s}", e.Name), onlyUnder[e.Name]...)
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
