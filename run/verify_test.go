package run

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sottodp/sotto/run/trace"
)

// A model of another length is a finding, as is a plan that the ledger did not
// reserve for.
func TestVerifyWhatWasExchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", "")
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
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
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
		path := filepath.Join(out, trace.EventsFile)
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
	claim := func(unit string) {
		change(trace.ModelFile, func(m map[string]any) { m["guarantee"].(map[string]any)["unit"] = unit })
	}
	claim("patient")
	if names := broken(); !slices.Contains(names, "model") {
		t.Errorf("a model that claims another unit: found %v", names)
	}
	claim("record")
	change(trace.ModelFile, func(m map[string]any) {
		m["w"], m["dim"] = m["w"].([]any)[1:], m["dim"].(float64)-1
		delete(m, "features")
	})
	if names := broken(); !slices.Contains(names, "replay") {
		t.Errorf("a model of another length: found %v", names)
	}
	change(trace.InfoFile, func(m map[string]any) {
		m["plan"].(map[string]any)["count"] = 99.0
	})
	if names := broken(); !slices.Contains(names, "ledger") {
		t.Errorf("another plan: found %v", names)
	}
}
