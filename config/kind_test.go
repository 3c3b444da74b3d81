package config

import (
	"strings"
	"testing"
)

// TestOtherForms: a file of another form where a spec or a schema should be is named as that, with what to do, and not quoted.
func TestOtherForms(t *testing.T) {
	type fields struct {
		Data    string `yaml:"data"`
		Columns string `yaml:"columns"`
		Dataset string `yaml:"dataset"`
		Privacy Node   `yaml:"privacy"`
	}
	const (
		toSpec   = ", not a spec; name it in a spec under data, or pass it with --data beside --schema and --model"
		toSchema = ", not a schema; pass it with --data; `sotto schema init` writes a schema from its header"
	)
	for _, c := range []struct{ name, what, text, want string }{
		{"a.json", "a spec", `[{"SECRET":10,"b":"x"},{"SECRET":90}]`, "the file looks like a table (a JSON array)" + toSpec},
		{"a.json", "a schema", "[\n  [1, 2],\n  [3, 4]\n]", "the file looks like a table (a JSON array)" + toSchema},
		{"a.yaml", "a spec", "\ufeff[]", "the file looks like a table (a JSON array)" + toSpec},
		{"a.json", "a spec", `{"SECRET": 1, "b": 2}`, "the file looks like a table (a JSON object)" + toSpec},
		{"a.json", "a schema", "{\n \"SECRET\": {\"0\": 1}}", "the file looks like a table (a JSON object)" + toSchema},
		{"a.json", "a spec", "{\"SECRET\": 1}\n{\"SECRET\": 2}\n", "the file looks like a table (JSON Lines)" + toSpec},
		{"a.yaml", "a spec", "SECRET,b\n1,x\n", "the file looks like a table (rows of text)" + toSpec},
		{"a.yaml", "a schema", "\"SECRET\";\"b\"\n\"1,5\";\"x\"\n", "the file looks like a table (rows of text)" + toSchema},
		{"a.yaml", "a spec", "SECRET,b: c\n1,x\n", "the file looks like a table (rows of text)" + toSpec},
		{"a.yaml", "a spec", "SECRET\tb\n1\tx\n", "the file looks like a table (rows of text)" + toSpec},
		{"a.yaml", "a spec", "4711\n", "the file looks like a table" + toSpec},
		{"a.yaml", "a spec", "SECRET\n", "the file looks like a table" + toSpec},
		{"a.txt", "a spec", "SECRET: 1\n", "the file looks like a table" + toSpec},
		{"a.yaml", "a spec", "- SECRET\n- b\n", "found a list; expected a spec in YAML: a block of fields"},
		{"a.yaml", "a spec", "PAR1\x15\x04\x00", "the file looks like a table (Parquet)" + toSpec},
		{"a.yaml", "a spec", "\x1f\x8b\x08\x00", "the file looks like a table (gzip)" + toSpec},
		{"a.yaml", "a schema", "PK\x03\x04\x14\x00", "the file looks like a table (a zip file or a workbook)" + toSchema},
		{"a.yaml", "a spec", "SQLite format 3\x00", "the file looks like a table (SQLite)" + toSpec},
		{"a.yaml", "a spec", "%PDF-1.7\n%\xe2\xe3", "the file looks like a PDF file, not a spec; write a spec in YAML, as examples/clinic has one"},
		{"a.yaml", "a schema", "<!DOCTYPE html>\n<html>", "the file looks like an HTML page, not a schema; write a schema in YAML, as examples/clinic has one"},
		{"a.yaml", "a spec", "\x00\x00\x08\x03\xff", "the file is binary, not a spec; if it is a table, name it in a spec under data"},
		{"a.yaml", "a spec", "data: caf\xe9\n", "the file is not in UTF-8; save it as UTF-8"},
		{"a.yaml", "a spec", "dataset: SECRET\nrows: 5\ncolumns: [{name: SECRET}]\n", "this is a schema, not a spec; name it in a spec under schema, or pass it with --schema beside --data and --model"},
		{"a.yaml", "a spec", "columns: [{name: SECRET}]\nrows: 5\n", "this is a schema, not a spec;"},
		{"a.yaml", "a schema", "data: SECRET\nschema: s.yaml\n", "this is a spec, not a schema; pass the file that its field schema names"},
		{"a.yaml", "a schema", "privacy: {epsilon: 1}\n", "this is a spec, not a schema;"},
		{"a.json", "a spec", `{"format": "sotto-model/1", "schema": {}}`, `this is a file that Sotto wrote ("sotto-model/1"), not a spec`},
		{"a.yaml", "a spec", "data: x\nrows: 5\n", `a.yaml:2:1: unknown field "rows"; the fields are`},
		{"a.yaml", "a spec", "dta: x\n", `a.yaml:1:1: unknown field "dta"; the fields are`},
		{"a.yaml", "a spec", "data: x\nprivacy: {epsilon: 1\n", "a.yaml:2:10: found text that is not YAML"},
	} {
		doc, err := Parse(c.name, c.what, []byte(c.text))
		if err == nil {
			err = doc.Root().Decode(&fields{})
		}
		if !strings.HasPrefix(c.want, c.name) {
			c.want = c.name + ": " + c.want
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "4711") {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	doc, err := Parse("a.yaml", "a spec", []byte("dataset: d\nrows: 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Set("data", "t.csv", "--data"); err != nil {
		t.Fatal(err)
	}
	if err := doc.Root().Decode(&fields{}); err == nil || !strings.Contains(err.Error(), "this is a schema") {
		t.Errorf("beside a flag: %v", err)
	}
}
