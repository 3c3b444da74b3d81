// Package crossings is for tests of the gate to tables: arrays of cases that cover each pair of values, and tables that
// relate to a protected one, in the forms that a table may have.
package crossings

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	_ "modernc.org/sqlite"
)

// Pairwise returns cases with one value of each factor that cover each pair of values of two factors, greedily: each is
// the sensible case with most pairs that none before it has, and of these the one whose other pairs are rarest.
func Pairwise(factors [][]string, sensible func(c []string) bool) (cases [][]string) {
	var left [][]int // with pairs that no case has
	for c := make([]int, len(factors)); ; {
		if sensible(named(factors, c)) {
			left = append(left, slices.Clone(c))
		}
		i := len(c) - 1
		for ; i >= 0 && c[i] == len(factors[i])-1; i-- {
			c[i] = 0
		}
		if i < 0 {
			break
		}
		c[i]++
	}
	type pair struct{ i, j, a, b int }
	seen := map[pair]int{}
	pairs := func(c []int) iter.Seq[pair] {
		return func(yield func(pair) bool) {
			for j := range c {
				for i := range j {
					if !yield(pair{i, j, c[i], c[j]}) {
						return
					}
				}
			}
		}
	}
	for {
		var best []int
		fresh, often := 0, 0
		all := left
		left = left[:0]
		for _, c := range all {
			f, o := 0, 0
			for p := range pairs(c) {
				if o += seen[p]; seen[p] == 0 {
					f++
				}
			}
			if f > 0 {
				left = append(left, c)
			}
			if f > fresh || f == fresh && o < often {
				best, fresh, often = c, f, o
			}
		}
		if fresh == 0 {
			return cases
		}
		for p := range pairs(best) {
			seen[p]++
		}
		cases = append(cases, named(factors, best))
	}
}

func named(factors [][]string, c []int) (names []string) {
	for i, k := range c {
		names = append(names, factors[i][k])
	}
	return names
}

// Relations are how a table may relate to the protected one.
var Relations = []string{"same", "reordered", "one more", "one less", "half", "columns reordered", "4 %", "disjoint"}

// A Table has a number x, which is different in each row, and a label y, no or yes.
type Table struct {
	Rows   []int // the numbers
	Turned bool  // y comes first
}

// Of returns a table that relates in that way to the protected one, whose rows are 0 to n-1. Others have rows below
// 11n.
func Of(relation string, n int) (t Table) {
	from, to := 0, n
	switch relation {
	case "one more":
		to = n + 1
	case "one less":
		to = n - 1
	case "half":
		to = n / 2
	case "4 %":
		from, to = n*96/100, n*196/100
	case "disjoint":
		from, to = 10*n, 11*n
	}
	t = Range(from, to)
	if t.Turned = relation == "columns reordered"; relation == "reordered" {
		slices.Reverse(t.Rows)
	}
	return t
}

// Range is the table of the rows from a number up to another one.
func Range(from, to int) (t Table) {
	for i := from; i < to; i++ {
		t.Rows = append(t.Rows, i)
	}
	return t
}

func (t Table) columns() []string {
	if t.Turned {
		return []string{"y", "x"}
	}
	return []string{"x", "y"}
}

func label(i int) string { return []string{"no", "yes"}[i%2] }

// Text is the table as CSV.
func (t Table) Text() string { return t.text(",", "", "\n") }

func (t Table) text(comma, quote, end string) string {
	var s strings.Builder
	line := func(cells ...string) {
		s.WriteString(quote + strings.Join(cells, quote+comma+quote) + quote + end)
	}
	line(t.columns()...)
	for _, i := range t.Rows {
		cells := []string{fmt.Sprint(i), label(i)}
		if t.Turned {
			slices.Reverse(cells)
		}
		line(cells...)
	}
	return s.String()
}

// Write writes the table below dir, in a form: as csv, or with semicolons, no header, or all cells quoted; as gzip,
// parquet, jsonl or sqlite; in two files or shards.
func (t Table) Write(dir, form string) (paths []string, err error) {
	one := func(name string, text []byte) ([]string, error) {
		path := filepath.Join(dir, name)
		return []string{path}, os.WriteFile(path, text, 0o600)
	}
	type row struct {
		X int64  `parquet:"x"`
		Y string `parquet:"y"`
	}
	type turned struct {
		Y string `parquet:"y"`
		X int64  `parquet:"x"`
	}
	switch form {
	case "csv":
		return one("t.csv", []byte(t.Text()))
	case "semicolons":
		return one("t.csv", []byte(t.text(";", "", "\n")))
	case "no header":
		_, text, _ := strings.Cut(t.Text(), "\n")
		return one("t.csv", []byte(text))
	case "quoted":
		return one("t.csv", []byte("\ufeff"+t.text(",", `"`, "\r\n")))
	case "gzip":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(t.Text()))
		z.Close()
		return one("t.csv.gz", b.Bytes())
	case "jsonl":
		var s strings.Builder
		for _, i := range t.Rows {
			fmt.Fprintf(&s, "{\"x\": %d, \"y\": %q}\n", i, label(i))
		}
		return one("t.jsonl", []byte(s.String()))
	case "parquet":
		var rows []row
		var turnedRows []turned
		for _, i := range t.Rows {
			rows, turnedRows = append(rows, row{int64(i), label(i)}), append(turnedRows, turned{label(i), int64(i)})
		}
		var b bytes.Buffer
		if err = parquet.Write(&b, rows); t.Turned {
			b.Reset()
			err = parquet.Write(&b, turnedRows)
		}
		paths, err2 := one("t.parquet", b.Bytes())
		return paths, errors.Join(err, err2)
	case "sqlite":
		path := filepath.Join(dir, "t.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			return nil, err
		}
		return []string{"sqlite:" + path + "?table=t"}, errors.Join(t.Insert(db, "t"), db.Close())
	case "files", "shards": // alternately, so that each relates as the whole does
		var half [2]Table
		for k := range half {
			half[k].Turned = t.Turned
			for i := k; i < len(t.Rows); i += 2 {
				half[k].Rows = append(half[k].Rows, t.Rows[i])
			}
		}
		for k, h := range half {
			path, err := one(fmt.Sprintf("t-%d.csv", k+1), []byte(h.Text()))
			if err != nil {
				return nil, err
			}
			paths = append(paths, path...)
		}
		return paths, nil
	}
	return nil, fmt.Errorf("no table is written as %s", form)
}

// Insert makes a table of a database.
func (t Table) Insert(db *sql.DB, name string) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	types := map[string]string{"x": "x integer", "y": "y text"}
	c := t.columns()
	if _, err := tx.Exec(fmt.Sprintf("CREATE TABLE %s (%s, %s)", name, types[c[0]], types[c[1]])); err != nil {
		return err
	}
	for _, i := range t.Rows {
		if _, err := tx.Exec(fmt.Sprintf("INSERT INTO %s (x, y) VALUES ($1, $2)", name), i, label(i)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
