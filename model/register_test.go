package model_test

import (
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
)

// A name is registered once, in lower case, and before anything reads the registry.
func TestRegister(t *testing.T) {
	if !slices.Contains(model.Names(), "poisson") {
		t.Fatal("poisson is not registered")
	}
	for _, e := range []model.Entry{{Name: "late", Config: model.Linear{}}, {Name: "linear", Config: model.Linear{}}, {Name: "Upper", Config: model.Linear{}}, {Name: "empty"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is registered", e.Name)
				}
			}()
			model.Register(e)
		}()
	}
}
