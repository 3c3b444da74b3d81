package data

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/sottodp/sotto/schema"
)

const (
	fewRows  = "dataset: d\nrows: 5\nrow_norm: 1\ncolumns:\n  - {name: x, type: numeric, min: 0, max: 1}\n  - {name: y, type: label, classes: [\"0\", \"1\"]}\n"
	fewUnits = "dataset: d\nunits: 5\nunit: {name: patient, rows: 2}\nrow_norm: 1\ncolumns:\n  - {name: who, type: unit}\n  - {name: x, type: numeric, min: 0, max: 1}\n  - {name: y, type: label, classes: [\"0\", \"1\"]}\n"
)

// TestLoadLimit: a table may have eight times the declared rows, in every form that has rows, and eight times the units; under
// replace-one the declared number. One row more is refused.
func TestLoadLimit(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, units := mustParse(t, fewRows), mustParse(t, fewUnits)
	svm := mustParse(t, "dataset: d\nrows: 5\nrow_norm: 1\nformat: {kind: libsvm}\nfeatures: 3\nmin: 0\nmax: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n")
	pictures := mustParse(t, "dataset: d\nrows: 5\nformat: {kind: idx}\nimage: {shape: [2], center: 0, scale: 255}\nrow_norm: 1\ncolumns: [{name: y, type: label, classes: [\"0\", \"1\"]}]\n")
	const tooMany = "more than 8 times the 5 rows that the schema declares"
	lines := func(head, row string, n int) []byte { return []byte(head + strings.Repeat(row, n)) }
	forms := []struct {
		name   string
		schema *schema.Schema
		most   int
		want   string
		path   func(n int) string
	}{
		{"CSV", plain, 40, tooMany, func(n int) string { return write("t.csv", lines("x,y\n", "0.5,1\n", n)) }},
		{"CSV.zst", plain, 40, tooMany, func(n int) string {
			e, _ := zstd.NewWriter(nil)
			return write("t.zst", e.EncodeAll(lines("x,y\n", "0.5,1\n", n), nil))
		}},
		{"JSON Lines", plain, 40, tooMany, func(n int) string { return write("t.jsonl", lines("", `{"x":1,"y":"0"}`+"\n", n)) }},
		{"LIBSVM", svm, 40, tooMany, func(n int) string { return write("t.svm", lines("", "1 1:0.5\n", n)) }},
		{"images", pictures, 40, tooMany, func(n int) string {
			write("train-labels-idx1-ubyte", []byte(idx(n, nil, make([]byte, n)...)))
			return write("train-images-idx3-ubyte", []byte(idx(n, []int{2}, make([]byte, 2*n)...)))
		}},
		{"Parquet", plain, 40, tooMany, func(n int) string {
			type row struct {
				X float64 `parquet:"x"`
				Y string  `parquet:"y"`
			}
			var b bytes.Buffer
			rows := make([]row, n)
			for i := range rows {
				rows[i].Y = "1"
			}
			if err := parquet.Write(&b, rows); err != nil {
				t.Fatal(err)
			}
			return write("t.parquet", b.Bytes())
		}},
		{"several", plain, 40, tooMany, func(n int) string {
			return write("a.csv", lines("x,y\n", "0.5,1\n", 30)) + Plus + write("b.csv", lines("x,y\n", "0.5,1\n", n-30))
		}},
		{"packed", plain, 40, tooMany, func(n int) string {
			dst := filepath.Join(dir, "packed")
			if _, err := packTable(context.Background(), admit(), plain, write("p.csv", lines("x,y\n", "0.5,1\n", n)), dst, Options{}); err != nil {
				t.Fatal(err)
			}
			return dst
		}},
		{"units", units, 40, "more than 8 times the 5 units that the schema declares", func(n int) string {
			b := []byte("who,x,y\n")
			for i := range n {
				b = fmt.Appendf(b, "%d,0.5,1\n", i)
			}
			return write("u.csv", b)
		}},
		{"rows of a unit", units, 640, "more than 8 times the rows of a unit", func(n int) string { return write("r.csv", lines("who,x,y\n", "a,0.5,1\n", n)) }},
	}
	for _, f := range forms {
		for _, workers := range []int{1, 3} {
			opt := Options{Formats: TestFormats, workers: workers}
			if _, _, err := Read(context.Background(), admit(), f.schema, f.path(f.most), opt); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
			if _, _, err := Read(context.Background(), admit(), f.schema, f.path(f.most+1), opt); err == nil || !strings.Contains(err.Error(), f.want) {
				t.Errorf("%s: %v, want %s", f.name, err, f.want)
			}
			opt.ByRow, opt.Unlabeled = true, true // for predictions
			if f.name == "packed" {
				continue
			}
			if _, _, err := Read(context.Background(), admit(), f.schema, f.path(f.most+1), opt); err != nil {
				t.Errorf("%s for predictions: %v", f.name, err)
			}
		}
		if f.most > 40 {
			continue
		}
		if _, _, err := Read(context.Background(), admit(), f.schema, f.path(40), Options{Formats: TestFormats, Rows: 39}); err == nil || !strings.Contains(err.Error(), "exactly 39") {
			t.Errorf("%s: %v", f.name, err)
		}
	}
	for rows, want := range map[int]bool{624: false, 625: true} { // Arrow: 5000 rows
		s := mustParse(t, strings.Replace(small, "rows: 100", fmt.Sprint("rows: ", rows), 1))
		if _, _, err := Read(context.Background(), admit(), s, filepath.Join(arrowFiles, "zstd.arrow"), Options{Formats: TestFormats}); (err == nil) != want {
			t.Errorf("Arrow, %d declared rows: %v", rows, err)
		}
	}
	path := write("t.csv", lines("x,y\n", "0.5,1\n", 41)) // of test rows
	if _, _, err := Read(context.Background(), admit(), plain, path, Options{Formats: TestFormats}, Empty(plain)); err != nil {
		t.Error(err)
	}
	if _, err := Pack(context.Background(), admit(), plain, write("t.csv", lines("x,y\n", "0.5,1\n", 41)), filepath.Join(dir, "never"), Options{Formats: TestFormats}); err == nil || !strings.Contains(err.Error(), tooMany) {
		t.Error(err)
	}
}

// TestLoadLimitComesEarly: the rows beyond the limit are not read. The table of 20 million rows has some kilobytes.
func TestLoadLimitComesEarly(t *testing.T) {
	e, _ := zstd.NewWriter(nil)
	path := filepath.Join(t.TempDir(), "t.csv.zst")
	row := strings.Repeat("0.5,1\n", 1<<17)
	b := e.EncodeAll([]byte("x,y\n"), nil)
	frame := e.EncodeAll([]byte(row), nil)
	for range 160 {
		b = append(b, frame...)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := &countedContext{Context: context.Background(), last: 1 << 30}
	if _, _, err := Read(ctx, admit(), mustParse(t, fewRows), path, Options{Formats: TestFormats}); err == nil || !strings.Contains(err.Error(), "more than 8 times") {
		t.Error(err)
	}
	if n := ctx.n.Load(); n > 500 { // each reads 32 kB or more
		t.Errorf("%d reads", n)
	}
}
