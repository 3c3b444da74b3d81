package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/run/runlog"
)

// TestWhoTrainsOnShorts: a packed table of 16-bit numbers is summed as it is by linear models, and read as float32 where rows are
// centered, by networks and by solvers.
func TestWhoTrainsOnShorts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, err := filepath.Abs("../examples/clinic/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := data.LoadSchema(file)
	if err != nil {
		t.Fatal(err)
	}
	packed, gate := filepath.Join(dir, "short.packed"), access.Gate{Unprotected: true}
	if _, err := gate.Pack(t.Context(), s, "../examples/clinic/patients.csv", packed, data.Options{Coding: data.Coding{Short: true}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		more            string
		short, centered bool
	}{
		"auto":    {"model: {name: logistic}\nmethod: {name: auto, center: none}", true, false},
		"center":  {"model: {name: logistic}\nmethod: {name: auto, center: mean}", false, true},
		"sgd":     {"model: {name: svm}\nmethod: {name: sgd, steps: 5, batch: 100}", true, false},
		"network": {"model: {name: mlp, layers: [3]}\nmethod: {name: sgd, steps: 5, batch: 100}", false, false},
		"solver":  {"model: {name: logistic, l2: 0.1}\nmethod: {name: outpert-sgd}\nprivacy: {epsilon: 8, delta: 1e-5, adjacency: replace-one}", false, false},
	} {
		spec, out := filepath.Join(dir, name+".yaml"), filepath.Join(dir, name)
		more := c.more
		if !strings.Contains(more, "privacy") {
			more += "\nprivacy: {epsilon: 8, delta: 1e-5, adjacency: add-or-remove}"
		}
		text := fmt.Sprintf("data: %s\nschema: %s\nledger: %s\nout: %s\nlab: true\nseed: 1\n%s\n", packed, file, filepath.Join(dir, name+".db"), out, more)
		if err := os.WriteFile(spec, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadSpec(spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(loaded)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		info, err := runlog.ReadInfo(out)
		if err != nil {
			t.Fatal(err)
		}
		var facts oracle.Public
		if err := json.Unmarshal(info.Public, &facts); err != nil {
			t.Fatal(err)
		}
		if facts.Short != c.short || facts.Centered != c.centered {
			t.Errorf("%s: public.short is %v, public.centered %v", name, facts.Short, facts.Centered)
		}
		if found, err := Verify(t.Context(), out, nil); err != nil || !allHold(found) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}
