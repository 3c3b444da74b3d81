package source_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/schema/schematest"
)

// An example is a table in a format.
type example struct {
	write   func(t *testing.T, dir string, n int) string // writes n rows and returns the table's path
	few     int                                          // rows of a small table
	many    int                                          // rows of one that is read in pieces
	schema  string
	classes string // in the schema: those that the labels have
	fewer   string // classes that lack one of the labels
	cell    string // that label, which no message may show
}

// named are the examples of tables of named columns: they have the rows of exampleRows, under schematest.Small.
func named(write func(t *testing.T, dir string, n int) string) example {
	return example{write, 12, 20000, schematest.Small, `["no", "yes"]`, `["no", "never"]`, "yes."}
}

// examples are one for each format, by the name of the format. The suite needs one for a new format: a function that
// writes exampleRows in it.
var examples = map[string]example{
	"a CSV file": named(func(t *testing.T, dir string, n int) string {
		return put(t, dir, "t.csv",
			exampleCSV(n))
	}),
	"a JSON Lines file": named(exampleJSON),
	"a Parquet file":    named(exampleParquet),
	"an Arrow file": {func(_ *testing.T, _ string, n int) string {
		return map[int]string{12: "testdata/arrow/few.arrow", 5000: "testdata/arrow/lz4.arrow"}[n]
	}, 12, 5000, schematest.Small, `["no", "yes"]`, `["no", "never"]`, "yes."},
	"a table of a database": named(exampleSQLite),
	"a LIBSVM file": {func(t *testing.T, dir string, n int) string {
		return put(t, dir, "t.svm", strings.Repeat("-1 1:0.25 4:1\n+1 2:-1\n", n/2))
	}, 12, 20000, schematest.SVM, `["-1", "+1"]`, `["-1", "2"]`, "+1"},
	"images (IDX)": {exampleIDX, 12, 20000, schematest.Pictures, `["7", "3"]`, `["3", "9"]`, "7"},
}

func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var exampleColumns = []string{"age", "colour", "id", "gain", "sick"}

// exampleRows are those of testdata/arrow.py; an empty cell has no value.
func exampleRows(n int) [][]string {
	rows := make([][]string, n)
	for i := range rows {
		gain := strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", float64(i*i%200000)/100), "0"), ".")
		row := []string{fmt.Sprint((i*7)%130 - 4), []string{"red", "green", "mauve", "1.0"}[i%4], fmt.Sprint(i), gain, "no"}
		if i%37 == 5 {
			row[0] = ""
		}
		if i%41 == 3 {
			row[1] = ""
		}
		if i*i%7 < 3 {
			row[4] = "yes."
		}
		rows[i] = row
	}
	return rows
}

func exampleCSV(n int) string {
	var b strings.Builder
	for _, row := range append([][]string{exampleColumns}, exampleRows(n)...) {
		b.WriteString(strings.Join(row, ",") + "\n")
	}
	return b.String()
}

func exampleJSON(t *testing.T, dir string, n int) string {
	var b strings.Builder
	for _, row := range exampleRows(n) {
		object := map[string]any{}
		for j, cell := range row {
			if object[exampleColumns[j]] = any(cell); cell == "" {
				object[exampleColumns[j]] = nil
			}
		}
		line, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return put(t, dir, "t.jsonl", b.String())
}

func exampleParquet(t *testing.T, dir string, n int) string {
	type row struct {
		Sick  *string `parquet:"sick,optional"`
		Gain  *string `parquet:"gain,optional"`
		ID    *string `parquet:"id,optional"`
		Age   *string `parquet:"age,optional"`
		Color *string `parquet:"colour,optional,dict"`
	}
	rows := make([]row, n)
	for i, cells := range exampleRows(n) {
		to := []**string{&rows[i].Age, &rows[i].Color, &rows[i].ID, &rows[i].Gain, &rows[i].Sick}
		for j := range cells {
			if cells[j] != "" {
				*to[j] = &cells[j]
			}
		}
	}
	path := filepath.Join(dir, "t.parquet")
	if err := parquet.WriteFile(path, rows, parquet.MaxRowsPerRowGroup(7000)); err != nil {
		t.Fatal(err)
	}
	return path
}

func exampleSQLite(t *testing.T, dir string, n int) string {
	path := filepath.Join(dir, "t.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(query string, values ...any) {
		if _, err := db.Exec(query, values...); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE TABLE t (" + strings.Join(exampleColumns, ", ") + ")")
	for rows := exampleRows(n); len(rows) > 0; {
		const most = 1000 // rows of a statement
		var values []any
		part := rows[:min(most, len(rows))]
		for _, row := range part {
			for _, cell := range row {
				if values = append(values, cell); cell == "" {
					values[len(values)-1] = nil
				}
			}
		}
		do("INSERT INTO t VALUES "+strings.TrimSuffix(strings.Repeat("(?,?,?,?,?),", len(part)), ","), values...)
		rows = rows[len(part):]
	}
	return path + "?table=t"
}

func exampleIDX(t *testing.T, dir string, n int) string {
	images, labels := []byte{0, 0, 8, 3}, []byte{0, 0, 8, 1}
	for _, k := range []int{n, 2, 3} {
		images = binary.BigEndian.AppendUint32(images, uint32(k))
	}
	labels = binary.BigEndian.AppendUint32(labels, uint32(n))
	for i := range n {
		images, labels = append(images, 1, 2, 3, byte(i), 5, 6), append(labels, []byte{7, 3}[i%2])
	}
	put(t, dir, "train-labels-idx1-ubyte", string(labels))
	return put(t, dir, "train-images-idx3-ubyte", string(images))
}

// registered are the formats of this module; tests add others.
var registered = source.Formats()

// TestConformance is the suite of formats: each one of the registry passes it, and a failure says what to write.
func TestConformance(t *testing.T) {
	for _, f := range registered {
		t.Run(f.Name, func(t *testing.T) {
			e, ok := examples[f.Name]
			if !ok {
				t.Fatalf("the suite has no table of the format %q; add to examples, data/source/conformance_test.go, %q: "+
					"named(func that writes exampleRows in this format and returns the path)", f.Name, f.Name)
			}
			if (f.Open == nil) == (f.Divide == nil) {
				t.Fatal("the Format needs Open, for a table that is read row by row, or Divide, for one that all cores read in " +
					"pieces; write one of the two")
			}
			checkClaim(t, f, e)
			checkRows(t, e)
			checkStream(t, e)
			checkFaults(t, e)
			checkBytes(t, e)
		})
	}
}

// load reads a table under the example's schema, without its limit of rows; change changes the schema.
func (e example) load(t *testing.T, ctx context.Context, path string, opt data.Options, change ...string) (*data.Table,
	*data.Content, *data.LoadStats, error) {
	t.Helper()
	text := strings.Replace(strings.Replace(e.schema, "rows: 100\n", "rows: 20000\n", 1), "rows: 3\n", "rows: 20000\n", 1)
	g := &datatest.Gate{Key: &data.RowKey{Secret: []byte("key")}}
	opt.Formats = registered
	tab, stats, err := data.Read(ctx, g, parse(t, strings.NewReplacer(change...).Replace(text)), path, opt)
	return tab, g.Content, stats, err
}

// checkClaim: a format claims its own tables and no others.
func checkClaim(t *testing.T, f data.Format, own example) {
	own.checkEnd(t, f)
	if f.Is == nil {
		if f.Kind == "" {
			t.Error("the Format has no Is, so it would read every table of named columns that no other format claims, as CSV " +
				"does; write Is")
		}
		return
	}
	for name, e := range examples {
		path := e.write(t, t.TempDir(), e.few)
		head, _ := os.ReadFile(path) // a database has none
		if got, want := f.Is(path, head[:min(512, len(head))]), name == f.Name; got != want {
			t.Errorf("Is says %v of %s; it must be true of tables in this format alone, by how the content begins", got, name)
		}
	}
}

// checkEnd: a file is known as a table by its name.
func (e example) checkEnd(t *testing.T, f data.Format) {
	path := e.write(t, t.TempDir(), e.few)
	if end := filepath.Ext(path); !data.IsDatabase(path) && end != "" && !slices.Contains(f.Ends, end) {
		t.Errorf("the name of a table ends with %s, and Ends of the Format is %q, so that `sotto fit TABLE` takes it for a spec; write "+
			"Ends: []string{%q}", end, f.Ends, end)
	}
}

// checkRows: the table has all rows, in their order, whatever the number of cores; those of named columns are the same
// as in CSV, and so are the hashes of raw rows, by which the gate knows a copy in another format.
func checkRows(t *testing.T, e example) {
	for _, n := range []int{e.few, e.many} {
		path := e.write(t, t.TempDir(), n)
		var first *data.Table
		for _, cores := range []int{1, 3} {
			before := runtime.GOMAXPROCS(cores)
			tab, content, _, err := e.load(t, t.Context(), path, data.Options{})
			runtime.GOMAXPROCS(before)
			if err != nil {
				t.Fatalf("a table of %d rows, by %d cores: %v", n, cores, err)
			}
			if tab.Rows() != n || content.Rows.Len() != n {
				t.Fatalf("a table of %d rows is read as %d, with hashes of %d; Next returns io.EOF after the last row, and gives "+
					"each row to row.Cells, row.Values or the like", n, tab.Rows(), content.Rows.Len())
			}
			if first == nil {
				first = tab
				checkCSV(t, e, tab, content)
			} else if !reflect.DeepEqual(first.Blocks, tab.Blocks) {
				t.Errorf("%d cores read another table of %d rows than one; Piece cuts the rows in their order, and what a piece "+
					"does may not depend on others", cores, n)
			}
		}
	}
	path := e.write(t, t.TempDir(), e.few)
	if tab, _, _, err := e.load(t, t.Context(), path,
		data.Options{Unlabeled: true}); err != nil || tab.Rows() != e.few || tab.Labeled {
		t.Errorf("with Options.Unlabeled, as for predictions, a table of %d rows gives %v; read features alone", e.few, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := e.load(t, ctx, path, data.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the context was canceled, and reading ends with %v; read by Input.File, and return its errors as they are",
			err)
	}
}

// checkStream: blocks that are handed over are those of the table that is kept, with its counts, content and errors; also
// where the table is packed, as float32 or as 16-bit numbers.
func checkStream(t *testing.T, e example) {
	text := strings.Replace(strings.Replace(e.schema, "rows: 100\n", "rows: 20000\n", 1), "rows: 3\n", "rows: 20000\n", 1)
	for _, fewer := range []bool{false, true} {
		if fewer {
			text = strings.Replace(text, e.classes, e.fewer, 1)
		}
		for _, drop := range []bool{false, true} {
			s := text
			if drop {
				s = "on_bad_row: drop\n" + strings.Replace(s, "on_bad_row: stop\n", "", 1)
			}
			sch := parse(t, s)
			path := e.write(t, t.TempDir(), e.many)
			paths := []string{path}
			for _, short := range []bool{false, true} {
				packed := filepath.Join(t.TempDir(), "t.pack")
				if _, err := data.Pack(t.Context(), &datatest.Gate{}, sch, path, packed, data.Options{Coding: data.Coding{Short: short},
					Formats: registered}); err == nil {
					paths = append(paths, packed)
				}
			}
			for _, path := range paths {
				opt := data.Options{KeepBad: true, ByRow: true, Formats: registered}
				kept, streamed := &datatest.Gate{Key: &data.RowKey{Secret: []byte("key")}}, &datatest.Gate{Key: &data.RowKey{Secret: []byte("key")}}
				tab, stats, err := data.Read(t.Context(), kept, sch, path, opt)
				var blocks []*data.Block
				same, streamErr := data.Stream(t.Context(), streamed, sch, path, opt, func() func(*data.Block) error {
					return func(b *data.Block) error {
						blocks = append(blocks, copied(b))
						return nil
					}
				})
				if fmt.Sprint(err) != fmt.Sprint(streamErr) {
					t.Fatalf("a table that is kept ends with %v, one that is streamed with %v", err, streamErr)
				}
				if err != nil {
					continue
				}
				for i, b := range tab.Blocks {
					tab.Blocks[i] = copied(b)
				}
				if !reflect.DeepEqual(tab.Blocks, blocks) || !reflect.DeepEqual(stats, same) || !reflect.DeepEqual(kept.Content, streamed.Content) {
					t.Errorf("%s: blocks, counts or content that are streamed differ from those that are kept", filepath.Base(path))
				}
			}
		}
	}
}

// copied is a block in memory of its own.
func copied(b *data.Block) *data.Block {
	c := *b
	c.X, c.Start, c.Col, c.Val = slices.Clone(b.X), slices.Clone(b.Start), slices.Clone(b.Col), slices.Clone(b.Val)
	c.Y, c.Norm, c.Drop = slices.Clone(b.Y), slices.Clone(b.Norm), slices.Clone(b.Drop)
	return &c
}

// checkCSV compares a table of named columns with the same rows in CSV.
func checkCSV(t *testing.T, e example, tab *data.Table, content *data.Content) {
	t.Helper()
	if e.schema != schematest.Small {
		return
	}
	csv := examples["a CSV file"]
	want, hashes, _, err := csv.load(t, t.Context(), csv.write(t, t.TempDir(), tab.Rows()), data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want.Blocks, tab.Blocks) {
		t.Errorf("the table differs from the same %d rows in CSV, first in %s; a value counts as the text that a CSV file "+
			"has for it, and a cell without one is null", tab.Rows(), firstDifference(want.Blocks, tab.Blocks))
	}
	if same := reflect.DeepEqual(hashes.Rows,
		content.Rows); !same && tab.Rows() == e.few { // the large Arrow file has other ids
		t.Error("hashes of raw rows differ from those of the same rows in CSV, so the gate does not know a copy of the " +
			"table; give row.Cells or row.Values all cells that have text, ignored columns too (Input.Select does), and null for " +
			"one without a value")
	}
}

// firstDifference says where two tables of dense rows differ.
func firstDifference(want, got []*data.Block) string {
	for k, b := range want {
		for i, v := range b.X {
			if got[k].X[i] != v {
				return fmt.Sprintf("row %d, feature %d: %v, in CSV %v", k*data.BlockRows+i/b.Dim+1, i%b.Dim+1, got[k].X[i], v)
			}
		}
		for i, y := range b.Y {
			if got[k].Y[i] != y {
				return fmt.Sprintf("row %d, the label: class %v, in CSV %v", k*data.BlockRows+i+1, got[k].Y[i], y)
			}
		}
	}
	return "what is kept beside features and labels"
}

// checkFaults: a row with a bad label is named without its value, or dropped alone.
func checkFaults(t *testing.T, e example) {
	path := e.write(t, t.TempDir(), e.few)
	_, _, _, err := e.load(t, t.Context(), path, data.Options{}, e.classes, e.fewer)
	var at *config.Error
	switch {
	case !errors.As(err, &at):
		t.Fatalf("a label that the schema does not have gives %v; return the Fault of row.Cells, row.Label or the like "+
			"from Next", err)
	case at.File == "":
		t.Errorf("the error of a bad row, %q, does not name the file; Place returns a config.Error with File, and Line or "+
			"the number of the row", err)
	case strings.Contains(strings.ReplaceAll(err.Error(), filepath.Dir(path), ""), e.cell):
		t.Errorf("the error of a bad row, %q, shows the cell %q; Found and Allowed name kinds, never a value of the table",
			err, e.cell)
	}
	tab, _, stats, err := e.load(t, t.Context(), path, data.Options{KeepBad: true}, e.classes, e.fewer,
		"dataset:", "on_bad_row: drop\ndataset:")
	if err != nil || tab.Rows() != e.few || stats.Dropped == 0 || stats.Dropped == e.few {
		t.Errorf("with on_bad_row: drop, %d rows of which some are bad give %+v, %v; Next returns a Fault for a bad row, "+
			"and an error only if reading cannot go on", e.few, stats, err)
	}
}

// checkBytes: the content hash covers every byte of a file, so a changed byte makes it another table for the ledger.
func checkBytes(t *testing.T, e example) {
	path := e.write(t, t.TempDir(), e.few)
	whole, err := os.ReadFile(path)
	if err != nil {
		return // a table of a database
	}
	_, want, _, err := e.load(t, t.Context(), path, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if e.schema != schematest.Pictures && want.Digest != sha256.Sum256(whole) { // of images it covers the labels too
		t.Error("the content hash is not the SHA-256 of the file; read the file of Input.File alone, from begin to end: " +
			"its bytes go to Input.Sum")
	}
	for what, content := range map[string]string{
		"one byte more at its end": string(whole) + "\n", "a third of it cut off": string(whole[:len(whole)*2/3]),
	} {
		dir := t.TempDir()
		e.write(t, dir, e.few) // of images, their labels
		changed := put(t, dir, filepath.Base(path), content)
		if _, got, _, err := e.load(t, t.Context(), changed, data.Options{}); err == nil && got.Digest == want.Digest {
			t.Errorf("a file with %s has the same content hash, and no error; read the file of Input.File to its end", what)
		}
	}
}

// TestNotations: a CSV file with other marks in its numbers is the table that it is without them, in its rows and in the hashes by which
// the gate knows a copy; a file that a schema makes up is read under it.
func TestNotations(t *testing.T) {
	csv := examples["a CSV file"]
	for _, n := range []int{csv.few, csv.many} {
		plain, content, _, err := csv.load(t, t.Context(), csv.write(t, t.TempDir(), n), data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			format string
			marks  *strings.Replacer
		}{
			{`delimiter: ";", decimal: ","`, strings.NewReplacer(".", ",")},
			{`delimiter: ";", decimal: ",", thousands: "."`, strings.NewReplacer(".", ",", "\x00", ".")},
			{`delimiter: ";", thousands: ",", trim: true`, strings.NewReplacer("\x00", ",")},
			{`thousands: " "`, strings.NewReplacer("\x00", "\u202f")},
		} {
			delimiter := ","
			if strings.Contains(c.format, ";") {
				delimiter = ";"
			}
			rows := [][]string{exampleColumns}
			for _, row := range exampleRows(n) {
				for j, cell := range row {
					if j == 4 { // the label is text with a dot
						continue
					}
					whole, _, _ := strings.Cut(cell, ".")
					if strings.Contains(c.format, "thousands") && len(whole) == 4 && strings.Trim(whole, "0123456789") == "" {
						cell = cell[:1] + "\x00" + cell[1:]
					}
					row[j] = c.marks.Replace(cell)
				}
				rows = append(rows, row)
			}
			var b strings.Builder
			for _, row := range rows {
				b.WriteString(strings.Join(row, delimiter) + "\n")
			}
			tab, got, _, err := csv.load(t, t.Context(), put(t, t.TempDir(), "t.csv", b.String()), data.Options{}, "format: {", "format: {"+c.format+", ")
			if err != nil {
				t.Fatalf("%s: %v", c.format, err)
			}
			if !reflect.DeepEqual(plain.Blocks, tab.Blocks) {
				t.Errorf("%s: the table differs in %s", c.format, firstDifference(plain.Blocks, tab.Blocks))
			}
			if !reflect.DeepEqual(content.Rows, got.Rows) {
				t.Errorf("%s: the gate does not know the rows", c.format)
			}
			s := parse(t, strings.Replace(strings.Replace(csv.schema, "rows: 100\n", "rows: 20000\n", 1), "format: {", "format: {"+c.format+", ", 1))
			s.Column("age").Bounds.Max = 0.5
			var synthetic strings.Builder
			if _, err := data.Synth(s, 500, 1, &synthetic); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(c.format, "decimal") && !strings.Contains(synthetic.String(), ",") {
				t.Errorf("%s: no synthetic number has a comma", c.format)
			}
			made, _, stats, err := csv.load(t, t.Context(), put(t, t.TempDir(), "t.csv", synthetic.String()), data.Options{}, "format: {", "format: {"+c.format+", ")
			if err != nil || made.Rows() != 500 || stats.Dropped > 0 {
				t.Errorf("%s: a synthetic table gives %+v, %v", c.format, stats, err)
			}
		}
	}
}
