package source_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
)

// TestMeaningsAcrossFormats: rows with truth values, days, times and missing values have the same hashes in a file of text,
// however a program writes them, and in one that has types.
func TestMeaningsAcrossFormats(t *testing.T) {
	const text = "dataset: d\nrows: 3\ncolumns:\n  - {name: age, type: numeric, min: 0, max: 100}\n  - {name: smoker, type: ignore}\n  - {name: seen, type: ignore}\n" +
		"  - {name: born, type: ignore}\n  - {name: note, type: ignore}\n  - {name: y, type: label, classes: [a, b]}\n"
	s, dir := parse(t, text), t.TempDir()
	type row struct {
		Age    float64 `parquet:"age"`
		Smoker bool    `parquet:"smoker"`
		Seen   int64   `parquet:"seen,timestamp(microsecond)"`
		Born   int32   `parquet:"born,date"`
		Note   *string `parquet:"note,optional"`
		Y      string  `parquet:"y"`
	}
	note, day := "red", 24*time.Hour
	at := time.Date(2021, 11, 25, 3, 9, 53, 250_000_000, time.UTC)
	rows := []row{{1, true, at.UnixMicro(), 20000, &note, "a"}, {2, false, at.Truncate(day).UnixMicro(), 0, nil, "b"}, {3.5, true, at.Add(day).UnixMicro(), -1, nil, "a"}}
	typed := filepath.Join(dir, "t.parquet")
	if err := parquet.WriteFile(typed, rows); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "t.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"CREATE TABLE t (age REAL, smoker BOOLEAN, seen TEXT, born TEXT, note TEXT, y TEXT)",
		"INSERT INTO t VALUES (1, 1, '2021-11-25 03:09:53.25', '2024-10-04', 'red', 'a'), (2, 0, '2021-11-25', '1970-01-01', NULL, 'b'), (3.5, 1, '2021-11-26 03:09:53.25', '1969-12-31', NULL, 'a')"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	hashes := func(path string) []uint64 {
		g := &datatest.Gate{Key: &data.RowKey{Secret: []byte("key")}}
		tab, _, err := data.Read(context.Background(), g, s, path, data.Options{Formats: registered})
		if err != nil {
			t.Fatal(err)
		}
		tab.Close()
		return slices.Concat(g.Content.Rows...)
	}
	want := hashes(typed)
	if len(want) != 3 || want[0] == want[1] {
		t.Fatalf("hashes %x", want)
	}
	for name, path := range map[string]string{
		"pandas": put(t, dir, "p.csv", "age,smoker,seen,born,note,y\n1.0,True,2021-11-25 03:09:53.250,2024-10-04,red,a\n2.0,False,2021-11-25 00:00:00.000,1970-01-01,NA,b\n3.5,True,2021-11-26 03:09:53.250,1969-12-31,NA,a\n"),
		"R":      put(t, dir, "r.csv", "age,smoker,seen,born,note,y\n1,TRUE,2021-11-25 03:09:53.25,2024-10-04,red,a\n2,FALSE,2021-11-25,1970-01-01,,b\n3.5,TRUE,2021-11-26T03:09:53.25Z,1969-12-31,NULL,a\n"),
		"JSON": put(t, dir, "t.jsonl", `{"age": 1, "smoker": true, "seen": "2021-11-25T03:09:53.25Z", "born": "2024-10-04", "note": "red", "y": "a"}
{"age": 2, "smoker": false, "seen": "2021-11-25T00:00:00Z", "born": "1970-01-01", "note": null, "y": "b"}
{"age": 3.5, "smoker": true, "seen": "2021-11-26T03:09:53.25Z", "born": "1969-12-31", "note": null, "y": "a"}
`),
		"database": filepath.Join(dir, "t.db") + "?table=t",
	} {
		if got := hashes(path); !slices.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
}
