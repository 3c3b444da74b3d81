package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/runlog"
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
			s, err := parseSpec("spec.yaml", []byte(text), overrides)
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
	s, err := parseSpec("dir/spec.yaml", []byte("data: a.csv\nschema: s.yaml\nledger: postgres://u@h/db\nmodel: {name: linear}\nlab: true\nprivacy: none"),
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
	s, err := parseSpec("dir/spec.yaml", []byte("data: a.db?table=x\ntest: postgres://u:hunter2@h/d?table=x\nschema: s.yaml\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 0, adjacency: replace-one}\n"), nil)
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

// Under add-or-remove the number of rows is private: no file of a run says it,
// and none depends on a row that weighs nothing (R9).
func TestNothingTellsTheNumberOfRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, err := os.ReadFile(filepath.Join("..", "examples", "clinic", "patients.csv"))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join("..", "examples", "clinic", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("schema.yaml", "on_bad_row: drop\n"+string(schema))
	put("one.csv", strings.Join(lines[:3458], ""))
	put("neighbour.csv", strings.Join(lines[:3458], "")+"SECRET\n")
	count := regexp.MustCompile(`(^|[^0-9.eE-])3,?45[78]([^0-9.]|$)`)
	hashes := regexp.MustCompile(`[0-9a-f]{64}`)
	told := map[string]string{} // of the last step
	fit := func(name, data, more string) string {
		job, out := begin(t, dir, name, "output: last\n"+more)
		job.Spec.Data = filepath.Join(dir, data)
		job.Spec.Schema = filepath.Join(dir, "schema.yaml")
		job.Spec.Void = job.Spec.Lab
		if job, err = Prepare(job.Spec); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Fit(t.Context(), job, Env{Progress: func(p Progress) { told[name] = fmt.Sprint(p.Step, p.MaxSteps, p.Epsilon) }}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, method := range []string{"", "method: {name: sgd, steps: 50, batch: 40}"} {
		name := fmt.Sprint("real", len(method))
		out := fit(name, "one.csv", method)
		for _, file := range []string{runlog.InfoFile, runlog.EventsFile, runlog.StepsFile, runlog.ModelFile} {
			b, err := os.ReadFile(filepath.Join(out, file))
			if err != nil {
				t.Fatal(err)
			}
			b = hashes.ReplaceAll(b, nil) // any digits may stand in a hash
			if m := count.Find(b); m != nil {
				t.Errorf("%s tells the number of rows: %q", file, m)
			}
		}
		a := fit(name+"-a", "one.csv", method+"\nlab: true\nseed: 3\n")
		b := fit(name+"-b", "neighbour.csv", method+"\nlab: true\nseed: 3\n")
		for _, file := range []string{runlog.StepsFile, runlog.ReleasesFile} {
			sameFile(t, a, b, file)
		}
		if x, y := publicInfo(t, a), publicInfo(t, b); x != y {
			t.Errorf("run.json differs:\n%s\n%s", x, y)
		}
		if x, y := logOf(t, a).Event(), logOf(t, b).Event(); !privacy.Equal(x, y) {
			t.Errorf("charged %v and %v", x, y)
		}
		// How often one is told depends on the time (R11), what of does not.
		if x, y := told[name+"-a"], told[name+"-b"]; x != y {
			t.Errorf("told of %s and of %s", x, y)
		}
	}
}

// publicInfo is run.json without what names the run, its place and its time, and
// without the counts that the lab adds.
func publicInfo(t *testing.T, dir string) string {
	t.Helper()
	i, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	i.ID, i.Started, i.Finished, i.SpecFile, i.Data, i.LedgerHead = "", time.Time{}, nil, "", "", ""
	delete(i.Hashes, runlog.ModelFile) // it holds the time and the name of the run
	i.Result.TrainSeconds, i.Result.LabCounts = 0, nil
	b, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// JSON is YAML: names of fields may stand in quotes.
func TestSpecInJSON(t *testing.T) {
	text := `{"schema": "s.yaml", "model": {"name": "logistic", "l2": 0.5}, "method": {"name": "sgd", "steps": 7}, "privacy": {"epsilon": 1, "delta": 1e-5, "adjacency": "replace-one"}}`
	s, err := parseSpec("spec.yaml", []byte(text), nil)
	if err != nil || s.Schema != "s.yaml" || s.Model.Name != "logistic" || s.MethodName != "sgd" {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := parseSpec("spec.yaml", []byte(strings.Replace(text, "l2", "l3", 1)), nil); err == nil || !strings.Contains(err.Error(), `unknown field "l3"`) {
		t.Fatal(err)
	}
}
