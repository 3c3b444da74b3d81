// Package margin says what the margins of models are, in words, for pages that may not know models, since those see
// rows.
package margin

import (
	"cmp"
	"fmt"
	"strings"
)

// Words are those of a model.
type Words struct {
	What  string // what ⟨w, x⟩ is; %q in it is the second of two classes
	Ratio string // what its exponential multiplies; "": nothing
}

var said = map[string]Words{}

// Say is for the registration of a model.
func Say(model string, w Words) { said[model] = w }

// Of are the words for a model with those classes.
func Of(model string, classes []string) Words {
	w := said[model]
	w.What = cmp.Or(w.What, "margin w·x")
	if strings.Contains(w.What, "%q") && len(classes) == 2 {
		w.What = fmt.Sprintf(w.What, classes[1])
	}
	return w
}
