package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/internal/race"
)

// TestStoredTypes reads a column of each type through each way that has it: the tables that pyarrow 26, pandas 3.1 and polars 2.1
// wrote with testdata/column_types.py. The rows are those of the CSV, bit for bit, or the type is refused, in the same words.
func TestStoredTypes(t *testing.T) {
	race.Skip(t)
	const dir = "source/testdata/types"
	csv, err := os.ReadFile(filepath.Join(dir, "types.csv"))
	if err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(string(csv), "\n")
	readable := strings.Split(header, ",")
	ways, err := filepath.Glob(dir + "/*")
	if err != nil || len(ways) != 14 {
		t.Fatal(ways, err)
	}
	read, refused := 0, 0
	for _, path := range ways {
		d, err := Describe(context.Background(), path, TestFormats)
		if err != nil {
			t.Fatal(err)
		}
		columns := readable
		if d.Fields != nil {
			columns = nil
			for _, f := range d.Fields {
				columns = append(columns, f.Name)
			}
		}
		name := filepath.Base(path)
		for _, column := range columns {
			if column == "sick" {
				continue
			}
			got, _, err := readTable(context.Background(), admit(), mustParse(t, typesSchema(column, columns)), path, Options{Rows: 4})
			holds := refusedType(column)
			if name == "int96.parquet" {
				holds = "timestamps of 96 bits"
			} else if strings.HasPrefix(name, "noted-") {
				holds = "durations; write them as numbers of one unit"
			}
			if holds != "" {
				refused++
				if want := fmt.Sprintf("%s: column %q holds %s", path, column, holds); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
				continue
			}
			read++
			if !slices.Contains(readable, column) {
				t.Fatalf("%s: no texts of %s", name, column)
			}
			want, _, e := readTable(context.Background(), admit(), mustParse(t, typesSchema(column, readable)), filepath.Join(dir, "types.csv"), Options{Rows: 4})
			if err != nil || e != nil {
				t.Fatal(err, e)
			}
			if d := cmp.Diff(want, got, sameTable); d != "" {
				t.Errorf("%s: %s: %s", name, column, d)
			}
		}
	}
	t.Logf("%d columns read, %d refused", read, refused)
}

// refusedType says what the column holds; "": it is read.
func refusedType(column string) string {
	kind, _, _ := strings.Cut(column, "_")
	switch kind {
	case "duration":
		return "durations; write them as numbers of one unit"
	case "time":
		return "times of day without a date; write them as numbers"
	case "interval":
		return "calendar intervals; "
	case "float16":
		return "16-bit floats; write them as float32"
	case "fixed":
		if column == "fixed_binary" {
			return "bytes of a fixed length; "
		}
		return "nested values; "
	case "list", "struct", "map", "union":
		return "nested values; write each part"
	case "run":
		return "run-end encoded values; "
	case "uuid", "bool8":
		return fmt.Sprintf("an extension type, %q; ", "arrow."+kind)
	case "period":
		return `an extension type, "pandas.period"; `
	case "pandas":
		return `an extension type, "pandas.interval"; `
	}
	switch column {
	case "dictionary_duration":
		return "durations; "
	case "decimal_tens":
		return "decimals whose scale is below 0"
	}
	return ""
}

// typesSchema is a schema of those columns that reads one of them.
func typesSchema(column string, all []string) string {
	var b strings.Builder
	b.WriteString("dataset: types\nrows: 4\nformat: {kind: csv, missing: [\"\"]}\nrow_norm: 1\ncolumns:\n  - {name: sick, type: label, classes: [\"no\", \"yes\"]}\n")
	kind, _, _ := strings.Cut(column, "_")
	for _, c := range all {
		says := "type: numeric, min: -200, max: 300, missing: zero"
		switch {
		case c == "sick":
			continue
		case c != column:
			says = "type: ignore"
		case c == "bool":
			says = `type: categorical, levels: ["true", "false"], missing: zero`
		case c == "json":
			says = `type: categorical, levels: ["{}", "null"], missing: zero`
		case kind == "date32" || kind == "date64" || kind == "timestamp" || c == "dictionary_date":
			says = "type: date, min: 1960-01-01, max: 2030-01-01, missing: zero"
		case strings.Contains(c, "string") || strings.Contains(c, "binary"):
			says = `type: categorical, levels: [red, a longer text than twelve bytes, "1.0"], missing: zero`
		}
		fmt.Fprintf(&b, "  - {name: %q, %s}\n", c, says)
	}
	return b.String()
}
