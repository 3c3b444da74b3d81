package job

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"
)

func TestComparisonBlock(t *testing.T) {
	got, err := parseComparison("dir/c.yaml", []byte(`compare:
  methods: [sgd, {label: "a: b", name: sgd, steps: 5}]
  epsilon: [0.1, none]
  seeds: 3
  split: 0.5
  tables: [{name: x, schema: s.yaml, data: a.csv, model: {name: svm}}, {data: [/b.csv, "d.db?table=t"], delta: 1e-9}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.Methods {
		for j := range got.Methods[i] {
			got.Methods[i][j].From = ""
		}
	}
	got.Tables[0].Model[0].From = ""
	want := Comparison{
		Methods: []Settings{{{Path: "name", Value: "sgd"}}, {{Path: "label", Value: `"a: b"`}, {Path: "name", Value: "sgd"}, {Path: "steps", Value: "5"}}},
		Epsilon: []string{"0.1", "none"}, Seeds: 3, Split: 0.5,
		Tables: []TableSpec{{Name: "x", Schema: filepath.Join("dir", "s.yaml"), Data: []string{filepath.Join("dir", "a.csv")}, Model: Settings{{Path: "name", Value: "svm"}}},
			{Data: []string{"/b.csv", filepath.Join("dir", "d.db") + "?table=t"}, Delta: "1e-9"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v\nwant %+v", got, want)
	}
	if label, _ := got.Methods[1].Take("label"); label != "a: b" || len(got.Methods[1]) != 2 {
		t.Errorf("label %q, left %v", label, got.Methods[1])
	}
}

// Mistakes in the block are told with their place.
func TestComparisonErrors(t *testing.T) {
	for src, want := range map[string]string{
		"compare: 3":                            "c.yaml:1:10: compare: found 3; write a block of fields",
		"compare: {seeds: 1.5}":                 "c.yaml:1:18: compare.seeds: found 1.5; write a whole number",
		"compare: {speed: 1}":                   `c.yaml:1:11: unknown field "speed"; the fields of compare are methods, epsilon, seeds, split, folds, rows, tables`,
		"compare: {methods: [[sgd]]}":           "c.yaml:1:21: compare.methods[0]: found a list; expected a name or a block of fields",
		"compare: {methods: [{name: {a: b}}]}":  "c.yaml:1:28: compare.methods[0].name: found a block; expected text, a number, true or false",
		"compare: {tables: [{data: {a: b}}]}":   "c.yaml:1:27: compare.tables[0].data: found a block; expected text",
		"compare: {tables: [{colour: blue}]}":   `c.yaml:1:21: unknown field "colour"; the fields of compare.tables[0] are name, schema, data, labels, test, test_labels, rows, model, delta`,
		"compare: {epsilon: [0.1, [0.2, 0.3]]}": "c.yaml:1:26: compare.epsilon[1]: found a list; expected text",
	} {
		_, err := parseComparison("c.yaml", []byte(src))
		var input *InputError
		if !errors.As(err, &input) || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%s", src, err, want)
		}
	}
}
