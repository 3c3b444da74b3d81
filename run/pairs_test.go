package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// crossed writes a table whose label follows from two columns together and from neither by itself, rows of it to test on, and its schema.
func crossed(t *testing.T, rows int) (schema, table, test string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	draw := func(rows int) string {
		var b strings.Builder
		b.WriteString("x,z,y,same\n")
		for range rows {
			x, y := 2*rnd.Float64()-1, 10*rnd.Float64()
			same := "no"
			if (x > 0) == (y > 5) {
				same = "yes"
			}
			fmt.Fprintf(&b, "%.4f,%.4f,%.4f,%s\n", x, rnd.Float64(), y, same)
		}
		return b.String()
	}
	schema = file("schema.yaml", fmt.Sprintf("dataset: crossed\nrows: %d\ncolumns:\n  - {name: x, type: numeric, min: -1, max: 1}\n  - {name: z, type: numeric, min: 0, max: 1}\n  - {name: y, type: numeric, min: 0, max: 10}\n  - {name: same, type: label, classes: [\"no\", \"yes\"]}\n", rows))
	return schema, file("train.csv", draw(rows)), file("test.csv", draw(2000))
}

// TestPairsAreFitted: a pair lets a model see what its two columns do together. Its run verifies, its files have the pair, and the
// model scores rows as the run did. Without the pair nothing is better than chance. Noise is seeded.
func TestPairsAreFitted(t *testing.T) {
	t.Parallel()
	schema, table, test := crossed(t, 5000)
	set := func(path, value string) Override { return Override{Path: path, Value: value, From: "test"} }
	over := []Override{set("data", table), set("test", test), set("schema", schema), set("lab", "true"), set("seed", "3"), set("privacy.epsilon", "10")}
	for _, c := range []struct {
		method, pairs string
		least, most   float64
	}{
		{"auto", "[[x, y]]", 0.9, 1}, {"sgd", "[[x, y]]", 0.85, 1}, {"newton", "[[y, x]]", 0.85, 1},
		{"auto", "[[x, z], [z, y]]", 0, 0.56}, {"auto", "none", 0, 0.56},
	} {
		job := fitAndVerify(t, c.method, append(over, set("pairs", c.pairs)))
		trained, err := LoadModel(job.Spec.Out)
		if err != nil {
			t.Fatal(err)
		}
		pairs := strings.Count(c.pairs, ",") - strings.Count(c.pairs, "], [")
		if len(trained.Schema.Pairs) != pairs || trained.File.Dim != trained.Schema.Dim() || strings.Contains(job.Encoding, "pairs of") != (pairs > 0) {
			t.Errorf("%s, %s: %v, %d parameters; %s", c.method, c.pairs, trained.Schema.Pairs, trained.File.Dim, job.Encoding)
		}
		again, err := trained.Evaluate(t.Context(), test, Evaluation{Ledger: job.Spec.Ledger, Unprotected: true})
		if err != nil {
			t.Fatal(err)
		}
		info, err := runlog.ReadInfo(job.Spec.Out)
		if err != nil {
			t.Fatal(err)
		}
		if got := *info.Result.Test.Accuracy; got < c.least || got > c.most || got != *again.Accuracy || info.Result.Test.LogLoss == nil || *info.Result.Test.LogLoss != *again.LogLoss {
			t.Errorf("%s, %s: accuracy %v in the run, %v by the model", c.method, c.pairs, got, *again.Accuracy)
		}
		t.Logf("%s, %s: accuracy %v", c.method, c.pairs, *info.Result.Test.Accuracy)
	}
}

// TestPairsField: pairs of a spec are those of a run and of what searches, comparisons, networks and workers take; what cannot have
// them says so where they are written.
func TestPairsField(t *testing.T) {
	t.Parallel()
	schema, _, _ := crossed(t, 3000)
	dir := t.TempDir()
	loaded, err := data.LoadSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own.yaml")
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, append(text, "pairs: [[z, x]]\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "t.sotto")
	if err := data.PackTable(loaded.WithHats(0), data.Empty(loaded.WithHats(0)), packed); err != nil {
		t.Fatal(err)
	}
	svm := filepath.Join(dir, "svm.yaml")
	if err := os.WriteFile(svm, []byte("dataset: d\nrows: 3000\nformat: {kind: libsvm}\nfeatures: 4\ncolumns: [{name: x, type: label, classes: ['0', '1']}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const head = "model: {name: logistic}\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n"
	for text, want := range map[string]string{ // the encoding, or an error
		"schema: " + schema + "\npairs: [[x, y], [z, x]]":                       "pairs of columns: x × y, z × x",
		"schema: " + schema + "\npairs:\n  - [x, y]\n  - [z, x]":                "pairs of columns: x × y, z × x",
		"schema: " + schema + "\npairs: none":                                   "",
		"schema: " + own:                                                        "pairs of columns: z × x",
		"schema: " + own + "\npairs: none":                                      "pairs of columns: z × x",
		"schema: " + own + "\npairs: [[x, y]]":                                  "s.yaml:4:8: pairs: the schema has pairs of its own; leave them out here, or there",
		"schema: " + own + "\ncolumns: 1":                                       "numeric columns",
		"schema: " + schema + "\npairs: [[x, w]]":                               `s.yaml:4:13: pairs[0][1]: the schema has no column "w"; choose one of its numeric columns`,
		"schema: " + schema + "\npairs: [[x, same]]":                            `s.yaml:4:13: pairs[0][1]: the column "same" is of type label; choose a numeric column`,
		"schema: " + schema + "\npairs: [[x, z], [y, y]]":                       `s.yaml:4:17: pairs[1]: the column "y" is paired with itself`,
		"schema: " + schema + "\npairs: [[x, z], [z, x]]":                       `s.yaml:4:17: pairs[1]: the columns "z" and "x" are paired twice`,
		"schema: " + schema + "\npairs: [[x, z]]\ncolumns: 1":                   `s.yaml:4:13: pairs[0][1]: the field columns leaves the column "z" out; choose one that it keeps, or write columns: all`,
		"schema: " + schema + "\npairs: [[x, z]]\ncolumns: 2":                   "pairs of columns: x × z",
		"schema: " + schema + "\npairs: [['', '']]":                             `s.yaml:4:9: pairs[0]: found`,
		"schema: " + schema + "\npairs: auto":                                   `s.yaml:4:8: pairs: found "auto"; write none, or a list`,
		"schema: " + schema + "\npairs: [x, z]":                                 `s.yaml:4:9: pairs[0]: found "x"; write the names of two columns, as in [age, hours]`,
		"schema: " + schema + "\npairs: [[x, z]]\ndata: " + packed:              "s.yaml:4:1: pairs: the table is packed, so its encoding is fixed; leave pairs out, or pack the table with a schema that has them",
		"schema: " + svm + "\npairs: [[x, z]]":                                  "s.yaml:4:8: pairs: tables of kind libsvm have no columns to pair; leave pairs out",
		"schema: " + schema + "\npairs: [[x, z]]\nmethod: {name: sgd}":          "pairs of columns",
		"schema: " + schema + "\npairs: [[x, z]]\nmethod: {name: sgd}\nhats: 4": "4 bumps beside each linear feature, as the spec says; pairs of columns: x × z",
	} {
		spec, err := job.ParseSpec("s.yaml", []byte(head+text), nil)
		var job *Job
		if err == nil {
			job, err = Prepare(spec)
		}
		if strings.Contains(want, "s.yaml") {
			wantInput(t, err, want)
			if spec != nil {
				_, err := spec.LoadSchema()
				wantInput(t, err, want)
			}
			continue
		}
		if err != nil || !strings.Contains(job.Encoding, want) || strings.Contains(job.Encoding, "pairs of") != strings.Contains(want, "pairs of") {
			t.Errorf("%s: %v, %+v", text, err, job)
			continue
		}
		if shared, err := spec.LoadSchema(); err != nil || len(shared.Pairs) != len(job.Schema.Pairs) || job.Facts.Dim != job.Schema.Dim() {
			t.Errorf("%s: shared tables have the pairs %v, %v", text, shared.Pairs, err)
		}
	}
	if _, err := LoadSpec("", []Override{{Path: "schema", Value: schema, From: "--schema"}, {Path: "pairs", Value: "[[x, y]", From: "--set pairs"}}); err == nil {
		t.Error("a broken list was taken")
	}
	spec, err := job.ParseSpec("s.yaml", []byte(head+"schema: "+schema), []Override{{Path: "pairs", Value: "[[x, w]]", From: "--set pairs"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Prepare(spec)
	wantInput(t, err, `--set pairs: pairs[0][1]: the schema has no column "w"`)
}
