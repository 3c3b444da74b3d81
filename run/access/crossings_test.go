package access

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	_ "modernc.org/sqlite"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/run/ledger"
	"github.com/sottodp/sotto/schema"
)

// The factors of the crossings. Each row of the array has one value of each.
var crossings = [4][]string{
	{"train", "test", "score", "lab", "simulate", "verify", "check", "predict", "pack", "worker", "party"},
	{"csv", "semicolons", "gzip", "parquet", "jsonl", "sqlite", "packed", "packed elsewhere", "files", "shards"},
	{"same", "reordered", "one more", "one less", "half", "columns reordered", "4 %", "disjoint"},
	{"own name", "another name", "another ledger", "another state"},
}

// senseless says why there is no such crossing, or "".
func senseless(purpose, form, relation string) string {
	switch {
	case form == "shards" && purpose != "worker":
		return "only workers have shards"
	case form == "jsonl" && relation == "columns reordered":
		return "objects have no order"
	}
	return ""
}

// pairwise covers each pair of values that makes sense, greedily: each row takes the crossing with most pairs that no row has.
func pairwise() (rows [][4]string) {
	var all [][4]string
	for _, p := range crossings[0] {
		for _, f := range crossings[1] {
			for _, r := range crossings[2] {
				for _, l := range crossings[3] {
					if senseless(p, f, r) == "" {
						all = append(all, [4]string{p, f, r, l})
					}
				}
			}
		}
	}
	type pair struct {
		i, j int
		a, b string
	}
	seen := map[pair]bool{}
	fresh := func(row [4]string) (pairs []pair) {
		for j := range row {
			for i := range j {
				if p := (pair{i, j, row[i], row[j]}); !seen[p] {
					pairs = append(pairs, p)
				}
			}
		}
		return pairs
	}
	for {
		var best []pair
		var row [4]string
		for _, c := range all {
			if pairs := fresh(c); len(pairs) > len(best) {
				best, row = pairs, c
			}
		}
		if best == nil {
			return rows
		}
		for _, p := range best {
			seen[p] = true
		}
		rows = append(rows, row)
	}
}

// crossed are the ids of the rows; those of the protected table are 0 to 299.
func crossed(relation string) (ids []int) {
	from, to := 0, 300
	switch relation {
	case "one more":
		to = 301
	case "one less":
		to = 299
	case "half":
		to = 150
	case "4 %":
		from, to = 288, 588
	case "disjoint":
		from, to = 1000, 1300
	}
	for i := from; i < to; i++ {
		ids = append(ids, i)
	}
	if relation == "reordered" {
		slices.Reverse(ids)
	}
	return ids
}

func crossedSchema(t *testing.T, dataset, form string) *schema.Schema {
	t.Helper()
	text := "dataset: " + dataset + "\nrows: 300\n"
	if form == "semicolons" {
		text += "format: {delimiter: \";\"}\n"
	}
	s, err := schema.Parse("s", []byte(text+"columns:\n  - {name: x, type: numeric, min: 0, max: 2000}\n  - {name: y, type: label, classes: [no, yes]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written writes rows in a form, and returns the paths: several for shards.
func (w *world) written(form, relation string) []string {
	w.Helper()
	ids := crossed(relation)
	type record struct {
		X int64  `parquet:"x" json:"x"`
		Y string `parquet:"y" json:"y"`
	}
	type turned struct {
		Y string `parquet:"y"`
		X int64  `parquet:"x"`
	}
	y := func(i int) string { return []string{"no", "yes"}[i%2] }
	columns := []string{"x", "y"}
	if relation == "columns reordered" {
		columns = []string{"y", "x"}
	}
	text := func(ids []int, comma string) string {
		s := strings.Join(columns, comma) + "\n"
		for _, i := range ids {
			if columns[0] == "x" {
				s += fmt.Sprintf("%d%s%s\n", i, comma, y(i))
			} else {
				s += fmt.Sprintf("%s%s%d\n", y(i), comma, i)
			}
		}
		return s
	}
	switch form {
	case "semicolons":
		return []string{w.file("t.csv", text(ids, ";"))}
	case "gzip":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text(ids, ",")))
		w.must(z.Close())
		return []string{w.file("t.csv.gz", b.String())}
	case "jsonl":
		var s strings.Builder
		for _, i := range ids {
			fmt.Fprintf(&s, "{\"x\": %d, \"y\": %q}\n", i, y(i))
		}
		return []string{w.file("t.jsonl", s.String())}
	case "parquet":
		var b bytes.Buffer
		var err error
		if columns[0] == "x" {
			var rows []record
			for _, i := range ids {
				rows = append(rows, record{int64(i), y(i)})
			}
			err = parquet.Write(&b, rows)
		} else {
			var rows []turned
			for _, i := range ids {
				rows = append(rows, turned{y(i), int64(i)})
			}
			err = parquet.Write(&b, rows)
		}
		w.must(err)
		return []string{w.file("t.parquet", b.String())}
	case "sqlite":
		path := filepath.Join(w.dir, "t.db")
		db, err := sql.Open("sqlite", path)
		w.must(err)
		tx, err := db.Begin()
		w.must(err)
		_, err = tx.Exec("CREATE TABLE t (" + strings.Join(columns, ", ") + ")")
		w.must(err)
		for _, i := range ids {
			_, err = tx.Exec("INSERT INTO t (x, y) VALUES (?, ?)", i, y(i))
			w.must(err)
		}
		w.must(errors.Join(tx.Commit(), db.Close()))
		return []string{"sqlite:" + path + "?table=t"}
	case "packed", "packed elsewhere":
		here, dst := os.Getenv("XDG_STATE_HOME"), filepath.Join(w.dir, "t.pack")
		gate := w.gate()
		if form == "packed elsewhere" {
			w.Setenv("XDG_STATE_HOME", w.TempDir())
			gate.Ledger = nil
		}
		_, err := gate.Pack(w.Context(), crossedSchema(w.T, "clinic", form), w.file("t.csv", text(ids, ",")), dst, data.Options{})
		w.must(err)
		w.Setenv("XDG_STATE_HOME", here)
		return []string{dst}
	case "files", "shards":
		half := len(ids) / 2
		one, two := w.file("one.csv", text(ids[:half], ",")), w.file("two.csv", text(ids[half:], ","))
		if form == "files" {
			return []string{one + data.Plus + two}
		}
		return []string{one, two}
	}
	return []string{w.file("t.csv", text(ids, ","))}
}

// crossing is what R24 says: whether the rows are refused.
func crossing(purpose, form, relation, state string) bool {
	matched := relation != "disjoint" && relation != "4 %"
	foreign := form == "packed elsewhere" || form == "packed" && state == "another state"
	if foreign || state == "another state" {
		// Parts and other forms are seen only in row hashes of this machine; a mark is of the decompressed bytes, which a packed table keeps.
		matched = relation == "same" && slices.Contains([]string{"csv", "gzip", "packed", "packed elsewhere"}, form)
	}
	if purpose == "predict" || purpose == "pack" || state == "another ledger" {
		return false
	}
	own := state == "own name"
	switch purpose {
	case "train", "party":
		return matched && !own
	case "worker":
		return matched && !own || foreign && !matched
	case "test":
		return matched
	}
	return matched || own || foreign
}

// state is every file below a directory.
func (w *world) state() string {
	var s strings.Builder
	dir := os.Getenv("XDG_STATE_HOME")
	w.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(&s, "%s %x\n", path, b)
		return err
	}))
	return s.String()
}

// A9: a pairwise covering array of purposes, forms, relations to the protected table and states, against R24.
func TestA9Crossings(t *testing.T) {
	array := pairwise()
	for _, c := range array {
		t.Run(strings.Join(c[:], ", "), func(t *testing.T) {
			purpose, form, relation, state := c[0], c[1], c[2], c[3]
			w := newWorld(t)
			open := func(g *Gate, p Purpose, dataset, path string, train ...*Opened) (*Opened, error) {
				return g.Open(t.Context(), p, crossedSchema(t, dataset, form), path, data.Options{}, train...)
			}
			w.chargeAs(crossedSchema(t, "clinic", ""), w.written("csv", "same")[0], "paid")
			paths := w.written(form, relation)
			dataset := "other"
			switch state {
			case "own name":
				dataset = "clinic"
			case "another ledger":
				w.ledger = newWorldAt(t, w.dir).ledger
			case "another state":
				t.Setenv("XDG_STATE_HOME", t.TempDir())
			}
			before := w.state()
			var err error
			switch purpose {
			case "worker":
				run := w.gate()
				request, e := run.Request(t.Context())
				w.must(e)
				before = w.state() // the key of the row hashes is durable before they are sent
				var digest [32]byte
				var parts [][32]byte
				var sent [][]byte
				for _, path := range paths {
					shard, e := w.gate().OpenShard(t.Context(), request, crossedSchema(t, dataset, form), path, data.Options{})
					if err = e; err != nil {
						break
					}
					digest = shard.Digest()
					parts, sent = append(parts, shard.digests()...), append(sent, shard.Sent())
				}
				if err == nil {
					_, err = run.Remote(t.Context(), Train, crossedSchema(t, dataset, form), digest, parts, sent, nil)
				}
			case "pack":
				if !strings.HasPrefix(form, "packed") {
					_, err = w.gate().Pack(t.Context(), crossedSchema(t, dataset, form), paths[0], filepath.Join(w.dir, "out.pack"), data.Options{})
				}
			case "test":
				g := w.gate()
				train, e := g.Open(t.Context(), Train, crossedSchema(t, dataset, ""), w.file("train.csv", trainText()), data.Options{})
				w.must(e)
				before = w.state()
				_, err = open(g, Test, dataset, paths[0], train)
			default:
				_, err = open(w.gate(), Purpose(purpose), dataset, paths[0])
			}
			refused := errors.Is(err, ErrProtected) || errors.Is(err, ErrWouldEnd) || errors.Is(err, ErrOverlap) || errors.Is(err, ErrCannotTell)
			if err != nil && !refused {
				t.Fatal(err)
			}
			if want := crossing(purpose, form, relation, state); refused != want {
				t.Fatalf("refused: %t, want %t: %v", refused, want, err)
			}
			if !refused {
				return
			}
			if w.state() != before {
				t.Error("a refusal wrote to the state directory")
			}
			if d, err := w.ledger.Dataset(t.Context(), "other"); !errors.Is(err, ledger.ErrUnknownDataset) || w.void("clinic") != nil {
				t.Errorf("a refusal wrote to the ledger: %v, %v", d, err)
			}
		})
	}
	t.Logf("%d rows", len(array))
}

// trainText is a table of others, beside which rows are tested.
func trainText() string {
	var s strings.Builder
	s.WriteString("x,y\n")
	for i := 1500; i < 1800; i++ {
		fmt.Fprintf(&s, "%d,%s\n", i, []string{"no", "yes"}[i%2])
	}
	return s.String()
}
