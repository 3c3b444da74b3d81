package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run/runlog"
)

// noisyTable writes a table of random columns, of which none has to do with the label, and a spec for it.
func noisyTable(t *testing.T, dir, name string, rows, columns int, more, model string) *Job {
	t.Helper()
	draw := rand.New(rand.NewPCG(22, 5))
	var table, schema strings.Builder
	fmt.Fprintf(&schema, "dataset: noise\nrows: %d\nformat: {kind: csv, header: true}\ncolumns:\n", rows)
	for k := range columns {
		fmt.Fprintf(&table, "x%d,", k)
		fmt.Fprintf(&schema, "  - {name: x%d, type: numeric, min: -1, max: 1, encode: linear}\n", k)
	}
	schema.WriteString("  - {name: y, type: label, classes: [often, rarely]}\n")
	table.WriteString("y\n")
	for range rows {
		for range columns {
			fmt.Fprintf(&table, "%.2f,", 2*draw.Float64()-1)
		}
		label := "often"
		if draw.IntN(10) < 3 {
			label = "rarely"
		}
		fmt.Fprintln(&table, label)
	}
	spec := fmt.Sprintf("schema: %s/schema.yaml\ndata: %[1]s/table.csv\nout: %[1]s/%[2]s\nledger: %[1]s/ledger.db\nmodel: {name: logistic%[4]s}\nprivacy: {epsilon: 0.1, delta: 1e-5, adjacency: add-or-remove}\n%[3]s", dir, name, more, model)
	for file, text := range map[string]string{"schema.yaml": schema.String(), "table.csv": table.String(), name + ".yaml": spec} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := LoadSpec(filepath.Join(dir, name+".yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Prepare(loaded)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// TestFallback: on columns of noise, auto warns by itself; where it counts wrong answers, the model predicts the more frequent
// class for every row, and the run says so and verifies. The noise is seeded.
func TestFallback(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job := noisyTable(t, dir, "whole", 4000, 200, "lab: true\nseed: 3\nmethod: {name: auto, fallback: class}\n", "")
	m := job.Method.(method.Auto)
	if m.Fallback != method.FallbackClass || job.Outlook == nil || !slices.ContainsFunc(job.Warnings, func(w string) bool { return strings.HasPrefix(w, "noise in a margin is about") }) {
		t.Fatalf("configured as %+v, with the warnings %q", m, job.Warnings)
	}
	for _, model := range []string{", class_weights: {rarely: 3}", ", threshold: {rarely: 0.3}"} {
		if m := noisyTable(t, dir, "other", 4000, 200, "", model).Method.(method.Auto); m.Fallback == method.FallbackClass {
			t.Errorf("%s: configured as %+v", model, m)
		}
	}
	info, _, err := Fit(t.Context(), job, Env{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if info.Result.Fallback != "often" {
		t.Errorf("falls back to %q", info.Result.Fallback)
	}
	whole := filepath.Join(dir, "whole")
	if found, err := Verify(t.Context(), whole, nil); err != nil || !allHold(found) {
		t.Fatalf("%v, %v", found, err)
	}
	trained, err := LoadModel(whole)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := trained.Evaluate(t.Context(), filepath.Join(dir, "table.csv"), Evaluation{Unprotected: true, Void: true, Ledger: filepath.Join(dir, "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	if scores.Confusion[0][1]+scores.Confusion[1][1] > 0 || scores.Rows != 4000 {
		t.Errorf("a model of one class predicts %v", scores.Confusion)
	}
	said := info.Warnings
	info.Warnings = nil
	if err := runlog.WriteInfo(whole, info); err != nil {
		t.Fatal(err)
	}
	if found, err := Verify(t.Context(), whole, nil); err != nil || allHold(found) {
		t.Errorf("without its warning it verifies: %v, %v", found, err)
	}
	info.Warnings = said
	info.Result.Fallback = "rarely"
	if err := runlog.WriteInfo(whole, info); err != nil {
		t.Fatal(err)
	}
	if found, err := Verify(t.Context(), whole, nil); err != nil || allHold(found) {
		t.Errorf("another class verifies: %v, %v", found, err)
	}
}

// TestFallbackResumes: a run that ends with counts or with sums over margins goes on where it was broken, also between the last gradient
// and those.
func TestFallbackResumes(t *testing.T) {
	t.Parallel()
	for _, ends := range []string{"fallback: class", "last: margins"} {
		dir := t.TempDir()
		job, whole := begin(t, dir, "whole", "method: {name: auto, center: none, "+ends+", steps: 40}")
		if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		l := openLedger(t, dir)
		if found, err := Verify(t.Context(), whole, l); err != nil || !allHold(found) {
			t.Fatalf("%s: %v, %v", ends, found, err)
		}
		if rec := logOf(t, whole); rec.Charged() != 41 || rec.Released != 41 {
			t.Errorf("%s: %d batches are charged, %d released; want 40 steps and what ends the run", ends, rec.Charged(), rec.Released)
		}
		for _, at := range []int{20, 40} {
			broken(t, l, whole, filepath.Join(dir, fmt.Sprint("broken", at)), at, at)
		}
		l.Close()
		for _, name := range []string{"broken20", "broken40"} {
			again, err := Resume(t.Context(), filepath.Join(dir, name), Env{Workers: 1})
			if err != nil || again.Status != runlog.Finished {
				t.Fatalf("%s, %s: %v", ends, name, err)
			}
			if rec := logOf(t, filepath.Join(dir, name)); rec.Charged() != 41 {
				t.Errorf("%s, %s: %d batches are charged", ends, name, rec.Charged())
			}
			if found, err := Verify(t.Context(), filepath.Join(dir, name), nil); err != nil || !allHold(found) {
				t.Errorf("%s, %s: %v, %v", ends, name, found, err)
			}
		}
	}
}
