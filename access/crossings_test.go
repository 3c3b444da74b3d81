package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/crossings"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/schema"
)

// The factors of the crossings. Each row of the array has one value of each.
var factors = [][]string{
	{"train", "test", "score", "lab", "simulate", "verify", "check", "predict", "pack", "worker", "party"},
	{"csv", "semicolons", "gzip", "parquet", "jsonl", "sqlite", "packed", "packed elsewhere", "files", "shards"},
	crossings.Relations,
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

// crossedRows is the size of the protected table.
const crossedRows = 300

func crossedSchema(t *testing.T, dataset, form string) *schema.Schema {
	t.Helper()
	text := "dataset: " + dataset + "\nrows: 300\n"
	if form == "semicolons" {
		text += "format: {delimiter: \";\"}\n"
	}
	s, err := schema.Parse("s", []byte(text+"columns:\n  - {name: x, type: numeric, min: 0, max: 20000}\n  - {name: y, type: label, classes: [no, yes]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written writes rows in a form, and returns the paths: several for shards.
func (w *world) written(form, relation string) []string {
	w.Helper()
	plain := form
	if strings.HasPrefix(form, "packed") {
		plain = "csv"
	}
	paths, err := crossings.Of(relation, crossedRows).Write(w.dir, plain)
	w.must(err)
	switch {
	case form == "files":
		return []string{strings.Join(paths, data.Plus)}
	case plain == form:
		return paths
	}
	here, dst := os.Getenv("XDG_STATE_HOME"), filepath.Join(w.dir, "t.pack")
	gate := w.gate()
	if form == "packed elsewhere" {
		w.Setenv("XDG_STATE_HOME", w.TempDir())
		gate.Ledger = nil
	}
	_, err = gate.Pack(w.Context(), crossedSchema(w.T, "clinic", form), paths[0], dst, data.Options{})
	w.must(err)
	w.Setenv("XDG_STATE_HOME", here)
	return []string{dst}
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
	array := crossings.Pairwise(factors, func(c []string) bool { return senseless(c[0], c[1], c[2]) == "" })
	for _, c := range array {
		t.Run(strings.Join(c, ", "), func(t *testing.T) {
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
				train, e := g.Open(t.Context(), Train, crossedSchema(t, dataset, ""), w.file("train.csv", crossings.Range(1500, 1800).Text()), data.Options{})
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
