package job

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOutlook: where noise decides, every model under every method says so, with what would do; with that ε none does. TestFallback has
// the run that records it.
func TestOutlook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, label, what string
		methods            []string
	}{
		{"logistic", "classes: [a, b]", "noise in a margin is about ", []string{"auto", "adam", "outpert"}},
		{"svm", "classes: [a, b]", "noise in a margin is about ", []string{"auto", "sgd"}},
		{"huber-svm", "classes: [a, b]", "noise in a margin is about ", []string{"auto"}},
		{"softmax", "classes: [a, b, c]", "noise in the difference of two classes' margins is about ", []string{"auto", "nag"}},
		{"linear", "min: 0, max: 50", "noise in a prediction is about ", []string{"auto", "adassp", "gd"}},
		{"huber", "min: 0, max: 50", "noise in a prediction is about ", []string{"auto"}},
		{"poisson", "min: 0, max: 50", "with the model linear, which needs the least, noise in a prediction is about ", []string{"adam"}},
		{"mlp, layers: [8 relu]", "classes: [a, b, c]", "with the model softmax, which needs the least, noise in the difference ", []string{"sgd"}},
	} {
		for _, name := range c.methods {
			dir := t.TempDir()
			var schema strings.Builder
			fmt.Fprintf(&schema, "dataset: noise\nrows: 500\nformat: {kind: csv, header: true}\ncolumns:\n")
			for k := range 40 {
				fmt.Fprintf(&schema, "  - {name: x%d, type: numeric, min: -1, max: 1, encode: linear}\n", k)
			}
			fmt.Fprintf(&schema, "  - {name: y, type: label, %s}\n", c.label)
			if err := os.WriteFile(filepath.Join(dir, "schema.yaml"), []byte(schema.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			at := func(epsilon float64, more string) *Job {
				t.Helper()
				spec := fmt.Sprintf("schema: %s/schema.yaml\ndata: %[1]s/table.csv\nmodel: {name: %s}\nmethod: {name: %s}\nprivacy: {epsilon: %v, delta: 1e-5, adjacency: replace-one}\n%s", dir, c.model, name, epsilon, more)
				if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(spec), 0o600); err != nil {
					t.Fatal(err)
				}
				loaded, err := LoadSpec(filepath.Join(dir, "spec.yaml"), nil)
				if err != nil {
					t.Fatal(err)
				}
				job, err := Prepare(loaded)
				if err != nil {
					t.Fatalf("%s, %s: %v", c.model, name, err)
				}
				return job
			}
			says := func(j *Job) string {
				if i := slices.IndexFunc(j.Warnings, func(w string) bool { return strings.Contains(w, "a constant may predict better") }); i >= 0 {
					return j.Warnings[i]
				}
				return ""
			}
			job := at(0.1, "")
			o := job.Outlook
			if text := says(job); o == nil || !strings.HasPrefix(text, c.what) || !strings.Contains(text, fmt.Sprintf("; choose ε ≥ %.2g", o.Epsilon)) || !strings.Contains(text, " rows") {
				t.Fatalf("%s, %s: %q, %+v", c.model, name, text, o)
			}
			if text := says(at(o.Epsilon, "")); text != "" {
				t.Errorf("%s, %s: with the ε that it names: %q", c.model, name, text)
			}
			if name != "outpert" && name != "adassp" {
				if held := at(0.1, "holdout: 0.2\n").Outlook; held == nil || held.Rows < o.Rows*9/10 {
					t.Errorf("%s, %s: with rows held out %+v, without %+v", c.model, name, held, o)
				}
			}
		}
	}
}
