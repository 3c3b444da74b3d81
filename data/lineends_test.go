package data

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestLineEnds: a file whose lines end otherwise is refused by what is in its header or line, whatever the schema ignores, and no
// error quotes what could be a row.
func TestLineEnds(t *testing.T) {
	const (
		strict   = fewRows
		cell     = "SECRET123"
		rest     = "0.5,1,SECRET123@0.25,0,SECRET123@"
		separate = "a line or paragraph separator (U+"
	)
	header := "x,y,name@" + rest
	ignore := "other_columns: ignore\n" + fewRows
	multiline := strings.Replace(ignore, "row_norm: 1\n", "row_norm: 1\nformat: {multiline: true}\n", 1)
	trim := strings.Replace(ignore, "row_norm: 1\n", "row_norm: 1\nformat: {trim: true}\n", 1)
	svm := "dataset: d\nrows: 5\nrow_norm: 1\nformat: {kind: libsvm}\nfeatures: 3\nmin: 0\nmax: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n"
	end := func(text, with string) string { return strings.ReplaceAll(text, "@", with) }
	for _, c := range []struct{ name, schema, text, want string }{
		{"CR", strict, end(header, "\r"), ":1: the header has a carriage return (CR) within it; end each line with LF or CRLF"},
		{"CR, others ignored", ignore, end(header, "\r"), ":1: the header has a carriage return"},
		{"CR, trimmed", trim, end(header, "\r"), ":1: the header has a carriage return"},
		{"CR in the first line", ignore, end("x,y,name@0.5,1,SECRET123\n0.5,1,SECRET123\n", "\r"), ":1: the header has a carriage return"},
		{"CR CR LF", ignore, end(header, "\r\r\n"), ":1: the header has a carriage return"},
		{"LF CR", ignore, end(header, "\n\r"), ":2: found a carriage return (CR) within a line; expected lines that end with LF or CRLF"},
		{"LF CR before a cell of text", ignore, end("name,x,y@SECRET123,0.5,1@", "\n\r"), ":2: found a carriage return (CR) within a line"},
		{"CR below the header", ignore, "x,y,name\n" + end(rest, "\r"), ":2: found a carriage return (CR) within a line; expected lines that end with LF or CRLF"},
		{"CR once below the header", ignore, "x,y,name\n0.5,1,SECRET123\r0.5,1,SECRET123\n0.5,0,n\n", ":2: found a carriage return (CR) within a line"},
		{"U+2028", ignore, end(header, "\u2028"), ":1: the header has " + separate + "2028)"},
		{"U+2029", ignore, end(header, "\u2029"), ":1: the header has " + separate + "2029)"},
		{"U+0085", strict, end(header, "\u0085"), ":1: the header has " + separate + "0085)"},
		{"VT", ignore, end(header, "\v"), ":1: the header has a control character (U+000B)"},
		{"FF", ignore, end(header, "\f"), ":1: the header has a control character (U+000C)"},
		{"RS", ignore, end(header, "\x1e"), ":1: the header has a control character (U+001E)"},
		{"NUL", ignore, end(header, "\x00"), ":1: found bytes that are not text"},
		{"a quote in the header", ignore, end("x,\"y,name@"+rest, "\n"), ":1:11: header: found a quoted cell"},
		{"a quote over lines", multiline, end("x,\"y,name@"+rest+"\"\n", "\n"), ":1: the header has a line break within it"},
		{"commas alone", strict, end(header, ","), ":1: columns: found further columns 3, 4, 5, 6, 7, 8, 9, 10; expected"},
		{"backslashes", strict, end(header, `\n`), ":1: columns: found further columns 3, 4, 5, 6, 7; expected"},
		{"LIBSVM", svm, "1 1:0.5\r0 2:0.5\r", ":1: found a carriage return (CR) within a line"},
		{"JSON Lines", strict, "{\"x\":0.5,\"y\":\"1\"}\r{\"x\":0.5,\"y\":\"SECRET123\"}\r\n", ":1: found a carriage return (CR) within a line"},
	} {
		path := writeFile(t, "t", c.text)
		_, _, err := readTable(context.Background(), admit(), mustParse(t, c.schema), path, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), path+c.want) || strings.Contains(err.Error(), cell) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	// Mixed ends of lines are read, and so is a carriage return within quotes.
	for _, text := range []string{"x,y,name\r\n0.5,1,n\n0.25,0,n\r\n", "x,y,name\n0.5,1,\"a\rb\"\n0.25,0,n"} {
		if _, stats, err := readTable(context.Background(), admit(), mustParse(t, ignore), writeFile(t, "t", text), Options{}); err != nil || stats.Rows != 2 {
			t.Error(stats, err)
		}
	}
	// Unlabeled rows of LIBSVM in one line are not one row.
	if _, _, err := readTable(context.Background(), admit(), mustParse(t, svm), writeFile(t, "t", "1:0.5\r2:0.5\r"), Options{Unlabeled: true}); err == nil {
		t.Error("two rows were read as one")
	}
}

// TestHeadersAsRows: the names of a Parquet file's columns may be cells of a row that someone's program took for a header.
func TestHeadersAsRows(t *testing.T) {
	type row struct {
		X    float64 `parquet:"x"`
		Y    string  `parquet:"y"`
		Name string  `parquet:"SECRET123"`
	}
	type broken struct {
		X float64 `parquet:"x"`
		Y string  `parquet:"y\rSECRET123"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []row{{0.5, "1", ""}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := readTable(context.Background(), admit(), mustParse(t, fewRows), path, Options{})
	if want := path + ": column 3 of the header is not in the schema; add it to the schema"; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "SECRET123") {
		t.Error(err)
	}
	b.Reset()
	if err := parquet.Write(&b, []broken{{0.5, "1"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Skeleton(context.Background(), path, "")
	if want := path + ": the name of column 2 has a carriage return (CR) in it"; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "SECRET123") {
		t.Error(err)
	}
}

// TestNoRows: the owner hears of a table without rows where some are declared, and nothing else changes.
func TestNoRows(t *testing.T) {
	s := mustParse(t, fewRows)
	none := strings.Replace(fewRows, "rows: 5\n", "", 1)
	packed := filepath.Join(t.TempDir(), "packed")
	empty, one := writeFile(t, "e.csv", "x,y\n"), writeFile(t, "o.csv", "x,y\n1,1\n")
	if _, err := packTable(context.Background(), admit(), s, empty, packed, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, schema string
		opt          Options
		told         int
	}{
		{empty, fewRows, Options{}, 1},
		{packed, fewRows, Options{}, 1},
		{writeFile(t, "e.jsonl", ""), fewRows, Options{}, 1},
		{empty, none, Options{}, 0},
		{empty, fewRows, Options{Unlabeled: true}, 0},
		{one, fewRows, Options{}, 0},
	} {
		told := 0
		c.opt.Dropped = func(_ string, stats *LoadStats) error {
			told++
			return nil
		}
		if _, _, err := readTable(context.Background(), admit(), mustParse(t, c.schema), c.path, c.opt); err != nil || told != c.told {
			t.Errorf("%s, %+v: told %d times, %v", c.path, c.opt, told, err)
		}
	}
}
