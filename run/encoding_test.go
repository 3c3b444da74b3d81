package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
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
	packed := func(name, path string, short bool) string {
		t.Helper()
		loaded, err := data.LoadSchema(path)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.Join(dir, name)
		if _, err := data.Pack(t.Context(), &datatest.Gate{}, loaded, file("none.csv", "age,sick\n"), name,
			data.Options{Coding: data.Coding{Short: short}, Formats: source.Formats()}); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const columns = "\ncolumns:\n  - {name: age, type: numeric, min: 18, max: 100%s}\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n"
	free := file("free.yaml", fmt.Sprintf("dataset: many\nrows: 50000"+columns, ""))
	few := file("few.yaml", fmt.Sprintf("dataset: few\nrows: 100"+columns, ""))
	line := file("line.yaml", fmt.Sprintf("dataset: many\nrows: 50000"+columns, ", encode: linear"))
	old := filepath.Join(dir, "old.sotto") // as earlier builds packed it, with +0 for a cell without a value
	zero := file("zero.yaml", fmt.Sprintf("dataset: many\nrows: 50000"+columns, ", missing: zero"))
	loaded, err := data.LoadSchema(zero)
	if err != nil {
		t.Fatal(err)
	}
	if err := data.PackTable(loaded, data.Empty(loaded), old); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema, spec string
		hats         int
		encoding     string
	}{
		{free, "", 16, "numeric columns that name none: 1; 16 bumps beside each linear feature: with 16 bumps, d = 18, noise"},
		{free, "hats: auto", 16, "16 bumps"},
		{free, "hats: none", 0, "0 bumps beside each linear feature, as the spec says"},
		{free, "hats: 5", 5, "5 bumps beside each linear feature, as the spec says"},
		{free, "method: {name: sgd}", 0, "no bumps: only method auto chooses"},
		{free, "method: {name: sgd}\nhats: 5", 5, "as the spec says"},
		{free, "data: " + packed("t.sotto", free, false), 16, "16 bumps"},
		{free, "data: " + packed("short.sotto", free, true), 0, "no bumps: the table is packed"},
		{free, "data: " + packed("line.sotto", line, false), 16, "16 bumps"},
		{free, "data: " + packed("hats.sotto", file("hats.yaml", fmt.Sprintf("dataset: many\nrows: 50000"+columns, ", hats: 16")), false), 0, "no bumps: the table is packed"},
		{zero, "data: " + packed("zero.sotto", zero, false), 16, "16 bumps"},
		{zero, "data: " + old, 0, "no bumps: the table is packed"},
		{zero, "", 16, "16 bumps"},
		{few, "", 0, "no bumps: with 5 waves"},
		{line, "", 0, ""},
	} {
		spec, err := job.ParseSpec("spec.yaml", []byte("schema: "+c.schema+"\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\naccept_delta: true\n"+c.spec), nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		if s := job.Schema; s.Columns[0].Hats != c.hats || s.Free() != 0 || job.Facts.Dim != 2+c.hats || s.Snapped != strings.Contains(c.encoding, "16 bumps") || job.Facts.Snapped != s.Snapped || !strings.Contains(job.Encoding, c.encoding) || (job.Encoding == "") != (c.encoding == "") {
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
		"schema: " + free + "\nhats: 1":     `hats: found "1"; write auto, none or a number of bumps from 2 to 64`,
		"schema: " + free + "\nhats: false": `hats: found "false"`,
		"schema: " + line + "\nhats: 8":     "hats: found 8; write none, as every numeric column",
	} {
		spec, err := job.ParseSpec("spec.yaml", []byte(text+"\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"), nil)
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

// TestColumns: the first columns of the schema that a spec asks for, or that method auto chooses by public facts, are those of the run,
// its files and its predictions; verify rests on the files alone.
func TestColumns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("dataset: wide\nrows: 1000\ncolumns:\n")
	for i := range 60 {
		fmt.Fprintf(&text, "  - {name: x%d, type: numeric, min: -1, max: 1}\n", i)
	}
	text.WriteString("  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n")
	file := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := data.LoadSchema(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	if _, err := data.Synth(schema, 300, 1, &rows); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(table, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	set := func(path, value string) Override { return Override{Path: path, Value: value, From: "test"} }
	over := []Override{set("data", table), set("schema", file), set("privacy.epsilon", "0.1")}
	j := fitAndVerify(t, "auto", append(over, set("columns", "auto")))
	chosen, _ := j.Method.(method.Auto)
	if chosen.Columns < 2 || chosen.Columns > 40 || j.Schema.Predictors() != chosen.Columns || j.Facts.Dim != chosen.Columns+1 {
		t.Errorf("auto uses %d columns, d = %d", chosen.Columns, j.Facts.Dim)
	}
	if want := fmt.Sprintf("the first %d of 60", chosen.Columns); !strings.Contains(j.Columns, want) || !strings.Contains(strings.Join(j.Warnings, " "), want) {
		t.Errorf("%s; warnings %q", j.Columns, j.Warnings)
	}
	if j = fitAndVerify(t, "sgd", append(over, set("columns", "3"))); j.Schema.Predictors() != 3 || j.Facts.Dim != 4 || j.Columns != "the first 3 of 60, as the spec says" {
		t.Errorf("%d columns, d = %d: %s", j.Schema.Predictors(), j.Facts.Dim, j.Columns)
	}

	packed := filepath.Join(dir, "t.sotto")
	if err := data.PackTable(schema.WithHats(0), data.Empty(schema.WithHats(0)), packed); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"columns: 0":                         `columns: found "0"; write all, auto or a number of columns`,
		"columns: some":                      `columns: found "some"`,
		"columns: 61":                        "columns: found 61; the schema has 60",
		"columns: 5\ndata: " + packed:        "columns: found it for a table without columns, or a packed one",
		"columns: auto\ndata: " + packed:     "columns: found it for a table without columns, or a packed one",
		"columns: auto\nmethod: {name: sgd}": "columns: found auto beside method sgd",
	} {
		spec, err := job.ParseSpec("spec.yaml", []byte("schema: "+file+"\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"+text), nil)
		if err == nil {
			_, err = Prepare(spec)
		}
		wantInput(t, err, want)
	}
	for text, want := range map[string]int{"columns: all": 60, "columns: 7": 7, "columns: auto": 0} {
		spec, err := job.ParseSpec("spec.yaml", []byte("schema: "+file+"\nmodel: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"+text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if shared, err := spec.LoadSchema(); want == 0 {
			wantInput(t, err, "columns: found auto; write all or a number here")
		} else if err != nil || shared.Predictors() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOutputOfScattering: auto takes the last iterate for softmax on scattering coefficients, and elsewhere what every spec takes.
func TestOutputOfScattering(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		image, classes, rest string
		want                 method.Output
	}{
		{"shape: [28, 28], encode: scattering", `"0", "1", "2"`, "", method.Last},
		{"shape: [28, 28], encode: scattering", `"0", "1", "2"`, "output: tail-average", method.TailAverage},
		{"shape: [28, 28], encode: scattering", `"0", "1", "2"`, "method: {name: sgd}", method.TailAverage},
		{"shape: [28, 28], encode: scattering", `"0", "1"`, "", method.TailAverage},
		{"shape: [28, 28], center: 0, scale: 255", `"0", "1", "2"`, "", method.TailAverage},
	} {
		file := filepath.Join(dir, "schema.yaml")
		text := fmt.Sprintf("dataset: images\nrows: 60000\nformat: {kind: idx}\nimage: {%s}\ncolumns:\n  - {name: y, type: label, classes: [%s]}\n", c.image, c.classes)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, err := job.ParseSpec("spec.yaml", []byte("schema: "+file+"\nmodel: {name: softmax}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"+c.rest), nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		if job.Spec.Output != c.want || (job.Output != "") != (c.want == method.Last) {
			t.Errorf("%+v: %s, %s", c, job.Spec.Output, job.Output)
		}
	}
}

// TestSmoothedBumps: where three columns have bumps the model has them smoothed, the report says so, verify computes the same, and
// `raw_bumps` turns it off. Noise is seeded.
func TestSmoothedBumps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(file, []byte("dataset: curves\nrows: 20000\ncolumns:\n  - {name: ward, type: categorical, levels: [a, b]}\n  - {name: x, type: numeric, min: -1, max: 1}\n  - {name: y, type: numeric, min: -1, max: 1}\n  - {name: z, type: numeric, min: -1, max: 1}\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := data.LoadSchema(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	if _, err := data.Synth(loaded, 500, 1, &rows); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(table, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const said = "The weights of bumps were brought closer to 0"
	var models [][]float64
	for _, raw := range []string{"false", "true"} {
		var over []Override
		for path, value := range map[string]string{"data": table, "schema": file, "lab": "true", "seed": "5", "method.raw_bumps": raw} {
			over = append(over, Override{Path: path, Value: value, From: "test"})
		}
		job := fitAndVerify(t, "auto", over)
		if got := strings.Contains(strings.Join(job.Assumptions(), " "), said); got != (raw == "false") || job.Schema.Columns[1].Hats == 0 {
			t.Errorf("raw_bumps: %s: %q", raw, job.Assumptions())
		}
		trained, err := LoadModel(job.Spec.Out)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, trained.File.W)
	}
	moved := map[string]bool{}
	for j, name := range loaded.WithHats((len(models[0])-3)/3 - 1).FeatureNames() {
		moved[name] = models[0][j] != models[1][j]
	}
	// The last release looks at the smoothed model and scales all parameters, so the others change, too.
	if !moved["x hat 1"] || !moved["z hat 8"] {
		t.Errorf("what smoothing moved: %v", moved)
	}
}

// TestPackedGivesTheSame: a run of auto on a packed table chooses the encoding that it chooses on the file, and has the same model and the same
// scores bit for bit.
func TestPackedGivesTheSame(t *testing.T) {
	t.Parallel()
	schema, table, test := crossed(t, 30000)
	loaded, err := data.LoadSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	packed := filepath.Join(dir, "t.pack")
	if _, err := data.Pack(t.Context(), &datatest.Gate{}, loaded, table, packed, data.Options{Formats: source.Formats()}); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"", "holdout: 0.3\n"} {
		var weights [][]float64
		var scores []float64
		for _, path := range []string{table, packed} {
			set := func(path, value string) Override { return Override{Path: path, Value: value, From: "test"} }
			over := []Override{set("data", path), set("schema", schema), set("lab", "true"), set("seed", "3"), set("privacy.epsilon", "10"), set("test", test)}
			if more != "" {
				over = append(over, set("holdout", "0.3"))
			}
			job := fitAndVerify(t, "auto", over)
			if !job.Schema.Snapped || !job.Facts.Snapped || job.Facts.Slots == 0 || job.RowOptions().Narrow {
				t.Fatalf("the run has another encoding: %s", job.Encoding)
			}
			trained, err := LoadModel(job.Spec.Out)
			if err != nil {
				t.Fatal(err)
			}
			info, err := runlog.ReadInfo(job.Spec.Out)
			if err != nil {
				t.Fatal(err)
			}
			weights, scores = append(weights, trained.File.W), append(scores, *info.Result.Test.LogLoss)
		}
		if !slices.Equal(weights[0], weights[1]) || scores[0] != scores[1] {
			t.Errorf("%q: the packed table gives another model, or other scores: %v", more, scores)
		}
	}
}

// TestNarrowGivesTheSame: a run that keeps rows without their curves has the model of one that keeps them, bit for bit. Which does follows
// from the declared rows alone.
func TestNarrowGivesTheSame(t *testing.T) {
	t.Parallel()
	schema, table, _ := crossed(t, 30000)
	prepared := func(rows int) *Job {
		spec, err := job.ParseSpec("s.yaml", fmt.Appendf(nil, "schema: %s\ndata: %s\nlab: true\nseed: 3\nmodel: {name: logistic}\nprivacy: {epsilon: 10, delta: 1e-8, adjacency: add-or-remove}\n", schema, table), nil)
		if err != nil {
			t.Fatal(err)
		}
		if rows > 0 {
			text, err := os.ReadFile(schema)
			if err != nil {
				t.Fatal(err)
			}
			spec.Schema = filepath.Join(t.TempDir(), "more.yaml")
			if err := os.WriteFile(spec.Schema, []byte(strings.Replace(string(text), "rows: 30000", fmt.Sprintf("rows: %d", rows), 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		j, err := Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := prepared(0)
	var weights [2][]float64
	for i := range weights {
		opt := j.RowOptions()
		if opt.Narrow {
			t.Fatal("few rows are kept without their curves")
		}
		opt.Narrow, opt.Formats = i == 1, source.Formats()
		tab, _, err := data.Read(t.Context(), &datatest.Gate{}, j.Schema, table, opt)
		if err != nil || tab.Blocks[0].Narrow() != opt.Narrow {
			t.Fatalf("the table has another form: %v", err)
		}
		meter, err := j.Meter()
		if err != nil {
			t.Fatal(err)
		}
		trainer := Trainer{Job: j, Table: tab, Meter: meter, Streams: noise.SeededStreams(3), Journal: NopJournal{}, Workers: 1 + i}
		file, err := trainer.Model(t.Context(), job.Guarantee{Budget: j.Spec.Privacy.Budget()})
		if err != nil {
			t.Fatal(err)
		}
		weights[i] = file.W
	}
	if !slices.Equal(weights[0], weights[1]) {
		t.Error("the models differ")
	}
	for rows, narrow := range map[int]bool{200_000: false, 1<<27/prepared(200_000).Schema.Dim() + 1: true, 3_000_000: true} {
		if j := prepared(rows); j.RowOptions().Narrow != narrow {
			t.Errorf("%d declared rows of %d features: narrow %v", rows, j.Schema.Dim(), !narrow)
		}
	}
}
