package source_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/schema"
)

// TestWholeLevels: levels that are whole numbers are the same cells in each format and type of column. testdata/levels.arrow and
// levels.parquet are by pyarrow 26:
//
//	v = [1, 2, 10, 1000000, -3, 0]
//	t = pa.table({"f": pa.array(v, pa.float64()), "g": pa.array(v, pa.float32()), "d": pa.array(v, pa.decimal128(9, 2)),
//	    "i": pa.array(v, pa.int64()), "b": pa.array([x % 2 for x in v], pa.float64()), "y": pa.array([x % 2 for x in v], pa.float64())})
func TestWholeLevels(t *testing.T) {
	var text strings.Builder
	text.WriteString("dataset: d\nrows: 6\ncolumns:\n")
	for _, name := range []string{"f", "g", "d", "i"} {
		fmt.Fprintf(&text, "  - {name: %s, type: categorical, levels: [\"1\", \"2\", \"10\", \"1000000\", \"-3\", \"0\"]}\n", name)
	}
	text.WriteString("  - {name: b, type: boolean}\n  - {name: y, type: label, classes: [\"0\", \"1\", none]}\n")
	s := parse(t, text.String())
	read := func(path string, s *schema.Schema) *data.Table {
		t.Helper()
		tab, _, err := data.Read(t.Context(), &datatest.Gate{}, s, path, data.Options{Formats: registered})
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	values := []float64{1, 2, 10, 1000000, -3, 0}
	odd := []float64{1, 0, 0, 0, 1, 0}
	dir := t.TempDir()
	csv := func(format string, number func(float64) string) string {
		var b strings.Builder
		b.WriteString("f;g;d;i;b;y\n")
		for i, v := range values {
			c := number(v)
			fmt.Fprintf(&b, "%s;%s;%[1]s;%[2]s;%s;%s\n", c, c, number(odd[i]), number(odd[i]))
		}
		return put(t, dir, format+".csv", b.String())
	}
	with := func(format string) *schema.Schema {
		return parse(t, strings.Replace(text.String(), "columns:", "format: {delimiter: \";\", "+format+"}\ncolumns:", 1))
	}
	whole := read(csv("whole", func(v float64) string { return fmt.Sprintf("%.0f", v) }), with(""))
	for name, tab := range map[string]*data.Table{
		"decimals":      read(csv("decimals", func(v float64) string { return fmt.Sprintf("%.1f", v) }), with("")),
		"decimal comma": read(csv("comma", func(v float64) string { return strings.Replace(fmt.Sprintf("%.2f", v), ".", ",", 1) }), with(`decimal: ","`)),
		"exponents":     read(csv("exponents", func(v float64) string { return fmt.Sprintf("%g", v) }), with("")),
		"Arrow":         read("testdata/levels.arrow", s),
		"Parquet":       read("testdata/levels.parquet", s),
		"Go's Parquet":  read(levelsParquet(t, dir, values, odd), s),
		"JSON Lines":    read(levelsJSON(t, dir, values, odd), s),
		"SQLite":        read(levelsSQLite(t, dir, values, odd), s),
	} {
		if !reflect.DeepEqual(whole.Blocks, tab.Blocks) {
			t.Errorf("%s: the table differs from whole numbers in %s", name, firstDifference(whole.Blocks, tab.Blocks))
		}
	}
}

func levelsParquet(t *testing.T, dir string, values, odd []float64) string {
	type row struct {
		F float64 `parquet:"f"`
		G float32 `parquet:"g"`
		D float64 `parquet:"d"`
		I int32   `parquet:"i"`
		B float32 `parquet:"b"`
		Y float64 `parquet:"y,dict"`
	}
	var rows []row
	for i, v := range values {
		rows = append(rows, row{v, float32(v), v, int32(v), float32(odd[i]), odd[i]})
	}
	path := filepath.Join(dir, "go.parquet")
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return path
}

func levelsJSON(t *testing.T, dir string, values, odd []float64) string {
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "{\"f\": %.1f, \"g\": %g, \"d\": \"%.2f\", \"i\": %.0f, \"b\": %.1f, \"y\": %.1f}\n", v, v, v, v, odd[i], odd[i])
	}
	return put(t, dir, "t.jsonl", b.String())
}

func levelsSQLite(t *testing.T, dir string, values, odd []float64) string {
	path := filepath.Join(dir, "t.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE t (f REAL, g REAL, d TEXT, i INTEGER, b REAL, y REAL)"); err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if _, err := db.Exec("INSERT INTO t VALUES (?,?,?,?,?,?)", v, v, fmt.Sprintf("%.2f", v), int(v), odd[i], odd[i]); err != nil {
			t.Fatal(err)
		}
	}
	return path + "?table=t"
}
