package source_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
)

// TestParquetOfManyColumns: what a column needs beside its pages is small. With buffers of its own it took 99 kB of this table, and three pages of a large one.
func TestParquetOfManyColumns(t *testing.T) {
	const columns, rows, most = 1000, 40, 40 << 10
	group := parquet.Group{"y": parquet.Leaf(parquet.Int32Type)}
	for i := range columns {
		group["x"+strconv.Itoa(i)] = parquet.Leaf(parquet.FloatType)
	}
	path := filepath.Join(t.TempDir(), "wide.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[any](f, parquet.NewSchema("wide", group))
	at, _ := w.Schema().Lookup("y")
	for k := range rows {
		row := make(parquet.Row, columns+1)
		for i := range row {
			row[i] = parquet.FloatValue(float32(k)/rows).Level(0, 0, i)
		}
		row[at.ColumnIndex] = parquet.Int32Value(int32(k%2)).Level(0, 0, at.ColumnIndex)
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s := parse(t, "dataset: wide\nrows: 40\nunit: record\ncolumns:\n  - {names: x0..x999, type: numeric, min: 0, max: 1}\n"+
		"  - {name: y, type: label, classes: [0, 1]}\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read := 0
	if _, err := data.Stream(t.Context(), &datatest.Gate{}, s, path, data.Options{Formats: registered}, func() func(*data.Block) error {
		return func(b *data.Block) error { read += b.N; return nil }
	}); err != nil || read != rows {
		t.Fatal(read, err)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / columns; n > most {
		t.Errorf("a column takes %d bytes of buffers and values, more than %d", n, most)
	} else {
		t.Logf("%d bytes a column", n)
	}
}
