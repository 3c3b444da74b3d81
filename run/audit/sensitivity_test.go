package audit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy/noise"
)

func sensed(t *testing.T, name string, m method.Method, tables int, fault Fault) *Sensitivities {
	t.Helper()
	s, err := sense(t.Context(), name, m, tables, Options{Streams: noise.SeededStreams(1), Fault: fault})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// No record moves an exact sum by more than is charged: of each method of the registry, with each model that it supports. Moves come near
// to the bound. Nothing here is left to chance.
func TestSensitivities(t *testing.T) {
	race.Skip(t)
	pairs, queries, models := 0, map[string]bool{}, map[string]bool{}
	check := func(name string, m method.Method) {
		s := sensed(t, name, m, 2, "")
		t.Logf("%s: %d pairs of %v with %v, the largest move %.6f of the bound", name, s.Pairs, s.Queries, s.Models, s.Most)
		if len(s.Alarms) > 0 || s.Pairs > 0 && s.Most < 0.5 || (s.Pairs == 0) != (name == "amp") || (s.Missing == "") == (name == "amp") {
			t.Errorf("%s: %+v", name, *s)
		}
		pairs += s.Pairs
		for _, q := range s.Queries {
			queries[q] = true
		}
		for _, m := range s.Models {
			models[m] = true
		}
	}
	for _, e := range method.Registry() {
		if unclaimed[e.Name] == "" {
			check(e.Name, e.Method)
		}
	}
	for _, clipping := range []string{method.ByValue, method.PerLayer} {
		check("sgd", method.SGD{Gradient: method.Gradient{Clipping: clipping}})
	}
	for _, q := range []string{"gradients", "curvature", "decreases", "neighbors", "classes", "minimizers"} {
		if !queries[q] {
			t.Errorf("no sum of %s is compared", q)
		}
	}
	if len(models) != len(model.Names()) {
		t.Errorf("compared with %v of the models %v", models, model.Names())
	}
	t.Logf("%d pairs", pairs)
}

// Where records count up to twice the bound that is charged, or are in the table twice, an alarm names method, model and query.
func TestSensitivityFaults(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct {
		name    string
		fault   Fault
		model   string
		queries []string
	}{
		{"sgd", FaultClip, "logistic", []string{"gradients"}},
		{"agd", FaultClip, "logistic", []string{"gradients", "decreases"}},
		{"privgene", FaultClip, "logistic", []string{"neighbors"}},
		{"newton", FaultTwice, "logistic", []string{"gradients", "curvature"}}, // clip norms of Hessians are the models' own bounds
		{"majority", FaultTwice, "logistic", []string{"classes"}},
		{"outpert-sgd", FaultTwice, "huber-svm", []string{"minimizers"}}, // of logistic the bound is twice what was seen
	} {
		entry, err := method.Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		s := sensed(t, c.name, entry.Method, 2, c.fault)
		for _, q := range c.queries {
			if alarm := fmt.Sprintf("sensitivity of %s, model %s: %s", c.name, c.model, q); !slices.Contains(s.Alarms, alarm) {
				t.Errorf("%s: no alarm %q; %+v", c.fault, alarm, *s)
			}
		}
		if !(s.Most > 1.3 && s.Most <= 2) {
			t.Errorf("%s, %s: the largest move is %v of the bound", c.name, c.fault, s.Most)
		}
	}
}
