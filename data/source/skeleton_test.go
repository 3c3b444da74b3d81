package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/schema"
)

func TestSkeleton(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "people.csv")
	os.WriteFile(path, []byte("\ufeffage;\"job; kind\";y\r\n39;SECRET123;no\n"), 0o600)
	b, err := source.Skeleton(context.Background(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{`dataset: "people"`, `delimiter: ";"`, `name: "age"`, `name: "job; kind"`, `- {name: "y", type: } # numeric, categorical, ordinal, boolean, date, text, label, unit or ignore`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "SECRET") || strings.Contains(text, "39") {
		t.Errorf("values of a row in\n%s", text)
	}
	if _, err := schema.Parse("s", b); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("a skeleton that was not filled in: %v", err)
	}

	wide := filepath.Join(dir, "people.csv.zst") // by its bytes UTF-16, not zstd
	os.WriteFile(wide, []byte("\xff\xfea\x00;\x00\xe9\x00\n\x00"), 0o600)
	if b, err := source.Skeleton(context.Background(), wide, ""); err != nil || !strings.Contains(string(b), `dataset: "people"`) || !strings.Contains(string(b), `name: "é"`) {
		t.Errorf("UTF-16: %v\n%s", err, b)
	}

	// Filled in, it is a schema.
	filled := strings.Replace(text, "rows: #", "rows: 10 #", 1)
	for _, fill := range []string{"numeric, min: 0, max: 9}", "categorical, levels: [a]}", "label, classes: [no, yes]}"} {
		filled = strings.Replace(filled, "type: }", "type: "+fill, 1)
	}
	if s := parse(t, filled); s.Dim() != 3 {
		t.Errorf("dim %d", s.Dim())
	}

	for name, content := range map[string]string{
		"empty": "", "row": "39,SECRET123\n", "svm": "-1 3:1 7:1\n", "json": "{\"a\": \"SECRET123\", \"b\": 1}\n", "json behind spaces": " \t{\"a\": \"SECRET123\", \"b\": 1}\n", "binary": "a,\x00b\n", "blank": "\na,b\n", "gz": "\x1f\x8b",
	} {
		p := filepath.Join(dir, name)
		os.WriteFile(p, []byte(content), 0o600)
		_, err := source.Skeleton(context.Background(), p, "")
		var e *config.Error
		if !errors.As(err, &e) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSkeletonOfOthers: a file that is no table gets no skeleton, but is named.
func TestSkeletonOfOthers(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"page.html", "<!DOCTYPE html>\n<html>", "looks like an HTML page, not a table; give a table of text, Parquet, Arrow or SQLite"},
		{"page.csv", " <html><body>SECRET</body></html>\n", "looks like an HTML page"},
		{"page.csv", "<table border=1>\n", "looks like an HTML page"},
		{"t.xml", "\ufeff<?xml version=\"1.0\"?>\n", "looks like an XML file"},
		{"d.pdf", "%PDF-1.4\n%\xe2\xe3\n", "looks like a PDF file"},
		{"d.rtf", "{\\rtf1\\ansi\n", "looks like an RTF document"},
		{"p.png", "\x89PNG\r\n\x1a\n", "looks like an image"},
		{"spec.yaml", "# SECRET, a comment\ndata: x\n", "looks like a spec or a schema (YAML)"},
		{"spec", "data: SECRET.csv\nschema: s.yaml\n", "looks like a spec or a schema (YAML)"},
		{"spec", "privacy: {epsilon: 1, delta: 1e-6}\n", "looks like a spec or a schema (YAML)"},
		{"schema", "columns:\n", "looks like a spec or a schema (YAML)"},
		{"dump.sql", "INSERT INTO p VALUES(41,\"SECRET123\");\n", "the file is an SQL dump; load it"},
		{"dump", "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", "the file is an SQL dump"},
		{"pg.sql", "--\n-- PostgreSQL database dump\n", "the file is an SQL dump"},
		{"excel.csv", "sep=;\na;b\n", "the line says sep=, which Excel alone reads; remove it"},
		{"t.csv", "a\x00,\x00b\x00\n\x00", "found text in UTF-16 without a byte order mark; expected a text file in UTF-8"},
		{"t.csv", "\x00a\x00,\x00b\x00\n", "found text in UTF-16 without a byte order mark"},
		{"t.csv", "a\x00\x00\x00,\x00\x00\x00b\x00\x00\x00\n\x00\x00\x00", "found text in UTF-32; expected a text file in UTF-8"},
		{"t.csv", "\xff\xfe\x00\x00a\x00\x00\x00,\x00\x00\x00b\x00\x00\x00\n\x00\x00\x00", "found text in UTF-32"},
		{"t.csv", "\x00\x00\x00a\x00\x00\x00,\x00\x00\x00b\x00\x00\x00\n", "found text in UTF-32"},
		{"t.csv", "a,caf\xe9\n", "found bytes that are not text in UTF-8 (Latin-1 or Windows-1252?)"},
		{"t.csv", "a,\x00b\n", "found bytes that are not text (a binary file?)"},
		{"t.csv", strings.Repeat("\x00", 400), "found bytes that are not text (a binary file?)"},
		{"t.csv", "\x7fELF\x02\x01\n", "found a header with a control character"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Skeleton(context.Background(), path, ""); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	for _, header := range []string{"time: s,value", "a:b,c", "sep=;x,y", "data: x,y", "<5,>5", "#id,name"} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(header+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Skeleton(context.Background(), path, ""); err != nil {
			t.Errorf("%s: %v", header, err)
		}
	}
}
