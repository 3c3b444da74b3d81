package model_test

import (
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
)

// A name is registered once, in lower case, and before anything reads the registry.
func TestRegister(t *testing.T) {
	make := func(model.Options) (model.Model, error) { return nil, nil }
	if !slices.Contains(model.Names(), "poisson") {
		t.Fatal("poisson is not registered")
	}
	for _, e := range []model.Entry{{Name: "late", New: make}, {Name: "linear", New: make}, {Name: "Upper", New: make}, {Name: "empty"}} {
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
