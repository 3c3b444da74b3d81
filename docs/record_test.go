package docs

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
)

const recordSchema = "record.schema.json"

// TestRecordSchema: docs/record.schema.json is what the types of package record say, with their comments, and every number has a unit.
func TestRecordSchema(t *testing.T) {
	w := &recordWriter{T: t, defs: jsonSchema{}, comments: map[string]string{}}
	for _, dir := range []string{"record", "run/runlog", "privacy", "privacy/account", "ledger"} {
		w.read(filepath.Join("..", filepath.FromSlash(dir)))
	}
	s := w.object(reflect.TypeFor[record.Record]())
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", "https://github.com/sottodp/sotto/blob/main/docs/"+recordSchema
	s["title"] = "What is known of a run, format " + record.Format
	s["description"] = "What `sotto report RUN --json` prints: all that pages about a run show, as numbers and words."
	s["properties"].(jsonSchema)["format"] = jsonSchema{"const": record.Format}
	s["$defs"] = w.defs
	current(t, map[string]string{recordSchema: s.text(t)})
}

// A recordWriter makes the schema of structs from their types, tags and comments.
type recordWriter struct {
	*testing.T
	defs     jsonSchema        // of named structs, by their names
	comments map[string]string // by type and field
}

// read takes the comments of a package's fields.
func (w *recordWriter) read(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			w.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			of, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					said := strings.TrimSpace(field.Doc.Text() + field.Comment.Text())
					w.comments[f.Name.Name+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(strings.ReplaceAll(said, "nil", "null")), " ")
				}
			}
			return false
		})
	}
}

// object is the schema of a struct.
func (w *recordWriter) object(t reflect.Type) jsonSchema {
	properties, required := jsonSchema{}, []string{}
	w.fields(t, func(f reflect.StructField) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := w.value(f.Type, f.Tag.Get("unit") != "" || f.Type.Kind() == reflect.Struct || name == "seq", f.Name)
		said := w.comments[t.String()+"."+f.Name]
		for _, tag := range []string{"source", "unit"} {
			if v := f.Tag.Get(tag); v != "" {
				said = strings.TrimPrefix(fmt.Sprintf("%s [%s: %s]", said, tag, v), " ")
			}
		}
		if said != "" {
			p["description"] = said
		}
		properties[name] = p
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	})
	return jsonSchema{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}

// fields calls f with each field that JSON has, those of embedded structs included.
func (w *recordWriter) fields(t reflect.Type, f func(reflect.StructField)) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			w.fields(field.Type, f)
		} else if field.Tag.Get("json") != "-" {
			f(field)
		}
	}
}

// value is the schema of a type; unit says that the field that holds it has one.
func (w *recordWriter) value(t reflect.Type, unit bool, name string) jsonSchema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return jsonSchema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return jsonSchema{}
	case reflect.TypeFor[privacy.Adjacency]():
		return jsonSchema{"enum": []string{privacy.AddRemove.String(), privacy.ReplaceOne.String()}}
	case reflect.TypeFor[record.Bound]():
		w.needs(unit, name)
		return jsonSchema{"type": []string{"number", "null"}}
	case reflect.TypeFor[[]byte]():
		return jsonSchema{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.String:
		return jsonSchema{"type": "string"}
	case reflect.Bool:
		return jsonSchema{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		w.needs(unit, name)
		return jsonSchema{"type": "integer"}
	case reflect.Float64:
		w.needs(unit, name)
		return jsonSchema{"type": "number"}
	case reflect.Pointer:
		return jsonSchema{"anyOf": []jsonSchema{w.value(t.Elem(), unit, name), {"type": "null"}}}
	case reflect.Slice:
		items := w.value(t.Elem(), unit, name)
		if t == reflect.TypeFor[record.Bounds]() {
			items = jsonSchema{"type": []string{"number", "null"}}
		}
		return jsonSchema{"type": "array", "items": items}
	case reflect.Struct:
		is := strings.TrimPrefix(t.String(), "record.")
		if w.defs[is] == nil {
			w.defs[is] = w.object(t)
		}
		return jsonSchema{"$ref": "#/$defs/" + is}
	}
	w.Errorf("%s: a record has no %v", name, t)
	return nil
}

func (w *recordWriter) needs(unit bool, name string) {
	if !unit {
		w.Errorf("the number %s of a record has no unit; give its field a tag unit:\"…\"", name)
	}
}
