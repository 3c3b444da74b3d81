package run

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// numberOf makes a table whose label is 1 or 0 of one with classes yes and no.
func numberOf(t *testing.T, schema string, tables ...string) {
	t.Helper()
	edit := func(path string, r *strings.Replacer) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(r.Replace(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(schema, strings.NewReplacer(`type: label, classes: ["no", "yes"]`, "type: label, min: -1, max: 3"))
	for _, table := range tables {
		edit(table, strings.NewReplacer(",no\n", ",0\n", ",yes\n", ",1\n"))
	}
}

// TestChosenPairs: a run of auto whose schema names no pairs finds the one that decides the label. Its files verify and name the pair,
// the model scores rows as the run did, the run goes on where it was broken, and another pair in its files does not verify. With all
// rows, with a part of them held out, under both relations, for classes and for numbers. Noise is seeded.
func TestChosenPairs(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		more    string
		numbers bool
		least   float64 // accuracy, or R²
	}{
		{"", false, 0.9}, {"\nmodel.l2", false, 0.9}, {"replace-one\nholdout: 0.2\n", false, 0.9}, {"", true, 0.4},
	} {
		schema, table, test := crossed(t, 10000)
		if c.numbers {
			numberOf(t, schema, table, test)
		}
		dir := t.TempDir()
		set := func(path, value string) Override { return Override{Path: path, Value: value, From: "test"} }
		over := []Override{set("data", table), set("test", test), set("schema", schema), set("privacy.epsilon", "8")}
		if c.numbers {
			over = append(over, set("model.name", "linear"), set("method.solve", "gradients"))
		}
		switch relation, _, found := strings.Cut(c.more, "\n"); {
		case found && relation == "":
			over = append(over, set("model.l2", "1e-5"))
		case found:
			over = append(over, set("privacy.adjacency", relation), set("holdout", "0.2"))
		}
		job, whole := begin(t, dir, "whole", "method: {name: auto}", over...)
		if !strings.Contains(job.Encoding, "places for 4 pairs") || job.Facts.Slots != 4 {
			t.Fatalf("%d: %s; %d places", i, job.Encoding, job.Facts.Slots)
		}
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		score := info.Result.Test.Accuracy
		if c.numbers {
			score = info.Result.Test.R2
		}
		if !slices.Contains(info.Result.Pairs, "x × y") || *score < c.least {
			t.Errorf("%d: pairs %v, score %v", i, info.Result.Pairs, *score)
		}
		trained, err := LoadModel(whole)
		if err != nil {
			t.Fatal(err)
		}
		if trained.Schema.PairNames() != strings.Join(info.Result.Pairs, ", ") || trained.Schema.Open() > 0 || trained.Schema.Dim() != len(trained.File.W) {
			t.Errorf("%d: the model has the pairs %v and %d parameters", i, trained.Schema.Pairs, len(trained.File.W))
		}
		again, err := trained.Evaluate(t.Context(), test, Evaluation{Ledger: job.Spec.Ledger, Unprotected: true})
		if err != nil {
			t.Fatal(err)
		}
		scored := again.Accuracy
		if c.numbers {
			scored = again.R2
		}
		if math.Abs(*scored-*score) > 1e-4 { // rows that a run refined are rounded twice
			t.Errorf("%d: the model scores %v, the run says %v", i, *scored, *score)
		}
		l := openLedger(t, dir)
		if found, err := Verify(t.Context(), whole, l); err != nil || !allHold(found) {
			t.Errorf("%d: %v, %v", i, found, err)
		}
		if job.Held == nil {
			for _, at := range []int{1, 20} { // behind the first release, and amid the gradients
				broken(t, l, whole, filepath.Join(dir, fmt.Sprint("broken", at)), at, at)
			}
			broken(t, l, whole, filepath.Join(dir, "broken25"), 25, 20) // five batches are lost
		}
		l.Close()
		for _, at := range []int{1, 20, 25} {
			if job.Held != nil {
				continue
			}
			name := filepath.Join(dir, fmt.Sprint("broken", at))
			went, err := Resume(t.Context(), name, Env{Workers: 1})
			if err != nil || went.Status != runlog.Finished || !slices.Contains(went.Result.Pairs, "x × y") {
				t.Fatalf("%d, %s: %v", i, name, err)
			}
			if found, err := Verify(t.Context(), name, nil); err != nil || !allHold(found) {
				t.Errorf("%d, %s: %v, %v", i, name, found, err)
			}
		}
		verifyOther(t, whole, info)
	}
}

// verifyOther: a run whose files name another pair than its releases choose does not verify.
func verifyOther(t *testing.T, whole string, info *runlog.Info) {
	t.Helper()
	path := filepath.Join(whole, runlog.ModelFile)
	file, err := model.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Schema = []byte(strings.NewReplacer(`"a":"x","b":"y"`, `"a":"x","b":"z"`, `"a":"y","b":"x"`, `"a":"z","b":"x"`).Replace(string(file.Schema)))
	if err := model.Write(path, file); err != nil {
		t.Fatal(err)
	}
	if found, err := Verify(t.Context(), whole, nil); err != nil || held(found, "model") {
		t.Errorf("a model with another pair verifies: %v, %v", found, err)
	}
	info.Result.Pairs = []string{"x × z"}
	if err := runlog.WriteInfo(whole, info); err != nil {
		t.Fatal(err)
	}
	if found, err := Verify(t.Context(), whole, nil); err != nil || held(found, "run.json") {
		t.Errorf("a record of another pair verifies: %v, %v", found, err)
	}
}

func held(found []record.Finding, what string) bool {
	return !slices.ContainsFunc(found, func(f record.Finding) bool { return f.What == what && !f.Holds })
}

// TestPlacesForPairs: a run has places for pairs where nothing names any, auto chooses, and the noise and the rows allow; then its plan
// has a release more.
func TestPlacesForPairs(t *testing.T) {
	t.Parallel()
	schema, table, _ := crossed(t, 10000)
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	many := filepath.Join(t.TempDir(), "many.yaml") // of more than 1 GiB, once encoded
	if err := os.WriteFile(many, []byte(strings.Replace(string(text), "rows: 10000", "rows: 2500000", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none.yaml")
	if err := os.WriteFile(none, append(text, "pairs: none\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	head := "data: " + table + "\nmodel: {name: logistic}\n"
	const some, little = "privacy: {epsilon: 8, delta: 1e-5, adjacency: add-or-remove}\n", "privacy: {epsilon: 0.005, delta: 1e-5, adjacency: add-or-remove}\n"
	for _, c := range []struct {
		text   string
		places int
	}{
		{some, 4}, {some + "hats: 4\n", 4}, {some + "method: {name: auto, center: none, last: none}\n", 4}, {some + "columns: 2\n", 4},
		{some + "pairs: none\n", 0}, {some + "pairs: [[x, z]]\n", 0}, {some + "hats: none\n", 0}, {some + "columns: 1\n", 0},
		{some + "method: {name: sgd}\nhats: 4\n", 0}, {some + "method: {name: auto, batch: 100}\n", 0}, {some + "method: {name: auto, noise_multiplier: 500}\n", 0},
		{"privacy: {epsilon: 8, delta: 0, adjacency: add-or-remove}\nhats: 4\n", 0}, {"privacy: none\nlab: true\nhats: 4\n", 0}, {little + "hats: 4\n", 0},
		{strings.Replace(some, "1e-5", "1e-8", 1) + "hats: 4\nschema: " + many, 0}, {some + "schema: " + none, 0},
	} {
		if !strings.Contains(c.text, "schema:") {
			c.text += "schema: " + schema
		}
		spec, err := job.ParseSpec("s.yaml", []byte(head+c.text), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		job, err := Prepare(spec)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if n := job.Facts.Slots; n != c.places || job.Schema.Open() != n || job.Facts.Totals != (n > 0) {
			t.Errorf("%s: %d places; %s", c.text, n, job.Encoding)
		}
	}
}
