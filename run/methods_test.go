package run

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
)

// onlyUnder is what the methods need that do not run under add-or-remove, or not with a budget.
var onlyUnder = map[string][]Override{
	"outpert":     {{Path: "privacy.adjacency", Value: "replace-one", From: "test"}},
	"outpert-sgd": {{Path: "privacy.adjacency", Value: "replace-one", From: "test"}},
	"amp":         {{Path: "privacy.adjacency", Value: "replace-one", From: "test"}},
	"optimum":     {{Path: "privacy", Value: "none", From: "test"}, {Path: "lab", Value: "true", From: "test"}},
}

// ofAge is what adassp needs, and no other method: the model linear, and a schema whose label is the age.
func ofAge(t *testing.T, name, schema string) []Override {
	t.Helper()
	if name != "adassp" {
		return nil
	}
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(name: \w+),[^{}]*type: label[^}]*`).ReplaceAll(text, []byte("$1, type: ignore"))
	text = regexp.MustCompile(`(name: age,.*type:) numeric`).ReplaceAll(text, []byte("$1 label"))
	path := filepath.Join(t.TempDir(), "schema.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return []Override{{Path: "model.name", Value: "linear", From: "test"}, {Path: "schema", Value: path, From: "test"}}
}

// rowsOnly are the methods that are not proven for records of several rows, and what they say.
var rowsOnly = map[string]string{"amp": "objective perturbation is proven for records of one row"}

// What each method's run records is found to hold by verify: its plan, its charges, its
// releases, and the model that they replay to.
func TestVerifyEveryMethod(t *testing.T) {
	t.Parallel()
	for _, e := range method.Registry() {
		fitAndVerify(t, e.Name, append(ofAge(t, e.Name, filepath.Join("..", "examples", "clinic", "schema.yaml")), onlyUnder[e.Name]...))
	}
}

const visitSchema = "dataset: visits\n%s\ncolumns:\n  - {name: id, type: %s}\n  - {name: age, type: numeric, min: 18, max: 100}\n  - {name: weight, type: numeric, min: 30, max: 200}\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n"

// visits writes a table of 300 patients of one to four rows, and its schema.
func visits(t *testing.T, dir string) (units, csv string) {
	t.Helper()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	units = file("units.yaml", fmt.Sprintf(visitSchema, "unit: {name: patient, rows: 4}\nunits: 300", "unit"))
	parsed, err := data.LoadSchema(units)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if _, err := data.Synth(parsed, 300, 1, &table); err != nil {
		t.Fatal(err)
	}
	return units, file("visits.csv", table.String())
}

// A new method gets units for nothing: it trains on patients of one to four rows by the very plan that it has for as many rows, and what it records holds.
func TestEveryMethodOverUnits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	units, csv := visits(t, dir)
	rows := filepath.Join(dir, "rows.yaml")
	if err := os.WriteFile(rows, fmt.Appendf(nil, visitSchema, "rows: 300", "ignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	on := func(schema, name string) []Override {
		over := append([]Override{{Path: "data", Value: csv, From: "test"}, {Path: "schema", Value: schema, From: "test"}}, onlyUnder[name]...)
		return append(over, ofAge(t, name, schema)...)
	}
	for _, e := range method.Registry() {
		if why, refuses := rowsOnly[e.Name]; refuses {
			spec, _ := clinicSpec(t, t.TempDir(), e.Name, fmt.Sprintf("method: {name: %s}", e.Name))
			loaded, err := LoadSpec(spec, on(units, e.Name))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Prepare(loaded); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("method %s over units: %v; by the map rowsOnly, run/methods_test.go, it refuses them with %q, so take "+
					"it out there or refuse units in its Configure", e.Name, err, why)
			}
			continue
		}
		job := fitAndVerify(t, e.Name, on(units, e.Name))
		if other, _ := begin(t, t.TempDir(), e.Name, fmt.Sprintf("method: {name: %s}", e.Name), on(rows, e.Name)...); !privacy.Equal(job.Plan, other.Plan) {
			t.Errorf("method %s plans %v over 300 units, but %v over 300 rows; both have as many records, so Plan and the "+
				"defaults of Configure follow from oracle.Public alone", e.Name, job.Plan, other.Plan)
		}
	}
}

// fitAndVerify runs a method, with its defaults, and verifies the run.
func fitAndVerify(t *testing.T, name string, overrides []Override) *Job {
	t.Helper()
	dir := t.TempDir() // with a ledger of its own: that of a dataset has one relation
	l := openLedger(t, dir)
	defer l.Close()
	file, out := clinicSpec(t, dir, name, fmt.Sprintf("method: {name: %s}", name))
	spec, err := LoadSpec(file, overrides)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Prepare(spec)
	if err != nil {
		t.Fatalf("method %s with all fields free does not train logistic regression on examples/clinic under "+
			"add-or-remove: %v. A method that needs another relation or no budget has an entry in the map onlyUnder, one that "+
			"needs another model a case in ofAge, one without a proof for units an entry in rowsOnly, all in "+
			"run/methods_test.go", name, err)
	}
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Errorf("method %s: Configure and Plan took the run, but it ends with %v", name, err)
		return job
	}
	found, err := Verify(t.Context(), out, l)
	if err != nil {
		t.Errorf("method %s: its run cannot be verified: %v", name, err)
	}
	for _, f := range found {
		if !f.Holds {
			t.Errorf("method %s: verify finds that %s does not hold in its run: %s. Steps are a function of releases, and go "+
				"test ./method -run Conformance/%s says which part is not", name, f.What, f.Detail, name)
		}
	}
	return job
}
