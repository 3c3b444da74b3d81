package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
)

// TestEncoding: method auto chooses the encoding of columns that name none, from public facts; everything that is not
// a new run of auto takes them as linear, or as the spec says.
func TestEncoding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const columns = "\ncolumns:\n  - {name: age, type: numeric, min: 18, max: 100%s}\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n"
	free := file("free.yaml", fmt.Sprintf("dataset: many\nrows: 50000"+columns, ""))
	few := file("few.yaml", fmt.Sprintf("dataset: few\nrows: 100"+columns, ""))
	line := file("line.yaml", fmt.Sprintf("dataset: many\nrows: 50000"+columns, ", encode: linear"))
	packed := filepath.Join(dir, "t.sotto")
	loaded, err := data.LoadSchema(free)
	if err != nil {
		t.Fatal(err)
	}
	if err := data.PackTable(loaded, data.Empty(loaded), packed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema, spec string
		hats         int
		encoding     string
	}{
		{free, "", 16, "numeric columns that name none: 1; 16 bumps beside each linear feature: with 16, d = 18, noise"},
		{free, "hats: auto", 16, "16 bumps"},
		{free, "hats: none", 0, "0 bumps beside each linear feature, as the spec says"},
		{free, "hats: 5", 5, "5 bumps beside each linear feature, as the spec says"},
		{free, "method: {name: sgd}", 0, "no bumps: only method auto chooses"},
		{free, "method: {name: sgd}\nhats: 5", 5, "as the spec says"},
		{free, "data: " + packed, 0, "no bumps: the table is packed"},
		{few, "", 0, "no bumps: with 8"},
		{line, "", 0, ""},
	} {
		spec, err := parseSpec("spec.yaml", []byte("schema: "+c.schema+"\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\naccept_delta: true\n"+c.spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		if s := job.Schema; s.Columns[0].Hats != c.hats || s.Free() != 0 || job.Facts.Dim != 2+c.hats || !strings.Contains(job.Encoding, c.encoding) || (job.Encoding == "") != (c.encoding == "") {
			t.Errorf("%q: %d bumps, d = %d, %s", c.spec, s.Columns[0].Hats, job.Facts.Dim, job.Encoding)
		}
		shared, err := spec.LoadSchema() // what searches, comparisons, networks and workers take
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 5}[strings.Contains(c.spec, "hats: 5")]; shared.Columns[0].Hats != want || shared.Free() != 0 {
			t.Errorf("%q: shared tables have %d bumps", c.spec, shared.Columns[0].Hats)
		}
	}
	for text, want := range map[string]string{
		"schema: " + free + "\nhats: 1":     `hats: found "1"; allowed are auto, none and a number of bumps from 2 to 64`,
		"schema: " + free + "\nhats: false": `hats: found "false"`,
		"schema: " + line + "\nhats: 8":     "hats: found 8; allowed is none: every numeric column",
	} {
		spec, err := parseSpec("spec.yaml", []byte(text+"\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"), nil)
		if err == nil {
			_, err = Prepare(spec)
		}
		wantInput(t, err, want)
	}
}

// TestEncodingIsRecorded: a run's files have the encoding that auto chose, and verify rests on them alone.
func TestEncodingIsRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	schema := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(schema, []byte("dataset: many\nrows: 9000\ncolumns:\n  - {name: age, type: numeric, min: 18, max: 100}\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := data.LoadSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	if _, err := data.Synth(loaded, 300, 1, &rows); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(table, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	job := fitAndVerify(t, "auto", []Override{{Path: "data", Value: table, From: "test"}, {Path: "schema", Value: schema, From: "test"}})
	if job.Schema.Columns[0].Hats != 16 || !strings.Contains(strings.Join(job.Assumptions(), " "), "noise ν√d = ") {
		t.Errorf("%d bumps: %s", job.Schema.Columns[0].Hats, job.Encoding)
	}
}
