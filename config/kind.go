package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kinds are file formats that people give by mistake, by their first bytes.
var kinds = []struct {
	magic, name string
	table       bool
}{
	{"\x1f\x8b", "gzip", true},
	{"\x28\xb5\x2f\xfd", "zstd", true},
	{"PK\x03\x04", "a zip file or a workbook", true},
	{"\xd0\xcf\x11\xe0", "a workbook", true},
	{"PAR1", "Parquet", true},
	{"ARROW1", "Arrow", true},
	{"\xff\xff\xff\xff", "Arrow", true},
	{"SQLite format 3\x00", "SQLite", true},
	{"\x93SOTTO", "a packed table", true},
	{"%PDF-", "a PDF file", false},
	{"\x89PNG", "an image", false},
	{"\xff\xd8\xff", "an image", false},
	{"GIF8", "an image", false},
	{`{\rtf`, "an RTF document", false},
}

// markups are beginnings of text, in lower case.
var markups = []struct{ magic, name string }{
	{"<!doctype html", "an HTML page"}, {"<html", "an HTML page"}, {"<head", "an HTML page"}, {"<body", "an HTML page"},
	{"<table", "an HTML page"},
	{"<?xml", "an XML file"}, {"<svg", "an XML file"}, {"<!--", "an HTML page or an XML file"},
	{"<!doctype", "an XML file"},
}

// Form is the form of a file that begins with head, as "a PDF file", if it is one that neither a document nor a table
// of text has; "" for others. table: it may be a table.
func Form(head []byte) (name string, table bool) {
	for _, k := range kinds {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.name, k.table
		}
	}
	text := bytes.ToLower(bytes.TrimSpace(head[:min(len(head), 256)]))
	for _, m := range markups {
		if bytes.HasPrefix(text, []byte(m.magic)) {
			return m.name, false
		}
	}
	return "", false
}

// textTable is the form of a table of text, as "a JSON array"; "" if it does not look like one.
func textTable(src []byte) string {
	var lines []string
	for line := range strings.Lines(string(src[:min(len(src), 64<<10)])) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
		if len(lines) == 2 {
			break
		}
	}
	switch text := bytes.TrimSpace(src); {
	case len(lines) == 0:
	case text[0] == '[':
		return "a JSON array"
	case len(lines) == 2 && text[0] == '{' && strings.HasPrefix(lines[1], "{") && json.Valid([]byte(lines[0])):
		return "JSON Lines"
	case len(lines) == 2 && !fieldLine.MatchString(lines[0]):
		for _, d := range []string{",", ";", "\t", "|"} {
			if n := strings.Count(lines[0], d); n > 0 && n == strings.Count(lines[1], d) {
				return "rows of text"
			}
		}
	}
	return ""
}

var fieldLine = regexp.MustCompile(`^[\w-]+:`) // of a document

// own lists, for each document of Sotto, fields that no other document has.
var own = map[string][]string{
	"a spec":   {"data", "schema", "model", "method", "privacy", "compare", "tune", "network"},
	"a schema": {"dataset", "rows", "units", "row_norm", "other_columns", "on_bad_row", "image", "features"},
}

// forTables says what to do with a table that stands where a document should.
func (d *Document) forTables() string {
	if d.what == "a schema" {
		return "pass it with --data; `sotto schema init` writes a schema from its header"
	}
	return "name it in a spec under data, or pass it with --data beside --schema and --model"
}

// notTable is the error of a table that stands where a document should.
func (d *Document) notTable(form string) *Error {
	if form != "" {
		form = " (" + form + ")"
	}
	return &Error{File: d.file, Err: fmt.Errorf("the file looks like a table%s, not %s; %s", form, d.what, d.forTables())}
}

// notText is the error of bytes that are not UTF-8, or have a NUL.
func (d *Document) notText(src []byte) *Error {
	if bytes.ContainsFunc(src, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) }) {
		return &Error{File: d.file,
			Err: fmt.Errorf("the file is binary, not %s; if it is a table, %s", d.what, d.forTables())}
	}
	return &Error{File: d.file, Err: errors.New("the file is not in UTF-8; save it as UTF-8")}
}

// otherForm is the error of a text that is no document, if it has another form that is known, and otherwise nil.
func (d *Document) otherForm(src []byte) error {
	form, table := Form(src)
	if form == "" {
		form = textTable(src)
		table = form != ""
	}
	switch {
	case d.file == "" || form == "":
		return nil
	case table:
		return d.notTable(form)
	}
	return &Error{File: d.file,
		Err: fmt.Errorf("the file looks like %s, not %s; write %[2]s in YAML, as examples/clinic has one", form, d.what)}
}

// otherKind is the error of another document than d should be; nil if it may be that one.
func (d *Document) otherKind() error {
	has := func(name string) bool { path := join(d.base, name); return d.Has(path) && !d.Given(path) }
	mine, known := own[d.what]
	if !known || d.file == "" {
		return nil
	}
	format := ""
	if v := field(d.root, "format"); v != nil {
		format, _ = scalar(v.Value)
	}
	switch {
	case strings.HasPrefix(format, "sotto-"):
		return &Error{File: d.file, Err: fmt.Errorf("this is a file that Sotto wrote (%s), not %s", Quote(format), d.what)}
	case slices.ContainsFunc(mine, has):
	case d.what == "a spec" && slices.ContainsFunc(own["a schema"], has):
		return &Error{File: d.file,
			Err: errors.New("this is a schema, not a spec; name it in a spec under schema, or pass it with --schema beside --data and --model")}
	case d.what == "a schema" && slices.ContainsFunc(own["a spec"], has):
		return &Error{File: d.file,
			Err: errors.New("this is a spec, not a schema; pass the file that its field schema names")}
	}
	return nil
}
