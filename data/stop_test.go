package data

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
)

// A countedContext ends after so many questions whether it has.
type countedContext struct {
	context.Context
	last int64
	n    atomic.Int64
}

func (c *countedContext) Err() error {
	if c.n.Add(1) > c.last {
		return context.Canceled
	}
	return nil
}

// TestReadersStop ends the reading of each format at each question in turn whether to go on. Whenever that is, the reading ends, with
// the context's error and at most a few questions later, one for each goroutine.
func TestReadersStop(t *testing.T) {
	plain := mustParse(t, fewRows)
	svm := mustParse(t, "dataset: d\nrows: 5\nrow_norm: 1\nformat: {kind: libsvm}\nfeatures: 3\nmin: 0\nmax: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n")
	pictures := mustParse(t, "dataset: d\nrows: 5\nformat: {kind: idx}\nimage: {shape: [2], center: 0, scale: 255}\nrow_norm: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n")
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const n = 6000
	csv := []byte("x,y\n" + strings.Repeat("0.5,1\n", n))
	var zipped, gzipped, pq bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	w.Write(csv)
	w.Close()
	z := zip.NewWriter(&zipped)
	m, _ := z.Create("t.csv")
	m.Write(csv)
	z.Close()
	e, _ := zstd.NewWriter(nil)
	type row struct {
		X float64 `parquet:"x"`
		Y string  `parquet:"y"`
	}
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{float64(i), "1"}
	}
	if err := parquet.Write(&pq, rows, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(2500)); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(dir, "t.db")
	db, err := sql.Open("sqlite", database)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(fmt.Sprintf("CREATE TABLE t (x, y); WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v+1 FROM i WHERE v < %d) INSERT INTO t SELECT 0.5, '1' FROM i", n)); err != nil {
		t.Fatal(err)
	}
	db.Close()
	packed := filepath.Join(dir, "packed")
	if _, err := packTable(context.Background(), admit(), plain, write("p.csv", csv), packed, Options{}); err != nil {
		t.Fatal(err)
	}
	write("train-labels-idx1-ubyte", []byte(idx(n, nil, make([]byte, n)...)))
	for _, f := range []struct {
		name, path string
		schema     *schema.Schema
	}{
		{"CSV", write("t.csv", csv), plain},
		{"gzip", write("t.gz", gzipped.Bytes()), plain},
		{"zstd", write("t.zst", e.EncodeAll(csv, nil)), plain},
		{"zip", write("t.zip", zipped.Bytes()), plain},
		{"UTF-16", write("t16.csv", utf16Of(string(csv))), plain},
		{"JSON Lines", write("t.jsonl", []byte(strings.Repeat(`{"x":1,"y":"0"}`+"\n", n))), plain},
		{"LIBSVM", write("t.svm", []byte(strings.Repeat("1 1:0.5\n", n))), svm},
		{"images", write("train-images-idx3-ubyte", []byte(idx(n, []int{2}, make([]byte, 2*n)...))), pictures},
		{"Parquet", write("t.parquet", pq.Bytes()), plain},
		{"Arrow", filepath.Join(arrowFiles, "zstd.arrow"), mustParse(t, small)},
		{"SQLite", database + "?table=t", plain},
		{"packed", packed, plain},
		{"several", write("a.csv", csv) + Plus + write("b.csv", csv), plain},
	} {
		t.Run(f.name, func(t *testing.T) {
			for _, workers := range []int{1, 2} {
				whole := &countedContext{Context: context.Background(), last: 1 << 40}
				if _, _, err := readTable(whole, admit(), f.schema, f.path, Options{workers: workers}); err != nil {
					t.Fatal(err)
				}
				questions := whole.n.Load()
				if questions < 4 {
					t.Fatalf("%d questions", questions)
				}
				for last := int64(0); last < questions-3; last += 1 + questions/12 { // the last few are of other goroutines
					ctx := &countedContext{Context: context.Background(), last: last}
					tab, _, err := readTable(ctx, admit(), f.schema, f.path, Options{workers: workers})
					if tab != nil || !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "damaged") {
						t.Fatalf("%d workers, question %d of %d: %v", workers, last, questions, err)
					}
					if more := ctx.n.Load() - last; more > 20 {
						t.Errorf("%d workers, question %d: %d more", workers, last, more)
					}
				}
			}
			stopHeader(t, f.path, f.name != "LIBSVM" && f.name != "JSON Lines" && f.name != "packed")
		})
	}
}

// stopHeader ends the reading of a header, for a description and for a skeleton, at each question in turn whether to go on. header:
// the table has one.
func stopHeader(t *testing.T, path string, header bool) {
	t.Helper()
	for name, read := range map[string]func(context.Context) error{
		"describe": func(ctx context.Context) error { _, err := Describe(ctx, path, TestFormats); return err },
		"skeleton": func(ctx context.Context) error { _, err := Skeleton(ctx, path, ""); return err },
	} {
		whole := &countedContext{Context: context.Background(), last: 1 << 40}
		if err := read(whole); err != nil && (header || name == "describe") {
			t.Errorf("%s: %v", name, err)
		}
		questions := whole.n.Load()
		if questions == 0 {
			t.Errorf("%s: no question", name)
		}
		for last := int64(0); last < max(1, questions-1); last += 1 + questions/12 { // the last one may be of a goroutine of database/sql
			ctx := &countedContext{Context: context.Background(), last: last}
			if err := read(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s, question %d of %d: %v", name, last, questions, err)
			}
			if more := ctx.n.Load() - last; more > 20 {
				t.Errorf("%s, question %d of %d: %d more", name, last, questions, more)
			}
		}
	}
}

func utf16Of(s string) []byte {
	b := []byte{0xff, 0xfe}
	for _, c := range s {
		b = binary.LittleEndian.AppendUint16(b, uint16(c))
	}
	return b
}

// TestBombsStop: files of some kilobytes that unfold to 10 MB without a row. Reading asks at least once for each
// megabyte whether to go on, and ends where it is told.
func TestBombsStop(t *testing.T) {
	race.Skip(t)
	const size = 10 << 20
	dir := t.TempDir()
	fill := func(s string) []byte { return bytes.Repeat([]byte(s), size/len(s)) }
	pack := func(form string, b []byte) []byte {
		var out bytes.Buffer
		switch form {
		case "zstd":
			w, _ := zstd.NewWriter(&out)
			w.Write(b)
			w.Close()
		case "gzip":
			w := gzip.NewWriter(&out)
			w.Write(b)
			w.Close()
		case "zip":
			z := zip.NewWriter(&out)
			w, _ := z.Create("t.csv")
			w.Write(b)
			z.Close()
		}
		return out.Bytes()
	}
	plain := mustParse(t, fewRows)
	svm := mustParse(t, "dataset: d\nrows: 5\nrow_norm: 1\nformat: {kind: libsvm}\nfeatures: 3\nmin: 0\nmax: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n")
	multiline := mustParse(t, strings.Replace(fewRows, "row_norm: 1\n", "row_norm: 1\nformat: {kind: csv, multiline: true}\n", 1))
	comment := mustParse(t, strings.Replace(fewRows, "row_norm: 1\n", "row_norm: 1\nformat: {kind: csv, comment: \"#\"}\n", 1))
	for _, b := range []struct {
		name   string
		text   []byte
		schema *schema.Schema
		fails  bool // without a stop
	}{
		{"newlines", append([]byte("x,y\n"), fill("\n")...), plain, false},
		{"newlines before the header", append(fill("\n"), "x,y\n"...), plain, false},
		{"comments", append([]byte("x,y\n"), fill("#\n")...), comment, false},
		{"no newline", append([]byte("x,y\n"), fill("a")...), plain, true},
		{"an open quote", append([]byte("x,y\n\""), fill(strings.Repeat("a", 999)+"\n")...), multiline, true},
		{"a header without end", fill("a"), plain, true},
		{"newlines of LIBSVM", fill("\n"), svm, false},
		{"lines of JSON", append([]byte("{\"x\":1,\"y\":\"0\"}\n"), fill("\r\n")...), plain, false},
	} {
		for _, form := range []string{"zstd", "gzip", "zip"} {
			if form != "zstd" && b.name != "newlines" {
				continue
			}
			path := filepath.Join(dir, "bomb")
			if err := os.WriteFile(path, pack(form, b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			whole := &countedContext{Context: context.Background(), last: 1 << 40}
			_, _, err := readTable(whole, admit(), b.schema, path, Options{workers: 1})
			if (err != nil) != b.fails {
				t.Fatalf("%s, %s: %v", b.name, form, err)
			}
			questions := whole.n.Load()
			if b.name != "a header without end" && questions < size>>20 {
				t.Errorf("%s, %s: %d questions", b.name, form, questions)
			}
			for _, last := range []int64{2, questions / 2} {
				ctx := &countedContext{Context: context.Background(), last: last}
				if _, _, err := readTable(ctx, admit(), b.schema, path, Options{workers: 1}); !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s, question %d of %d: %v", b.name, form, last, questions, err)
				}
				if more := ctx.n.Load() - last; more > 20 {
					t.Errorf("%s, %s, question %d of %d: %d more", b.name, form, last, questions, more)
				}
			}
			if b.name == "a header without end" {
				stopHeader(t, path, false)
			}
		}
	}
}
