package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/race"
)

const arrowFiles = "source/testdata/arrow"

// TestReadArrow reads files that pyarrow 26 and polars 2.1 wrote with testdata/arrow.py: their columns are in another order, with
// nulls and a list in an ignored column. The tables are those of the CSV, bit for bit.
func TestReadArrow(t *testing.T) {
	s := mustParse(t, small)
	for name, rows := range map[string]int{
		"plain.arrow":       300,  // several batches
		"stream.arrows":     300,  // without a footer, metadata of version 4
		"delta.arrows":      300,  // a dictionary that grows
		"polars.arrow":      300,  // views of text
		"polars-zstd.arrow": 5000, // and a dictionary, compressed
		"lz4.arrow":         5000, // dictionaries, compressed; a batch of several pieces
		"zstd.arrow":        5000,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(arrowFiles, name)
			want, counts := mustRead(t, s, fileText(rows), Options{Rows: rows})
			got, stats, err := readTable(context.Background(), admit(), s, path, Options{Rows: rows})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, sameTable); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(counts, stats); d != "" {
				t.Error(d)
			}
			b, err := Skeleton(context.Background(), path, "")
			if err != nil || !bytes.Contains(b, []byte(`- {name: "colour", type: }`)) {
				t.Errorf("%v\n%s", err, b)
			}
		})
	}
}

// TestDescribeArrow: names and types, of every type that there is a text for.
func TestDescribeArrow(t *testing.T) {
	d, err := Describe(context.Background(), filepath.Join(arrowFiles, "types.arrow"), TestFormats)
	if err != nil {
		t.Fatal(err)
	}
	want := &Description{Form: "Arrow", Fields: []FieldName{{"a", "bool"}, {"b", "uint64"}, {"c", "date"}, {"d", "date"}, {"e", "decimal"}, {"f", "float32"}, {"g", "float64"}, {"h", "int8"},
		{"i", "null"}, {"j", "string view"}, {"k", "binary"}, {"l", "int64"}, {"m", "dictionary of date"}, {"n", "timestamp"}, {"o", "decimal"}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

// TestFeather1: Feather of version 1 is another format.
func TestFeather1(t *testing.T) {
	path := filepath.Join(arrowFiles, "v1.feather")
	_, _, err := readTable(context.Background(), admit(), mustParse(t, small), path, Options{})
	if err == nil || !strings.Contains(err.Error(), "a Feather file of version 1") || !strings.Contains(err.Error(), "to_parquet('v1.parquet')") {
		t.Error(err)
	}
}

// TestDamagedArrow: no byte that is damaged makes a panic, or an error that is none of the input.
func TestDamagedArrow(t *testing.T) {
	race.Skip(t)
	s := mustParse(t, small)
	path := filepath.Join(t.TempDir(), "a")
	for name, step := range map[string]int{"few.arrow": 5, "delta.arrows": 97, "polars.arrow": 231, "few-lz4.arrows": 5, "zstd.arrow": 2011, "polars-zstd.arrow": 1009} {
		whole, err := os.ReadFile(filepath.Join(arrowFiles, name))
		if err != nil {
			t.Fatal(err)
		}
		for i := 8; i < len(whole); i += step {
			for _, b := range [][]byte{whole[:i], append(append(bytes.Clone(whole[:i]), whole[i]^0x55), whole[i+1:]...)} {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
				if err == nil {
					checkTable(t, tab)
				} else if !errors.As(err, new(*config.Error)) {
					t.Fatalf("%s, byte %d: %T %v", name, i, err, err)
				}
			}
		}
	}
}

// FuzzArrow: no content makes a panic, or an error with one of its values.
func FuzzArrow(f *testing.F) {
	s := mustParse(f, small)
	dir := f.TempDir()
	for _, name := range []string{"few.arrow", "few-lz4.arrows", "few-polars.arrow", "v1.feather"} {
		b, err := os.ReadFile(filepath.Join(arrowFiles, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint(len(b)), false)
		f.Add(b, uint(len(b)/2), true)
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop bool) { fuzzRead(t, dir, s, content, at, drop) })
}

// TestArrowNumbersAreNotBelieved: any number of rows, bytes or values in the metadata that is made huge costs no memory.
func TestArrowNumbersAreNotBelieved(t *testing.T) {
	race.Skip(t)
	s := mustParse(t, small)
	path := filepath.Join(t.TempDir(), "a")
	var before, after runtime.MemStats
	for _, name := range []string{"few.arrow", "few-lz4.arrows", "few-polars.arrow"} {
		whole, err := os.ReadFile(filepath.Join(arrowFiles, name))
		if err != nil {
			t.Fatal(err)
		}
		read := func(b []byte) (uint64, error) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&before)
			_, _, err := readTable(context.Background(), admit(), s, path, Options{})
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc, err
		}
		usual, err := read(whole)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, huge := range []uint64{1 << 28, 1 << 40, 1<<63 - 8} {
			size := 8
			if huge < 1<<32 {
				size = 4
			}
			for i := 0; i+8 <= len(whole); i += size {
				b := bytes.Clone(whole)
				binary.LittleEndian.PutUint64(b[i:], huge)
				copy(b[i+size:], whole[i+size:])
				took, err := read(b)
				if err != nil {
					refused++
				}
				if took > usual+32<<20 {
					t.Fatalf("%s, byte %d: %d MB of memory for a file of %d bytes", name, i, took>>20, len(b))
				}
			}
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}
