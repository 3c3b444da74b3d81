package data

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
)

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func zstandard(s string) string {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return string(w.EncodeAll([]byte(s), nil))
}

// archive is a zip file of members of those names, all with that content.
func archive(s string, names ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		m, err := w.Create(name)
		if err != nil {
			panic(err)
		}
		m.Write([]byte(s))
	}
	w.Close()
	return b.String()
}

// utf16 is little-endian UTF-16 with a byte order mark.
func utf16(s string) string {
	out, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(s)
	if err != nil {
		panic(err)
	}
	return out
}

func read(t testing.TB, s *schema.Schema, content string, opt Options) (*Table, *LoadStats, error) {
	t.Helper()
	return readTable(context.Background(), admit(), s, writeFile(t, "file", content), opt)
}

func mustRead(t testing.TB, s *schema.Schema, content string, opt Options) (*Table, *LoadStats) {
	t.Helper()
	tab, stats, err := read(t, s, content, opt)
	if err != nil {
		t.Fatal(err)
	}
	checkTable(t, tab)
	return tab, stats
}

// row is the i-th row of a table, dense.
func row(tab *Table, i int) []float32 {
	d := tab.Dense()
	return d.Blocks[i/BlockRows].X[i%BlockRows*d.Dim:][:d.Dim]
}

func TestReadCSV(t *testing.T) {
	s := mustParse(t, strings.Replace(small, "rows: 100", "rows: 100\nrow_norm: 4\nrow_scaling: project", 1))
	tab, stats := mustRead(t, s, "age,colour,id,gain,sick\n"+
		"100,red,anything,999,yes.\n"+
		"?,,,,no\n"+ // missing: 0, green, not looked at, 10
		"-5,blue,\"a \"\"quoted\"\" id, with commas\",5000,no\n", Options{})
	want := [][]float64{
		{1, 1, 0, 0, 2*math.Log(1000)/math.Log(1001) - 1, 1},
		{0, 0, 1, 0, 2*math.Log(11)/math.Log(1001) - 1, 1},
		{-1, 0, 0, 0, 1, 1},
	}
	for i, w := range want {
		for j, v := range row(tab, i) {
			if math.Abs(float64(v)-w[j]) > 2*tab.Unit {
				t.Errorf("row %d: %v, want %v", i, row(tab, i), w)
				break
			}
		}
	}
	if d := cmp.Diff([]float32{1, 0, 0}, tab.Blocks[0].Y); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(&LoadStats{Rows: 3, Clamped: map[string]int{"age": 1, "gain": 1}}, stats); d != "" {
		t.Error(d)
	}
	if !tab.Labeled || tab.Classes != 2 || tab.NormBound != 4 || tab.Rows() != 3 {
		t.Errorf("%+v", tab)
	}
}

// TestSameTable reads one table in many spellings.
func TestSameTable(t *testing.T) {
	s := mustParse(t, small)
	const plain = "age,colour,id,gain,sick\n1,red,x,2,yes\n3,green,y,4,no\n"
	want, _ := mustRead(t, s, plain, Options{})
	for _, content := range []string{zipped(plain), zstandard(plain), archive(plain, "table.csv")} {
		var digest [sha256.Size]byte
		if _, _, err := readTable(context.Background(), digestTo(&digest), s, writeFile(t, "file", content), Options{}); err != nil || digest != sha256.Sum256([]byte(plain)) {
			t.Errorf("the digest is not that of the content; %v", err)
		}
	}
	for name, c := range map[string]struct{ change, content string }{
		"gzip":           {"", zipped(plain)},
		"two gzips":      {"", zipped(plain[:30]) + zipped(plain[30:])},
		"zstd":           {"", zstandard(plain)},
		"two zstds":      {"", zstandard(plain[:30]) + zstandard(plain[30:])},
		"zip":            {"", archive(plain, "a/b.csv")},
		"zip of a Mac":   {"", archive(plain, "a/", "a/b.csv", "__MACOSX/a/._b.csv")},
		"UTF-16":         {"", utf16(plain)},
		"UTF-16, zip":    {"{encoding: utf-16,", archive(utf16(plain), "b.csv")},
		"Latin-1":        {"{encoding: latin-1,", strings.ReplaceAll(plain, "x", "\xfcx")},
		"UTF-8":          {"{encoding: utf-8,", "\ufeff" + plain},
		"CRLF":           {"", strings.ReplaceAll(plain, "\n", "\r\n")},
		"BOM":            {"", "\ufeff" + plain},
		"no last end":    {"", strings.TrimSuffix(plain, "\n")},
		"blank lines":    {"", strings.ReplaceAll(plain, "\n", "\n\r\n\n")},
		"quotes":         {"", strings.ReplaceAll(strings.ReplaceAll(plain, "red", `"red"`), "age", `"age"`)},
		"other order":    {"", "sick,gain,id,colour,age\nyes,2,x,red,1\nno,4,y,green,3\n"},
		"lines in cells": {"{multiline: true,", strings.ReplaceAll(strings.ReplaceAll(plain, "x", "\"x\ny, \"\"z\"\"\n\n\""), "colour", `"colour"`)},
		"long cell":      {"", strings.Replace(plain, "x", strings.Repeat("x", 3*bufferSize), 1)},
		"no header":      {"{header: false,", strings.SplitAfterN(plain, "\n", 2)[1]},
		"semicolons":     {`{delimiter: ";",`, strings.ReplaceAll(plain, ",", ";")},
		"tabs":           {`{delimiter: "\t",`, strings.ReplaceAll(plain, ",", "\t")},
		"trim":           {"{trim: true,", strings.ReplaceAll(plain, ",", "  , ") + "   \n"},
		"comments":       {`{comment: "##",`, "##x\n" + strings.ReplaceAll(plain, "\n", "\n##\"\x00\n")},
		"trailing dots":  {"", strings.ReplaceAll(plain, "yes", "yes.")},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			if c.change != "" {
				s = mustParse(t, strings.Replace(small, "{", c.change, 1))
			}
			got, _ := mustRead(t, s, c.content, Options{})
			if d := cmp.Diff(want, got, sameTable); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadLIBSVM(t *testing.T) {
	s := mustParse(t, svm)
	tab, stats := mustRead(t, s, "# a comment\n+1 1:1 3:-2 5:0\n\n-1.0\t2:9e0 \r\n1\n-1 4:1e-9", Options{})
	want := [][]float32{{1, 0, -2, 0, 0, 1}, {0, 2, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 1}}
	for i := range want {
		if d := cmp.Diff(want[i], row(tab, i)); d != "" {
			t.Error(i, d)
		}
	}
	if d := cmp.Diff([]float32{1, 0, 1, 0}, tab.Blocks[0].Y); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int32{0, 2, 0 + 5, 1, 5, 5, 5}, tab.Blocks[0].Col); d != "" {
		t.Error(d)
	}
	if stats.Clamped["features"] != 1 {
		t.Errorf("%+v", stats)
	}
	un, _ := mustRead(t, s, "1:1 3:-2\n0 2:9e0\n", Options{Unlabeled: true})
	if un.Labeled || un.Blocks[0].Y != nil || !reflect.DeepEqual(row(un, 0), want[0]) || !reflect.DeepEqual(row(un, 1), want[1]) {
		t.Errorf("unlabeled: %v %v", row(un, 0), row(un, 1))
	}
}

// TestUnnamedColumn: the index column that pandas writes has no name.
// With other_columns: ignore a table is that of a schema which names all columns, and so are the hashes of its rows.
func TestOtherColumns(t *testing.T) {
	const text = ",note,age,colour,id,gain,sick,note\n1,a,2,red,x,3,yes,b\n4,c,5,green,y,6,no,d\n"
	path := writeFile(t, "f", text)
	var digests []Content
	var tables []*Table
	for _, src := range []string{"other_columns: ignore\n" + small, strings.Replace(small, "columns:\n", "columns:\n  - {name: extra, type: ignore}\n  - {name: note, type: ignore}\n  - {name: note2, type: ignore}\n", 1)} {
		if !strings.HasPrefix(src, "other") {
			path = writeFile(t, "g", strings.Replace(strings.Replace(text, ",note", "extra,note", 1), "sick,note", "sick,note2", 1))
		}
		gate := &testGate{key: testKey}
		tab, _, err := readTable(context.Background(), gate, mustParse(t, src), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		tables, digests = append(tables, tab), append(digests, gate.content)
	}
	if d := cmp.Diff(tables[0].Blocks, tables[1].Blocks); d != "" {
		t.Error(d)
	}
	if digests[0].Rows.Len() != 2 || digests[1].Rows.Len() != 2 {
		t.Errorf("%d and %d hashes of rows", digests[0].Rows.Len(), digests[1].Rows.Len())
	}
	changed := writeFile(t, "h", strings.Replace(text, "1,a", "1,z", 1)) // a cell that the schema does not name
	gate := &testGate{key: testKey}
	if _, _, err := readTable(context.Background(), gate, mustParse(t, "other_columns: ignore\n"+small), changed, Options{}); err != nil {
		t.Fatal(err)
	}
	other, first := slices.Concat(gate.content.Rows...), slices.Concat(digests[0].Rows...)
	if other[0] == first[0] || other[1] != first[1] {
		t.Error("the hash of a row is not that of all its cells")
	}
}

func TestUnnamedColumn(t *testing.T) {
	s := mustParse(t, strings.Replace(small, "name: id", `name: ""`, 1))
	if tab, _ := mustRead(t, s, ",age,colour,gain,sick\n0,1,red,2,yes\n", Options{}); tab.Rows() != 1 {
		t.Errorf("%d rows", tab.Rows())
	}
}

func TestUnlabeled(t *testing.T) {
	s := mustParse(t, small)
	noHeader := mustParse(t, strings.Replace(small, "{", "{header: false,", 1))
	want, _ := mustRead(t, s, "age,colour,id,gain\n1,red,x,2\n", Options{Unlabeled: true})
	if want.Labeled || want.Blocks[0].Y != nil {
		t.Error("labels out of nowhere")
	}
	for _, c := range []struct {
		s       *schema.Schema
		content string
	}{{s, "age,colour,id,gain,sick\n1,red,x,2,nobody knows\n"}, {noHeader, "1,red,x,2\n"}, {noHeader, "1,red,x,2,?\n"}} {
		if got, _ := mustRead(t, c.s, c.content, Options{Unlabeled: true}); !reflect.DeepEqual(want, got) {
			t.Errorf("%q: %v", c.content, got)
		}
	}
	first := mustParse(t, "dataset: d\nformat: {header: false}\ncolumns: [{name: y, type: label, classes: [a, b]}, {name: x, type: numeric, min: 0, max: 1}]")
	got, _ := mustRead(t, first, "1\n", Options{Unlabeled: true})
	if r := row(got, 0); r[0] != r[1] {
		t.Errorf("row %v", r)
	}
}

func TestBadRows(t *testing.T) {
	src := strings.Replace(small, "rows: 100", "on_bad_row: drop", 1)
	s := mustParse(t, src)
	const content = "age,colour,id,gain,sick\n1,red,x,2,yes\nold,red,x,2,yes\n1,red,x,2\n1,red,\"x,2,yes\n3,green,y,4,no\n\xff,red,x,1,no\n"
	tab, stats := mustRead(t, s, content, Options{})
	if tab.Rows() != 2 || stats.Rows != 6 || stats.Dropped != 4 || tab.Blocks[0].Drop != nil {
		t.Errorf("%d rows, %+v", tab.Rows(), stats)
	}
	kept, stats := mustRead(t, s, content, Options{KeepBad: true, Rows: 6})
	if d := cmp.Diff([]bool{false, true, true, true, false, true}, kept.Blocks[0].Drop); d != "" || stats.Dropped != 4 || kept.Rows() != 6 {
		t.Error(d, stats)
	}
	if !reflect.DeepEqual(row(kept, 4), row(tab, 1)) || kept.Blocks[0].Norm[1] != 0 {
		t.Error("a dropped row changed others, or has a norm")
	}
	for _, n := range []int{5, 7} {
		if _, _, err := read(t, s, content, Options{Rows: n}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("exactly %d", n)) {
			t.Errorf("%d rows asked for: %v", n, err)
		}
	}
}

// TestManyBlocks: rows that span blocks, with and without dropped ones.
func TestManyBlocks(t *testing.T) {
	s := mustParse(t, strings.Replace(small, "rows: 100", "on_bad_row: drop", 1))
	var b strings.Builder
	b.WriteString("age,colour,id,gain,sick\n")
	const n = 2*BlockRows + 17
	for i := range n {
		if i == BlockRows+3 {
			b.WriteString("bad\n")
			continue
		}
		fmt.Fprintf(&b, "%d,red,x,%d,no\n", i%100, i)
	}
	tab, _ := mustRead(t, s, b.String(), Options{KeepBad: true})
	var sizes []int
	for _, k := range tab.Blocks {
		sizes = append(sizes, k.N)
	}
	if d := cmp.Diff([]int{BlockRows, BlockRows, 17}, sizes); d != "" {
		t.Error(d)
	}
	if tab.Blocks[0].Drop != nil || tab.Blocks[2].Drop != nil || !tab.Blocks[1].Drop[3] {
		t.Error("drops are in the wrong block")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := readTable(ctx, admit(), s, writeFile(t, "f", b.String()), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

const secret = "SECRET123"

// lined is small with cells that may span lines.
var lined = strings.Replace(small, "{", "{multiline: true,", 1)

// badFiles are files with one thing wrong, SECRET123 in or near the wrong place,
// and what the error should begin with after the file's name.
var badFiles = []struct{ name, schema, content, want string }{
	{"empty", small, "", ": found an empty file; expected a header line"},
	{"blank lines", small, "\n\n\n", ": found an empty file; expected a header line"},
	{"wrong column", small, "age,hue,id,gain,sick\n1,SECRET123,x,2,yes\n", `:1: columns: found no columns colour; further columns 2; expected a header with every column of the schema, each once, and no other (add the further ones`},
	{"missing columns", small, "age,id,gain\n1,SECRET123,2\n", ":1: columns: found no columns colour, sick; expected"},
	{"a range as a name", strings.ReplaceAll(small, "gain", "gain_1..gain_3"), "age,colour,id,gain_1,sick\n1,SECRET123,x,2,yes\n", ":1: columns: found no columns gain_1..gain_3; further columns 4; expected a header with every column of the schema, each once, and no other (a range of columns has the field names in the schema, not name: names: gain_1..gain_3)"},
	{"all that is wrong", small, "age,colour,more,age,id,gain,less\n1,SECRET123\n", `:1: columns: found no columns sick; a second time age; further columns 3, 7; expected`},
	{"row for a header", small, "1,SECRET123,x,2,yes\n", ":1: columns: found no columns age, colour, id, gain, sick; expected a header with every column of the schema, each once, and no other (if the file has no header"},
	{"row for a header, with a name in it", small, "age,red,SECRET123,2,yes\n", ":1: columns: found no columns colour, id, gain, sick; further columns 2, 3, 4, 5; expected"},
	{"others not named in JSON Lines", "other_columns: ignore\n" + small, "{\"age\": 1, \"more\": \"SECRET123\"}\n", ": other_columns: found a JSON Lines file, whose names no header lists"},
	{"extra column", small, "age,colour,id,gain,sick,more\n1,red,x,2,yes,SECRET123\n", `:1: column 6 of the header is not in the schema; add it to the schema, with type: ignore`},
	{"column twice", small, "age,colour,id,gain,sick,age\n", ":1: column age: found the column a second time"},
	{"few cells", small, "age,colour,id,gain,sick\nSECRET123,red,x,2\n", ":2: found 4 cells in the row; expected 5 cells"},
	{"many cells", small, "age,colour,id,gain,sick\n1,red,x,2,yes,SECRET123\n", ":2: found 6 cells in the row"},
	{"not a number", small, "age,colour,id,gain,sick\n1,red,x,2,yes\n1,red,x,SECRET123,yes\n", ":3:9: column gain: found text that is not a number"},
	{"NaN", small, "age,colour,id,gain,sick\nNaN,SECRET123,x,2,yes\n", ":2:1: column age: found NaN"},
	{"Inf", small, "age,colour,id,gain,sick\n-inf,SECRET123,x,2,yes\n", ":2:1: column age: found an infinite number"},
	{"too large", small, "age,colour,id,gain,sick\n123123e999,SECRET123,x,2,yes\n", ":2:1: column age: found a number too large"},
	{"unknown level", strings.Replace(small, "unknown: zero", "unknown: error", 1), "age,colour,id,gain,sick\n1,SECRET123,x,2,yes\n", ":2:3: column colour: found a level that the schema does not list"},
	{"missing level", strings.Replace(small, "missing: green", "missing: error", 1), "age,colour,id,gain,sick\n1,?,SECRET123,2,yes\n", ":2:3: column colour: found a missing value"},
	{"missing number", strings.Replace(small, "missing: zero", "missing: error", 1), "age,colour,id,gain,sick\n,red,SECRET123,2,yes\n", ":2:1: column age: found a missing value"},
	{"empty number", strings.Replace(small, `"", "?"`, `"?"`, 1), "age,colour,id,gain,sick\n,red,SECRET123,2,yes\n", ":2:1: column age: found an empty cell"},
	{"wrong label", small, "age,colour,id,gain,sick\n1,red,x,2,SECRET123\n", ":2:11: column sick: found a label that is none of the classes"},
	{"missing label", small, "age,colour,id,gain,sick\n1,red,SECRET123,2,\n", ":2:19: column sick: found a label that is none"},
	{"open quote", small, "age,colour,id,gain,sick\n1,red,\"SECRET123,2,yes\n", ":2:24: found a quoted cell that is not closed"},
	{"open quote, again", lined, "age,colour,id,gain,sick\n1,red,\"a\nb\",2,yes\n1,red,x,2,\"yes\n1,red,\"SECRET123\"x,2,yes\n", ":4:16: found a quoted cell that is not closed"},
	{"cells on two lines", lined, "age,colour,id,gain,sick\n1,red,\"a\n,b\",2,yes,SECRET123\n1,red,x,2,yes\n", ":2: found 6 cells in the row"},
	{"not a number after two lines", lined, "age,colour,id,gain,sick\n1,red,\"a\n\nb\",SECRET123,yes\n", ":2: column gain: found text that is not a number"},
	{"not a number before two lines", lined, "age,colour,id,gain,sick\n1,red,\"a\n\nb\",2,yes\nSECRET123,red,\"a\n\nb\",2,yes\n", ":5:1: column age: found text that is not a number"},
	{"binary on two lines", lined, "age,colour,id,gain,sick\n1,red,\"a\n\x00SECRET123\",2,yes\n", ":2: found bytes that are not text"},
	{"cell on two lines", small, "age,colour,id,gain,sick\n1,red,\"SECRET123\n\",2,yes\n", ":2:18: found a quoted cell that is not closed, or goes on after its quote; expected a cell in quotes, with \"\" for a quote inside, on one line unless format says multiline: true"},
	{"stray quote", small, "age,colour,id,gain,sick\n1,red,SECRET123\"x,2,yes\n", ":2:16: found a quote within a cell"},
	{"binary", small, "age,colour,id,gain,sick\n1,SECRET123,\x00x,2,yes\n", ":2: found bytes that are not text (a binary file?)"},
	{"binary header", small, "\x7fELF\x02\x01\x00SECRET123\n", ":1: found bytes that are not text"},
	{"Latin-1", small, "age,colour,id,gain,sick\n1,SECRET123,M\xfcnchen,2,yes\n", ":2: found bytes that are not text in UTF-8 (Latin-1 or Windows-1252?); expected"},
	{"long line", small, "age,colour,id,gain,sick\n" + strings.Repeat(secret, 8<<20/8) + "\n", ":2: found a line of more than 8 MiB"},
	{"truncated gzip", small, zipped("age,colour,id,gain,sick\n1,red,x,2,yes\n")[:40], ": found a gzip file that ends too early"},
	{"gzip cut in its head", small, "\x1f\x8b\x08", ": found a gzip file that ends too early"},
	{"damaged gzip", small, "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff\xffSECRET123", ": found a damaged gzip file"},
	{"truncated zstd", small, zstandard("age,colour,id,gain,sick\n1,red,x,2,yes\n")[:20], ": found a zstd file that ends too early"},
	{"damaged zstd", small, "\x28\xb5\x2f\xfd\xff\xff\xff\xffSECRET123", ": found a damaged zstd file"},
	{"truncated zip", small, archive("age,colour,id,gain,sick\n1,red,x,2,yes\n", "a")[:40], ": found a damaged zip file; expected a whole zip file"},
	{"damaged zip", small, strings.Replace(archive("SECRET123", "a"), "PK\x01\x02", "PK\x01\x03", 1), ": found a damaged zip file"},
	{"empty zip", small, archive(""), ": found a zip file of 0 members; expected a zip file of exactly one"},
	{"zip of two", small, archive("x", "SECRET123", "b"), ": found a zip file of 2 members; expected a zip file of exactly one, the table (extract the members; data may name several files)"},
	{"new workbook", small, archive("SECRET123", "[Content_Types].xml", "xl/workbook.xml"), ": found a workbook of Excel or LibreOffice; expected a table of text, Parquet, Arrow or SQLite (save the sheet as CSV UTF-8, or convert the first one: libreoffice --headless --convert-to csv '"},
	{"OpenDocument", small, archive("SECRET123", "mimetype", "content.xml"), ": found a workbook of Excel or LibreOffice"},
	{"old workbook", small, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1SECRET123", ": found a workbook of Excel or LibreOffice"},
	{"old workbook for LIBSVM", svm, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1SECRET123", ": found a workbook of Excel or LibreOffice"},
	{"DuckDB", small, "01234567DUCK SECRET123", ": found a DuckDB file; expected a table of text, Parquet, Arrow or SQLite (convert its table: duckdb '"},
	{"Arrow", small, "ARROW1\x00\x00SECRET123", ": the Arrow file does not end as one: it is cut short, encrypted, or bytes follow its end"},
	{"Feather 1", small, "FEA1\x00\x00SECRET123", ": found a Feather file of version 1; expected a table of text, Parquet, Arrow (Feather of version 2) or SQLite (convert it, as in Python: pandas.read_feather('"},
	{"UTF-16 without a mark", small, utf16("age,colour,id,gain,sick\n1,red,SECRET123,2,yes\n")[2:], ":1: found text in UTF-16 without a byte order mark; expected a text file in UTF-8, or for CSV format: {encoding: utf-16}"},
	{"not a number in UTF-16", small, utf16("age,colour,id,gain,sick\n1,red,x,SECRET123,yes\n"), ":2:9: column gain: found text that is not a number"},
	{"number label", strings.Replace(small, `classes: ["no", "yes"], strip: "."`, "min: 0, max: 1", 1), "age,colour,id,gain,sick\n1,red,x,2,SECRET123\n", ":2:11: column sick: found text that is not a number"},
	{"comma in a number", strings.Replace(small, "{", `{delimiter: ";",`, 1), "age;colour;id;gain;sick\n123,5;red;SECRET123;2;yes\n", ":2:1: column age: found a number in another notation; expected a finite number; values out of bounds are clamped; if the file writes numbers so, write decimal: \",\" (for 1,5) in the block format of the schema"},
	{"comma or thousands", strings.Replace(small, "{", `{delimiter: ";",`, 1), "age;colour;id;gain;sick\n1,123;red;SECRET123;2;yes\n", ":2:1: column age: found a number in another notation; expected a finite number; values out of bounds are clamped; if the file writes numbers so, write decimal: \",\" (for 1,5) or thousands: \",\" (for 1,234.5) in the block format of the schema"},
	{"point where a comma is", strings.Replace(small, "{", `{decimal: ",",`, 1), "age,colour,id,gain,sick\n12.3,red,SECRET123,2,yes\n", ":2:1: column age: found a number in another notation; expected a finite number; values out of bounds are clamped; if the file writes numbers so, write no decimal and no thousands (for 1.5) in the block format of the schema"},
	{"mark of a missing number", small, "age,colour,id,gain,sick\n1,red,SECRET123,N/A,yes\n", ":2:17: column gain: found text that often marks a missing value; expected a finite number; values out of bounds are clamped; if a value is missing there, list the mark in format.missing of the schema, and say with missing: of the column what it counts as"},
	{"mark of a missing label", strings.Replace(small, `classes: ["no", "yes"], strip: "."`, "min: 0, max: 1", 1), "age,colour,id,gain,sick\n1,red,SECRET123,2,null\n", ":2:19: column sick: found text that often marks a missing value; expected a finite number; a label out of bounds is clamped; if a value is missing there, list the mark in format.missing of the schema, and leave out rows without a label, as on_bad_row: drop does"},
	{"missing number of a label", strings.Replace(small, `classes: ["no", "yes"], strip: "."`, "min: 0, max: 1", 1), "age,colour,id,gain,sick\n1,red,SECRET123,2,?\n", ":2:19: column sick: found a missing value; expected a label; leave out rows without a label"},
	{"svm index out of range", svm, "1 1:1 6:0.123\n", ":1:7: found an index out of range; expected an index from 1 to 5"},
	{"svm index 0", svm, "1 0:1\n", ":1:3: found an index out of range"},
	{"svm huge index", svm, "1 99999999999999999999999:1\n", ":1:3: found an index out of range"},
	{"svm descending", svm, "1 3:1 2:1\n", ":1:7: found an index that is not above"},
	{"svm repeated", svm, "1 3:1 3:1\n", ":1:7: found an index that is not above"},
	{"svm no colon", svm, "1 3:1 SECRET123\n", ":1:7: found text that is not index:value"},
	{"svm text index", svm, "1 SECRET123:1\n", ":1:3: found an index that is not a whole number"},
	{"svm text value", svm, "1 1:SECRET123\n", ":1:5: found text that is not a number"},
	{"svm no value", svm, "1 1:\n", ":1:5: found an empty cell"},
	{"svm NaN", svm, "1 1:nan\n", ":1:5: found NaN"},
	{"svm Inf", svm, "1 1:1 2:+Inf\n", ":1:9: found an infinite number"},
	{"svm wrong label", svm, "1 1:1\nSECRET123 1:1\n", ":2:1: column y: found a label that is none of the classes"},
	{"svm other label", svm, "2 1:1\n", ":1:1: column y: found a label that is none of the classes"},
	{"svm no label", svm, "1:1 2:1\n", ":1:1: column y: found a row without a label"},
	{"svm binary", svm, "1 1:\x00SECRET123\n", ":1: found bytes that are not text"},
}

// TestBadInput: every kind of bad file is an *Error that says where and what, and
// no error text holds what stands in the file.
func TestBadInput(t *testing.T) {
	for _, c := range badFiles {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, "file", c.content)
			tab, _, err := readTable(context.Background(), admit(), mustParse(t, c.schema), path, Options{})
			var e *config.Error
			if !errors.As(err, &e) || tab != nil {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(err.Error(), path+c.want) {
				t.Errorf("got  %s\nwant %s", strings.TrimPrefix(err.Error(), path), c.want)
			}
			if text := strings.ReplaceAll(fmt.Sprintf("%+v %v", *e, e), path, ""); strings.Contains(text, secret) || strings.Contains(text, "123") {
				t.Errorf("a value of the file is in the error: %v", err)
			}
		})
	}
	_, _, err := readTable(context.Background(), admit(), mustParse(t, small), filepath.Join(t.TempDir(), "none"), Options{})
	if !errors.Is(err, os.ErrNotExist) || !errors.As(err, new(*config.Error)) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := readTable(context.Background(), admit(), mustParse(t, small), t.TempDir(), Options{}); !errors.As(err, new(*config.Error)) {
		t.Errorf("a folder: %v", err)
	}
	if _, _, err := readTable(context.Background(), admit(), &schema.Schema{}, "x", Options{}); err == nil {
		t.Error("an empty schema is accepted")
	}
}

// rows draws rows of cells for the schema small, some of them bad.
func drawRows(t *rapid.T) []string {
	cell := func(good ...string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if rapid.IntRange(0, 30).Draw(t, "bad") == 0 {
				return rapid.SampledFrom([]string{"nan", "xyz", `"`, `x"`, `"x"x`, "\xff"}).Draw(t, "what")
			}
			if len(good) > 0 {
				return rapid.SampledFrom(good).Draw(t, "good")
			}
			return fmt.Sprint(rapid.Float64Range(-1e4, 1e4).Draw(t, "number"))
		})
	}
	gens := []*rapid.Generator[string]{cell(), cell("red", "green", "1.0", "mauve", "?", ""), cell("a", ""), cell(), cell("yes", "no", "no.")}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		var cells []string
		for _, g := range gens {
			cells = append(cells, g.Draw(t, "cell"))
		}
		return strings.Join(cells, ",")
	}), 1, 8).Draw(t, "rows")
}

// TestRowsAlone: a row encodes the same alone, among others and in another
// order, whatever the others are (R14), and gzip changes nothing.
func TestRowsAlone(t *testing.T) {
	race.Skip(t)
	s := mustParse(t, strings.Replace(small, "rows: 100", "on_bad_row: drop", 1))
	const header = "age,colour,id,gain,sick\n"
	path := filepath.Join(t.TempDir(), "f")
	keep := func(rt *rapid.T, content string) *Table {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			rt.Fatal(err)
		}
		tab, _, err := readTable(context.Background(), admit(), s, path, Options{KeepBad: true})
		if err != nil {
			return nil // all rows are bad
		}
		checkTable(t, tab)
		return tab
	}
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRows(rt)
		all := keep(rt, header+strings.Join(rows, "\n"))
		if !reflect.DeepEqual(all, keep(rt, zipped(header+strings.Join(rows, "\n")))) {
			rt.Fatal("gzip makes another table")
		}
		shuffled := rapid.Permutation(rows).Draw(rt, "shuffled")
		mixed := keep(rt, header+strings.Join(shuffled, "\n"))
		for i, r := range rows {
			one := keep(rt, header+r)
			if one == nil {
				if all != nil && !all.Blocks[0].Drop[i] {
					rt.Fatalf("row %d is bad alone and good among others", i)
				}
				continue
			}
			for j, q := range shuffled {
				if q == r && !reflect.DeepEqual(row(one, 0), row(mixed, j)) {
					rt.Fatalf("row %d depends on its place", i)
				}
			}
			if !reflect.DeepEqual(row(one, 0), row(all, i)) || one.Blocks[0].Norm[0] != all.Blocks[0].Norm[i] || one.Blocks[0].Y[0] != all.Blocks[0].Y[i] {
				rt.Fatalf("row %d depends on others", i)
			}
		}
	})
}

// TestDenseIsSparse: the same numbers as CSV with a project rule and as LIBSVM
// give the same rows.
func TestDenseIsSparse(t *testing.T) {
	dense := mustParse(t, `dataset: d
format: {header: false}
row_scaling: project
row_norm: 0.9
columns:
  - {name: y, type: label, classes: ["-1", "+1"]}
  - {name: a, type: numeric, min: -1, max: 1}
  - {name: b, type: numeric, min: -1, max: 1}
  - {name: c, type: numeric, min: -1, max: 1}
`)
	sparse := mustParse(t, "dataset: d\nformat: {kind: libsvm}\nfeatures: 3\nrow_norm: 0.9\ncolumns: [{name: y, type: label, classes: ['-1', '+1']}]")
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		var a, b strings.Builder
		for range rapid.IntRange(1, 6).Draw(rt, "rows") {
			y := rapid.SampledFrom([]string{"-1", "+1"}).Draw(rt, "y")
			a.WriteString(y)
			b.WriteString(y)
			for j := range 3 {
				// Eighths: 2(v+1)/2−1 is exact for them.
				v := float64(rapid.IntRange(-9, 9).Draw(rt, "v")) / 8
				fmt.Fprintf(&a, ",%v", v)
				if v != 0 || rapid.Bool().Draw(rt, "explicit zero") {
					fmt.Fprintf(&b, " %d:%v", j+1, v)
				}
			}
			a.WriteString("\n")
			b.WriteString("\n")
		}
		var tabs [2]*Table
		for i, c := range []struct {
			s    *schema.Schema
			text string
		}{{dense, a.String()}, {sparse, b.String()}} {
			path := filepath.Join(dir, "f")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				rt.Fatal(err)
			}
			tab, _, err := readTable(context.Background(), admit(), c.s, path, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			checkTable(t, tab)
			tabs[i] = tab.Dense()
		}
		if d := cmp.Diff(tabs[0], tabs[1], sameTable); d != "" {
			rt.Fatal(d)
		}
	})
}

// Bad rows are counted to the end of the file, or to where it cannot be read on,
// and the first is named.
func TestBadRowsAreCounted(t *testing.T) {
	s := mustParse(t, small)
	head := "age,colour,id,gain,sick\n"
	good, bad := "1,red,x,2,yes\n", "SECRET123,red,x,2,yes\n"
	for _, c := range []struct {
		content string
		opt     Options
		want    string
	}{
		{head + good + bad, Options{}, ":3:1: column age: found text that is not a number; expected a finite number; values out of bounds are clamped; a mark of a missing value belongs in format.missing of the schema (correct the row, or the schema if the row is right)"},
		{head + good + bad, Options{ByRow: true}, "of the schema (correct the row)"},
		{strings.Replace(head, "colour", "color", 1), Options{ByRow: true}, "further columns 2; expected a header with every column of the schema, each once, and no other (take the further ones out of the table)"},
		{strings.Replace(head, "sick", "sick,more", 1), Options{ByRow: true}, "column 6 of the header is not in the schema; take it out of the table"},
		{head + good + bad + good + bad + "1,red\n" + good, Options{}, ":3:1: column age: found text that is not a number; expected a finite number; values out of bounds are clamped; a mark of a missing value belongs in format.missing of the schema (3 rows are bad, this is the first; correct the row, or the schema if the row is right)"},
	} {
		_, _, err := read(t, s, c.content, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("found %v; want …%s", err, c.want)
		}
	}
}
