package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/schema"
)

// TestWorkers: neither the number of workers nor where a file is cut changes the table, its counts, the
// hashes of its rows or the error.
func TestWorkers(t *testing.T) {
	tb := t
	csv := mustParse(t, small)
	multiline := mustParse(t, lined)
	units := mustParse(t, strings.Replace(strings.Replace(small, "rows: 100", "units: 100\nunit: {name: patient, rows: 2}", 1), "{name: id, type: ignore}", "{name: id, type: unit}", 1))
	trim := mustParse(t, strings.Replace(small, "{", `{header: false, trim: true, comment: "|",`, 1))
	sparse := mustParse(t, svm)
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]*schema.Schema{csv, multiline, units, trim, sparse}).Draw(t, "schema")
		lines := []string{"1,red,x,2,yes", "3,green,y,4,no", "-1,mauve,z,1e9,no", `2,"red","a ""b"", c",3,yes`, `2,"red","a ""b"" c",3,"no."`, "", "\r", "| 1,2", "1,red,\"x,2,yes", "bad,red,x,2,yes",
			"1,red,\"x\ny\",2,yes", "1,red,\"x\r\n\r\n| \"\",,\",2,\"no\"", "1,\"red", "\",2,yes", "1,red,x,2", "1,red,,2,no", "1,red,\xff,2,no", "1,red,\"x\"y,2,no", "1,red,ü,2,maybe"}
		head := "age,colour,id,gain,sick\n"
		if s == sparse {
			lines = []string{"+1 1:1 3:-2 5:0", "-1 2:9e0 \t4:1", "1", "", " \r", "# 1", "1 3:1 2:1", "1 1:x", "2 1:1", "1 9:1", "-1 4:1e-9"}
		}
		if s == sparse || s == trim {
			head = ""
		}
		// Mostly good rows, so that a table is not always an error.
		line := rapid.OneOf(rapid.SampledFrom(lines[:4]), rapid.SampledFrom(lines[:4]), rapid.SampledFrom(lines[:4]), rapid.SampledFrom(lines))
		if rapid.Bool().Draw(t, "good") {
			line = rapid.SampledFrom(lines[:3])
		}
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		content := head + strings.Join(rapid.SliceOfN(line, 0, 60).Draw(t, "lines"), end)
		if rapid.Bool().Draw(t, "gzip") {
			content = zipped(content)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c := *s
		if rapid.Bool().Draw(t, "drop") {
			c.OnBadRow = schema.BadRowDrop
		}
		opt := Options{KeepBad: rapid.Bool().Draw(t, "keep"), Unlabeled: rapid.Bool().Draw(t, "unlabeled"), Rows: rapid.SampledFrom([]int{0, 0, 0, 5}).Draw(t, "rows")}
		load := func(workers, piece int) []any {
			opt.workers, opt.piece = workers, piece
			g := &testGate{key: testKey}
			table, stats, err := readTable(context.Background(), g, &c, path, opt)
			if table != nil {
				checkTable(tb, table)
			}
			return []any{table, stats, g.content, fmt.Sprint(err)}
		}
		want := load(1, 1<<20)
		for _, workers := range []int{1, 2, 5} {
			if got := load(workers, rapid.IntRange(1, 300).Draw(t, "piece")); !reflect.DeepEqual(got, want) {
				t.Fatalf("%d workers: %v, want %v\n%q", workers, got, want, content)
			}
		}
	})
}
