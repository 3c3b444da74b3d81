package job

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a spec holds, reading it ends with a spec or with an *InputError.
func FuzzSpec(f *testing.F) {
	for _, s := range []string{
		"", "{}", "- a", "a: b: c", "privacy: none\nlab: true", "privacy: {epsilon: 1, delta: 1e-6, adjacency: add-or-remove}",
		"data: a.csv\nschema: s.yaml\nmodel: {name: logistic, l2: 0.1}\nmethod: {name: sgd, steps: 1e2}\nseed: 3\nlab: true\nprivacy:\n  epsilon: .5\n  delta: 0\n  adjacency: replace-one\n",
		"method: &a {name: sgd}\nmodel: *a", "method:\n  <<: {name: sgd}", "? x\n: y", "data: |\n  text", "data: !!binary aGk=", "seed: 0x10", "lab: ~", "model:", "---\n---\n", "\"a\": 'b'", "1: 2", "{a", "method: {? [1]: 2}",
		"compare: {methods: [sgd, {label: a, name: sgd, steps: 1}], epsilon: [1, none], tables: [{data: [a], model: {name: svm}}, {delta: 1e-5}], split: .5}", "compare: {tables: {data: ~}}", "compare: {methods: *a}",
	} {
		f.Add(s, "method.steps", "10")
	}
	f.Add("privacy: none", "privacy.epsilon", "{}")
	f.Add("model: {name: linear}", "model.name", "[logistic]")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		for _, overrides := range [][]Override{nil, {{Path: path, Value: value, From: "--set " + path}}} {
			s, err := ParseSpec("spec.yaml", []byte(text), overrides)
			var input *InputError
			if err != nil && !errors.As(err, &input) {
				t.Fatalf("error %v is no InputError", err)
			}
			if err == nil && s.Method == nil {
				t.Fatal("a spec without a method")
			}
			if _, err := parseComparison("spec.yaml", []byte(text)); err != nil && !errors.As(err, &input) {
				t.Fatalf("error %v of the block compare is no InputError", err)
			}
		}
	})
}

// Paths of the file are relative to it, those of flags to the working directory.
func TestPaths(t *testing.T) {
	s, err := ParseSpec("dir/spec.yaml", []byte("data: a.csv\nschema: s.yaml\nledger: postgres://u@h/db\nmodel: {name: linear}\nlab: true\nprivacy: none"),
		[]Override{{Path: "test", Value: "t.csv", From: "--test"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Data != filepath.Join("dir", "a.csv") || s.Test != "t.csv" || s.Ledger != "postgres://u@h/db" {
		t.Errorf("found %q, %q and %q", s.Data, s.Test, s.Ledger)
	}
}

// TestTablePaths: a table of a database is found from the spec file too, and run.json
// gets no password.
func TestTablePaths(t *testing.T) {
	s, err := ParseSpec("dir/spec.yaml", []byte("data: a.db?table=x\ntest: postgres://u:hunter2@h/d?table=x\nschema: s.yaml\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 0, adjacency: replace-one}\n"), nil)
	if err != nil || s.Data != filepath.Join("dir", "a.db")+"?table=x" || s.Test != "postgres://u:hunter2@h/d?table=x" {
		t.Errorf("%+v %v", s, err)
	}
	if p := TablePath(s.Data); !filepath.IsAbs(p) || !strings.HasSuffix(p, filepath.Join("dir", "a.db")+"?table=x") {
		t.Error(p)
	}
	if p := TablePath(s.Test); p != "postgres://u@h/d?table=x" {
		t.Error(p)
	}
}

// JSON is YAML: names of fields may stand in quotes.
func TestSpecInJSON(t *testing.T) {
	text := `{"schema": "s.yaml", "model": {"name": "logistic", "l2": 0.5}, "method": {"name": "sgd", "steps": 7}, "privacy": {"epsilon": 1, "delta": 1e-5, "adjacency": "replace-one"}}`
	s, err := ParseSpec("spec.yaml", []byte(text), nil)
	if err != nil || s.Schema != "s.yaml" || s.Model.Name != "logistic" || s.MethodName != "sgd" {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := ParseSpec("spec.yaml", []byte(strings.Replace(text, "l2", "l3", 1)), nil); err == nil || !strings.Contains(err.Error(), `unknown field "l3"`) {
		t.Fatal(err)
	}
}

// TestSamplerDelta: at any ε the sampler's share of δ is a number, which files can hold.
func TestSamplerDelta(t *testing.T) {
	if few, all := SamplerDelta(1, 1, 1), SamplerDelta(1, 1, 800); !(few > 0 && few < 1e-9) || all != 1 {
		t.Errorf("found %v and %v", few, all)
	}
}
