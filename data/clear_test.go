package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestWrongForms: a file of another form, delimiter or compression is named as that, with what to do.
func TestWrongForms(t *testing.T) {
	pack := func(b string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		w.Write([]byte(b))
		w.Close()
		return out.String()
	}
	e, _ := zstd.NewWriter(nil)
	file := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const (
		table = "x,y\n0.5,1\n"
		array = `: the file is one JSON array; write it as JSON Lines, one object on each line`
		after = "bytes follow the end of the "
	)
	zst := string(e.EncodeAll([]byte(table), nil))
	semicolon := strings.Replace(fewRows, "row_norm: 1\n", "row_norm: 1\nformat: {delimiter: \";\"}\n", 1)
	bareRows := strings.Replace(fewRows, "row_norm: 1\n", "row_norm: 1\nformat: {header: false}\n", 1)
	for _, c := range []struct{ name, schema, text, want string }{
		{"array", fewRows, `[{"x":0.5,"y":"1"},{"x":1,"y":"0"}]`, array},
		{"array over lines", fewRows, "[\n  {\"x\": 0.5},\n", array},
		{"array of lists", fewRows, "\ufeff [[1, 2]]", array},
		{"no rows in an array", fewRows, "[]", array},
		{"array, compressed", fewRows, pack(`[{"x":0.5}]`), array},
		{"semicolons", fewRows, "x;y\n1;1\n", `:1: the header is separated by ";", not by ","; write format: {delimiter: ";"} in the schema`},
		{"semicolons and quotes", fewRows, "\"x\";\"y\"\r\n1;1\r\n", `:1: the header is separated by ";", not by ","`},
		{"tabs", fewRows, "x\ty\n1\t1\n", `:1: the header is separated by "\t", not by ","; write format: {delimiter: "\t"} in the schema`},
		{"tabs and quotes", fewRows, "\"x\"\t\"y\"\n", `:1: the header is separated by "\t", not by ","`},
		{"bars", fewRows, "x|y\n1|1\n", `:1: the header is separated by "|", not by ","`},
		{"bars and quotes", fewRows, "\"x\"|\"y\"\n", `:1: the header is separated by "|", not by ","`},
		{"commas", semicolon, "\"x\",\"y\"\n", `:1: the header is separated by ",", not by ";"`},
		{"other columns", fewRows, "a;b\n1;1\n", `:1: the header is separated by ";", not by ","; write format: {delimiter: ";"} in the schema`},
		{"other columns and quotes", fewRows, "\"a\";\"b\"\n\"10,5\";\"0\"\n", `:1: the header is separated by ";", not by ","`},
		{"other columns, commas within quotes", fewRows, "\"a, b, c\";\"d\"\n", `:1: the header is separated by ";", not by ","`},
		{"other columns and tabs", fewRows, "a\tb\n", `:1: the header is separated by "\t", not by ","`},
		{"other columns, tabs and quotes", fewRows, "\"a\"\t\"b\"\n", `:1: the header is separated by "\t", not by ","`},
		{"other columns, bars and quotes", fewRows, "\"a\"|\"b\"|c\n", `:1: the header is separated by "|", not by ","`},
		{"other columns and commas", semicolon, "\"a\",\"b\"\n", `:1: the header is separated by ",", not by ";"`},
		{"an open quote", fewRows, "\"a;b;c\n", `:1: the header is separated by ";", not by ","`},
		{"spaces", fewRows, "x y\n1 1\n", `:1: the header is separated by " ", not by ","`},
		{"colons", fewRows, "x:y\n1:1\n", `:1: the header is separated by ":", not by ","`},
		{"a name with a space", fewRows, "x of it,z\n", ":1: columns: found no columns x, y;"},
		{"other columns, same delimiter", fewRows, "\"a;1\",b\n", ":1: columns: found no columns x, y;"},
		{"semicolons of rows", bareRows, "1;1\n", `:1: found cells separated by ";"; expected cells separated by ",", or format: {delimiter: ";"} in the schema`},
		{"semicolons of rows with quotes", bareRows, "\"1,5\";\"1\"\n", `:1: found cells separated by ";"`},
		{"too few cells", bareRows, "1\n", `:1: found 1 cell in the row`},
		{"a page", fewRows, "<!DOCTYPE html>\n<html>", ": the file looks like an HTML page, not a table;"},
		{"a PDF", fewRows, "%PDF-1.4\n1 0 obj\n", ": the file looks like a PDF file, not a table;"},
		{"a spec", fewRows, "data: x.csv\nschema: s.yaml\n", ": the file looks like a spec or a schema (YAML), not a table;"},
		{"a line of Excel", semicolon, "sep=;\nx;y\n", ":1: the line says sep=, which Excel alone reads; remove it"},
		{"bytes after gzip, other columns", fewRows, pack("a,b\n1,1\n") + "more", ": " + after + "gzip data"},
		{"bytes after gzip, semicolons", fewRows, pack("a;b\n1;1\n") + "more", ": " + after + "gzip data"},
		{"bytes after zstd, other columns", fewRows, string(e.EncodeAll([]byte("a,b\n1,1\n"), nil)) + "more", ": " + after + "zstd data"},
		{"cut gzip, other columns", fewRows, pack("a,b\n1,1\n")[:18], ": found a gzip file that ends too early"},
		{"bytes after gzip", fewRows, pack(table) + "more", ": " + after + "gzip data; remove them, or compress the table again"},
		{"zeros after gzip", fewRows, pack(table) + "\x00\x00", ": " + after + "gzip data"},
		{"a byte after gzip", fewRows, pack(table) + "\n", ": " + after + "gzip data"},
		{"a cut member after gzip", fewRows, pack(table) + pack("1,1\n")[:12], ": found a gzip file that ends too early"},
		{"cut gzip", fewRows, pack(table)[:20], ": found a gzip file that ends too early"},
		{"bytes after zstd", fewRows, zst + "more", ": " + after + "zstd data"},
		{"cut zstd", fewRows, zst[:len(zst)-3], ": found a zstd file that ends too early"},
		{"bytes after Parquet", small, file("testdata/small.parquet") + "\n", ": the Parquet file does not end as one"},
		{"bytes after Arrow", small, file(filepath.Join(arrowFiles, "few.arrow")) + "\n", ": the Arrow file does not end as one"},
		{"bzip2", fewRows, "BZh91AY&SY....", ": the file is compressed by bzip2, which Sotto does not read; compress the table by gzip or zstd, or not at all"},
		{"xz", fewRows, "\xfd7zXZ\x00....", ": the file is compressed by xz"},
		{"lz4", fewRows, "\x04\x22\x4d\x18....", ": the file is compressed by lz4"},
	} {
		path := writeFile(t, "t", c.text)
		if _, _, err := readTable(context.Background(), admit(), mustParse(t, c.schema), path, Options{}); err == nil || !strings.HasPrefix(err.Error(), path+c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for name, text := range map[string]string{"members": pack("x,y\n") + pack("") + pack("0.5,1\n"), "frames": zst + string(e.EncodeAll([]byte("0.5,1\n"), nil))} {
		if _, _, err := readTable(context.Background(), admit(), mustParse(t, fewRows), writeFile(t, "t", text), Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Skeleton(context.Background(), writeFile(t, "t.json", `[{"x":1}]`), ""); err == nil || !strings.Contains(err.Error(), array) {
		t.Error(err)
	}
}
