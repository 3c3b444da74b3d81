package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

const specPage = "reference/spec.md"

// The JSON schemas of spec files and of schema files, for editors.
const (
	specEditor   = "reference/spec.schema.json"
	schemaEditor = "reference/table.schema.json"
)

var fieldTable = regexp.MustCompile(`(?m)^\| field \| type \| default \| meaning \|\n(\|.*\n)+`)

// withTable is the page with the table of a block under its heading.
func withTable(t *testing.T, page string, b config.Block) string {
	t.Helper()
	text := "| field | type | default | meaning |\n|---|---|---|---|\n"
	for _, f := range b.Fields {
		text += "| `" + f.Name + "`"
		for _, cell := range []string{f.Type, f.Default, f.Doc} {
			text += " | " + strings.ReplaceAll(cell, "|", `\|`)
		}
		text += " |\n"
	}
	start := strings.Index(page, "\n### "+b.Title+"\n")
	if start < 0 {
		t.Fatalf("docs/%s has no section for the fields of %s; write\n\n### %s\n\nwhat it is for, with an example, "+
			"and\n\n| field | type | default | meaning |\n|---|---|---|---|\n\nThen run go test ./docs -run TestFields -update", specPage,
			b.Title, b.Title)
	}
	own := page[start+1:]
	if end := regexp.MustCompile(`\n##+ `).FindStringIndex(own); end != nil {
		own = own[:end[0]+1]
	}
	at := fieldTable.FindStringIndex(own)
	if at == nil {
		t.Fatalf("docs/%s has no table of fields under %q; write\n\n| field | type | default | meaning |\n|---|---|---|---|\n\nand run "+
			"go test ./docs -run TestFields -update", specPage, b.Title)
	}
	return page[:start+1+at[0]] + text + page[start+1+at[1]:]
}

var crossingTable = regexp.MustCompile(`(?m)^\| where \| field \| beside, or the value \| why \|\n(\|.*\n)+`)

// withCrossings is the table of what does not go together.
func withCrossings() string {
	text := "| where | field | beside, or the value | why |\n|---|---|---|---|\n"
	for _, c := range job.Crossings() {
		where := "everywhere"
		for i, in := range c.In {
			if where = strings.TrimPrefix(where, "everywhere"); i > 0 {
				where += ", "
			}
			where += string(in)
		}
		text += fmt.Sprintf("| %s | `%s` | %s | %s |\n", where, c.Field, c.With, c.Why)
	}
	return text
}

// TestFields: the tables of docs/reference/spec.md and the JSON schemas beside it are what job.Fields and schema.Fields say.
func TestFields(t *testing.T) {
	page := read(t, specPage)
	for _, b := range slices.Concat(job.Fields(), schema.Fields()) {
		page = withTable(t, page, b)
	}
	page = crossingTable.ReplaceAllStringFunc(page, func(string) string { return withCrossings() })
	files := map[string]string{specPage: page}
	for name, s := range map[string]jsonSchema{specEditor: specSchema(), schemaEditor: tableSchema()} {
		files[name] = s.text(t)
	}
	current(t, files)
}

// text is the schema as its file.
func (s jsonSchema) text(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// current fails where a file is not the text that follows from the code; with -update it writes the file.
func current(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := os.ReadFile(name); err != nil {
			t.Error(err)
		} else if string(b) != text {
			t.Errorf("docs/%s is not what the code says; write it again: go test ./docs -run %s -update", name, t.Name())
		}
	}
}

type jsonSchema map[string]any

// object is the JSON schema of a block; blocks are those inside.
func object(fields []config.Field, required bool, blocks jsonSchema) jsonSchema {
	properties, needed := jsonSchema{}, []string{}
	for _, f := range fields {
		p := jsonSchema{"description": fmt.Sprintf("%s (%s; default: %s)", schema.Plain(f.Doc), schema.Plain(f.Type), schema.Plain(f.Default))}
		if f.Default == "required" {
			p["description"] = fmt.Sprintf("%s (%s)", schema.Plain(f.Doc), schema.Plain(f.Type))
			needed = append(needed, f.Name)
		}
		if b, ok := blocks[f.Name]; ok {
			p["anyOf"] = b
		} else if len(f.Values) > 0 {
			p["enum"] = f.Values
		} else {
			p["anyOf"] = kinds(f.Type)
		}
		properties[f.Name] = p
	}
	s := jsonSchema{"type": "object", "properties": properties, "additionalProperties": false}
	if required && len(needed) > 0 {
		s["required"] = needed
	}
	return s
}

var scalar = jsonSchema{"type": []string{"string", "number", "boolean"}} // text needs no quotes

// kinds are the JSON schemas of a type as the tables say it.
func kinds(kind string) (all []jsonSchema) {
	if kind == "true or false" {
		return []jsonSchema{{"type": "boolean"}}
	}
	for _, part := range regexp.MustCompile(`,? or `).Split(kind, -1) {
		var s jsonSchema
		switch {
		case strings.Contains(part, "list of paths"), strings.Contains(part, "list of texts"):
			s = jsonSchema{"type": "array", "items": scalar}
		case strings.Contains(part, "list"):
			s = jsonSchema{"type": "array"}
		case strings.Contains(part, "by class"), strings.Contains(part, "block"):
			s = jsonSchema{"type": "object"}
		case strings.Contains(part, "whole number"):
			s = jsonSchema{"type": "integer"}
		case strings.Contains(part, "number"):
			s = jsonSchema{"type": "number"}
		default:
			s = scalar
		}
		all = append(all, s)
	}
	return all
}

func blocksOf(all []config.Block) map[string][]config.Field {
	blocks := map[string][]config.Field{}
	for _, b := range all {
		blocks[b.Title] = b.Fields
	}
	return blocks
}

// head begins a JSON schema.
func head(s jsonSchema, title string) jsonSchema {
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", title
	return s
}

// specSchema requires nothing: flags may give what a file leaves out.
func specSchema() jsonSchema {
	blocks := blocksOf(job.Fields())
	var methods []string
	var each []jsonSchema
	for _, e := range method.Registry() {
		methods = append(methods, e.Name)
		own := []config.Field{config.NewField("name", "text", "auto", e.About, e.Name)}
		for _, f := range e.Fields() {
			if kind := map[string]string{"int": "whole number", "float64": "number", "bool": "true or false"}[f.Type]; f.Name != "-" && kind != "" {
				own = append(own, config.NewField(f.Name, kind, "chosen by the method", f.Doc))
			} else if f.Name != "-" {
				own = append(own, config.NewField(f.Name, "text", "chosen by the method", f.Doc))
			}
		}
		is := jsonSchema{"properties": jsonSchema{"name": jsonSchema{"const": e.Name}}}
		if e.Name != method.Default {
			is["required"] = []string{"name"}
		}
		each = append(each, jsonSchema{"if": is, "then": object(own, false, nil)})
	}
	chosen := jsonSchema{"type": "object", "properties": jsonSchema{"name": jsonSchema{"enum": methods}}, "allOf": each}
	models := object(blocks["Block `model`"], false, nil)
	models["properties"].(jsonSchema)["name"].(jsonSchema)["examples"] = model.Names()
	var statements []config.Field
	for _, name := range fields(runlog.Statements{}) {
		statements = append(statements, config.NewField(name, "text", "none", "what only a person knows, for a disclosure"))
	}
	return head(object(blocks["Top level"], false, jsonSchema{
		"model": []jsonSchema{models}, "method": []jsonSchema{chosen, {"enum": methods}}, "disclosure": []jsonSchema{object(statements, false, nil)},
		"privacy": []jsonSchema{object(blocks["Block `privacy`"], false, nil), {"const": "none"}},
	}), "A spec of Sotto")
}

func tableSchema() jsonSchema {
	blocks := blocksOf(schema.Fields())
	var types []string
	var columns []jsonSchema
	for _, c := range schema.ColumnTypes() {
		types = append(types, c.Name)
		columns = append(columns, jsonSchema{"if": jsonSchema{"properties": jsonSchema{"type": jsonSchema{"const": c.Name}}}, "then": object(blocks["Columns of type `"+c.Name+"`"], true, nil)})
	}
	column := jsonSchema{"type": "object", "properties": jsonSchema{"type": jsonSchema{"enum": types}}, "required": []string{"type"},
		"anyOf": []jsonSchema{{"required": []string{"name"}}, {"required": []string{"names"}}}, "allOf": columns}
	return head(object(blocks["Top level of the schema"], true, jsonSchema{
		"unit": []jsonSchema{object(blocks["Block `unit`"], true, nil), {"const": "record"}}, "format": []jsonSchema{object(blocks["Block `format`"], true, nil)},
		"image": []jsonSchema{object(blocks["Block `image`"], true, nil)}, "columns": []jsonSchema{{"type": "array", "items": column}},
	}), "A schema of Sotto: what is publicly known of a table")
}

// TestEditors: the JSON schemas take the files of examples/, and find mistakes.
func TestEditors(t *testing.T) {
	compiled := map[string]*jsonschema.Schema{}
	for _, name := range []string{specEditor, schemaEditor} {
		s, err := jsonschema.NewCompiler().Compile(name)
		if err != nil {
			t.Fatal(err)
		}
		compiled[name] = s
	}
	check := func(name, text string) error {
		t.Helper()
		text = regexp.MustCompile(`([ :])(\d+)(\.\d*)?e(-?\d+)`).ReplaceAllString(text, "${1}0.0${2}") // a number in YAML 1.2, though not for this library
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(b))
		return errors.Join(err, compiled[name].Validate(v))
	}
	tried := 0
	for _, file := range globs(t, "../examples/*/*.yaml", "../cli/testdata/*/*.yaml") {
		text, name := read(t, file), specEditor
		if regexp.MustCompile(`(?m)^dataset:`).MatchString(text) {
			name = schemaEditor
		}
		if err := check(name, text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		tried++
	}
	if tried < 8 {
		t.Errorf("only %d files were tried", tried)
	}
	const label = "{name: y, type: label, classes: [a, b]}"
	for text, name := range map[string]string{
		"modle: {name: logistic}\n":          specEditor,
		"privacy: {adjacency: add}\n":        specEditor,
		"method: {name: sgd, stepps: 3}\n":   specEditor,
		"method: {name: sgd, steps: many}\n": specEditor,
		"dataset: d\ncolumns: [{name: a, type: numeric, min: 0, max: 1, levels: [a]}]\n": schemaEditor,
		"dataset: d\ncolumns: [{name: a, type: number}]\n":                               schemaEditor,
		"dataset: d\ncolumns: [{name: a, type: categorical}, " + label + "]\n":           schemaEditor,
		"columns: [" + label + "]\n":                                                     schemaEditor,
		"dataset: d\nformat: {kind: excel}\ncolumns: [" + label + "]\n":                  schemaEditor,
	} {
		if check(name, text) == nil {
			t.Errorf("%s takes\n%s", name, text)
		}
	}
}

func globs(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}
