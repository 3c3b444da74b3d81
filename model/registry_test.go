package model_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
)

// TestRegistry says what the registration of a model lacks, and where to write it.
func TestRegistry(t *testing.T) {
	for _, e := range model.Registry() {
		lacks := func(what string) { t.Errorf("model %s: its Entry, in the model's file, lacks %s", e.Name, what) }
		if e.About == "" {
			lacks("About: what it is, in one line")
		}
		config := reflect.TypeOf(e.Config)
		for _, f := range reflect.VisibleFields(config) {
			for _, tag := range []string{"yaml", "json", "type", "default", "doc"} {
				if f.Tag.Get(tag) == "" {
					t.Errorf("model %s: the field %s of %v lacks the tag %s (see model.Config)", e.Name, f.Name, config, tag)
				}
			}
		}
		opt := model.Options{Dim: 9, NormBound: 1, Config: e.Small}
		switch e.Label {
		case model.TwoClasses:
			opt.Classes = 2
		case model.SomeClasses:
			opt.Classes = 3
		case model.Number, model.Count:
		default:
			lacks("Label: which labels it takes")
			continue
		}
		m, err := model.New(e.Name, opt)
		if err != nil {
			lacks("Small, or has one that is refused for rows of 9 numbers: a configuration for tests and audits, as the zero value is refused: " + err.Error())
			continue
		}
		f := m.Facts()
		if f.Centered && e.Label != model.SomeClasses && e.Margin.What == "" {
			lacks("Margin: what ⟨w, x⟩ is, for the report's page of effects")
		}
		if !f.Centered && e.Margin.What != "" {
			t.Errorf("model %s has words for a margin, and no margin ⟨w, x⟩", e.Name)
		}
		if got := m.Outputs(); e.Label == model.TwoClasses && got != 2 || e.Label >= model.Number && got != 1 {
			t.Errorf("model %s: Outputs is %d, which does not fit Entry.Label", e.Name, got)
		}
		if _, starts := m.(model.Starter); starts != e.Net {
			t.Errorf("model %s: Entry.Net is %v; it says whether parameters start elsewhere than at 0", e.Name, e.Net)
		}
	}
	if n := len(model.Names()); n != len(slices.Compact(slices.Sorted(slices.Values(model.Names())))) {
		t.Error("a model is listed twice")
	}
}
