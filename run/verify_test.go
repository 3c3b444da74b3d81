package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/run/runlog"
)

// A model of another length is a finding, as is a plan that the ledger did not
// reserve for.
func TestVerifyWhatWasExchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "method: {name: auto, center: none, last: none}") // steps that are alike, in one line
	if _, _, err := Fit(t.Context(), job, Env{}); err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, dir)
	defer l.Close()
	broken := func() (names []string) {
		t.Helper()
		found, err := Verify(t.Context(), out, l)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if !f.Holds {
				names = append(names, f.What)
			}
		}
		return names
	}
	change := func(name string, do func(map[string]any)) {
		t.Helper()
		path := filepath.Join(out, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		var raw struct{ Guarantee json.RawMessage }
		if err := errors.Join(json.Unmarshal(b, &m), json.Unmarshal(b, &raw)); err != nil {
			t.Fatal(err)
		}
		if raw.Guarantee != nil {
			m["guarantee"] = raw.Guarantee
		}
		do(m)
		if b, err = json.Marshal(m); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names := broken(); names != nil {
		t.Fatalf("does not hold: %v", names)
	}
	t.Run("endless charges", func(t *testing.T) {
		path := filepath.Join(out, runlog.EventsFile)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer os.WriteFile(path, before, 0o600)
		var line struct {
			First int             `json:"first"`
			Count int             `json:"count"`
			Event json.RawMessage `json:"event"`
		}
		if err := json.Unmarshal(before, &line); err != nil { // one line: the steps are alike
			t.Fatal(err)
		}
		line.Count = 1 << 60
		b, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		var input *InputError
		if _, err := Verify(t.Context(), out, l); !errors.As(err, &input) {
			t.Errorf("2⁶⁰ charges: %v", err)
		}
	})
	t.Run("C1 a repeated field", func(t *testing.T) {
		path := filepath.Join(out, runlog.InfoFile)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer os.WriteFile(path, before, 0o600)
		twice := append([]byte(`{"lab":false,`), before[1:]...)
		if err := os.WriteFile(path, bytes.Replace(twice, []byte(`"status"`), []byte(`"lab":false,"status"`), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		var input *InputError
		if _, err := Verify(t.Context(), out, nil); !errors.As(err, &input) || !strings.Contains(err.Error(), "stands twice") {
			t.Errorf("found %v", err)
		}
	})
	// Whom the model claims to protect is whom the run protected, and whom the ledger counts.
	guarantee := func(word string, v any) {
		change(runlog.ModelFile, func(m map[string]any) {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var g map[string]json.RawMessage // keeps the order of the plan
			if err := json.Unmarshal(m["guarantee"].(json.RawMessage), &g); err != nil {
				t.Fatal(err)
			}
			g[word] = b
			m["guarantee"] = g
		})
	}
	for word, v := range map[string][2]any{"unit": {"ward", "record"}, "dataset": {"another", job.Schema.Dataset}, "unit_rows": {3, 0}} {
		guarantee(word, v[0])
		if names := broken(); !slices.Contains(names, "model") {
			t.Errorf("a model that claims another %s: found %v", word, names)
		}
		guarantee(word, v[1])
	}
	var bound any // what the plan proves at all ε is recomputed, too
	change(runlog.InfoFile, func(m map[string]any) {
		bound, m["gdp"] = m["gdp"], map[string]any{"mu": 0.01, "outside": 0, "regret": 0}
	})
	if names := broken(); bound == nil || !slices.Contains(names, runlog.InfoFile) || !slices.Contains(names, "model") {
		t.Errorf("a run of another μ than %v: found %v", bound, names)
	}
	change(runlog.InfoFile, func(m map[string]any) { m["gdp"] = bound })
	for field, v := range map[string]any{"norm_bound": 7, "run": "another", "features": nil, "model": "huber-svm"} { // what applies it, and whose it is
		var before any
		change(runlog.ModelFile, func(m map[string]any) { before, m[field] = m[field], v })
		if names := broken(); !slices.Contains(names, "model") {
			t.Errorf("a model with another %s: found %v", field, names)
		}
		change(runlog.ModelFile, func(m map[string]any) { m[field] = before })
	}
	if names := broken(); !slices.Equal(names, []string{"files", "seal"}) { // the same, in other bytes
		t.Fatalf("the model as it was: found %v", names)
	}
	person := func(unit string, rows int) {
		guarantee("unit", unit)
		guarantee("unit_rows", rows)
		change(runlog.InfoFile, func(m map[string]any) {
			schema := m["schema"].(map[string]any)
			m["unit"], m["unit_rows"], schema["unit"], schema["unit_rows"] = unit, rows, unit, rows
			if columns := schema["columns"].([]any); rows > 0 {
				schema["columns"] = append(columns, map[string]any{"name": "person", "type": "unit"})
			} else {
				schema["columns"] = columns[:len(columns)-1]
			}
		})
	}
	person("person", 1)
	if names := broken(); !slices.Contains(names, "ledger") {
		t.Errorf("a run by another unit than its dataset's: found %v", names)
	}
	if person("record", 0); slices.Contains(broken(), "ledger") {
		t.Error("the run as it was: the ledger does not hold")
	}
	change(runlog.ModelFile, func(m map[string]any) {
		m["w"], m["dim"] = m["w"].([]any)[1:], m["dim"].(float64)-1
		delete(m, "features")
	})
	if names := broken(); !slices.Contains(names, "replay") {
		t.Errorf("a model of another length: found %v", names)
	}
	change(runlog.InfoFile, func(m map[string]any) {
		m["plan"].(map[string]any)["count"] = 99.0
	})
	if names := broken(); !slices.Contains(names, "ledger") {
		t.Errorf("another plan: found %v", names)
	}
}
