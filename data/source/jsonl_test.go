package source_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sottodp/sotto/config"
	"golang.org/x/text/encoding/unicode"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/schema"
	"github.com/sottodp/sotto/schema/schematest"
)

func parse(t testing.TB, src string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse("s", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t testing.TB, s *schema.Schema, name, content string, opt data.Options) (*data.Table, *data.LoadStats, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	opt.Formats = source.Formats()
	return data.Read(context.Background(), &datatest.Gate{}, s, path, opt)
}

const csv = `age,colour,id,gain,sick
30,red,a1,2,yes
,green,a2,1.50,no.
7,?,a3,1e3,no
99,pink,a4,,yes
12.5,1.0,a5,10,yes
`

// The same rows as in csv; a column that is left out has no value.
const jsonl = "\ufeff" + `{"age": 30, "colour": "red", "id": "a1", "gain": 2, "sick": "yes"}
{"age": null, "colour": "green", "id": "a2", "gain": 1.50, "sick": "no."}

 {"sick":"no","gain":"1e3","id":"a3","colour":"?","age":7}
{"age": 99, "colour": "pink", "id": "a4", "sick": "yes"}
{"age": "12.5", "colour": 1.0, "id": "a5", "gain": 10, "sick": "yes"}`

// TestJSONLinesEqualCSV: the same rows give the same bits and the same hashes.
func TestJSONLinesEqualCSV(t *testing.T) {
	s := parse(t, schematest.Small)
	want, _, err := read(t, s, "a.csv", csv, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, jsonl)
	z.Close()
	for name, content := range map[string]string{"plain": jsonl, "gzip": packed.String(), "crlf": strings.ReplaceAll(jsonl, "\n", "\r\n")} {
		got, stats, err := read(t, s, "a", content, data.Options{Rows: 5})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(data.Table{})); d != "" || stats.Rows != 5 {
			t.Errorf("%s: %d rows\n%s", name, stats.Rows, d)
		}
	}
	var hashes [2][]uint64
	for i, content := range []string{csv, jsonl} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		g := &datatest.Gate{Key: &data.RowKey{Secret: []byte("key")}}
		if _, _, err := data.Read(context.Background(), g, s, path, data.Options{Formats: source.Formats()}); err != nil {
			t.Fatal(err)
		}
		hashes[i] = slices.Concat(g.Content.Rows...)
	}
	if len(hashes[0]) != 5 || !slices.Equal(hashes[0], hashes[1]) {
		t.Errorf("hashes of raw rows %v of CSV, %v of JSON Lines", hashes[0], hashes[1])
	}
}

const good = `{"age":1,"colour":"red","id":"x","gain":2,"sick":"yes"}` + "\n"

var badLines = []struct{ name, line, want string }{
	{"text", `SECRET`, ":2:1: found text that is not a JSON object"},
	{"list", `["SECRET"]`, ":2:1: found text that is not a JSON object"},
	{"open", `{"age":1`, ":2:10: found an object that is not closed"},
	{"open text", `{"age":"SECRET`, ":2:8: found text that is not JSON"},
	{"number", `{"age":"SECRET","colour":"red","sick":"yes","gain":1}`, ":2:8: column age: found text that is not a number"},
	{"infinite", `{"age":1e999,"colour":"red","sick":"yes","gain":1}`, ":2:8: column age: found a number too large"},
	{"alien", `{"age":1, "SECRET":2}`, ":2:11: found a name that is no column"},
	{"twice", `{"age":1,"age":2}`, ":2:10: found a name a second time"},
	{"nested", `{"age":{"SECRET":1}}`, ":2:8: found a list or an object"},
	{"array", `{"age":[1]}`, ":2:8: found a list or an object"},
	{"behind", `{"age":1} SECRET`, ":2:10: found text after the object"},
	{"label", `{"age":1,"colour":"red","gain":1,"sick":"SECRET"}`, ":2:41: column sick: found a label that is none of the classes"},
	{"no label", `{"age":1,"colour":"red","gain":1}`, ":2: column sick: found a missing value"},
	{"bytes", "{\"age\":\"\xff\"}", ":2: found bytes that are not text"},
	{"zero", `{"age":"\u0000"}`, ":2:8: found bytes that are not text"},
	{"long", `{"id":"` + strings.Repeat("x", 9<<20) + `"}`, ":2: found a line of more than 8 MiB"},
}

// TestBadJSONLines: an error names the position and never a value; on_bad_row: drop leaves
// the row out, and KeepBad keeps its place.
func TestBadJSONLines(t *testing.T) {
	s := parse(t, schematest.Small)
	drop := parse(t, "on_bad_row: drop\n"+schematest.Small)
	for _, c := range badLines {
		content := good + c.line + "\n" + good
		_, _, err := read(t, s, "a.jsonl", content, data.Options{})
		if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		tab, stats, err := read(t, drop, "a.jsonl", content, data.Options{KeepBad: true})
		if err != nil || stats.Dropped != 1 || tab.Rows() != 3 || !tab.Blocks[0].Drop[1] || tab.Blocks[0].Drop[2] {
			t.Errorf("%s: dropped %+v, %v", c.name, stats, err)
		}
	}
	if _, _, err := read(t, s, "a", "\x1f\x8b"+jsonl, data.Options{}); !errors.As(err, new(*config.Error)) {
		t.Errorf("damaged gzip: %v", err)
	}
	for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} { // told by its mark, whatever its name
		text, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(strings.TrimPrefix(jsonl, "\ufeff"))
		if err != nil {
			t.Fatal(err)
		}
		if tab, _, err := read(t, s, "a", text, data.Options{KeepBad: true}); err != nil || tab.Rows() != 5 {
			t.Errorf("UTF-16: %v", err)
		}
	}
	if tab, _, err := read(t, s, "a", `{"age":1,"colour":"red","gain":2}`, data.Options{Unlabeled: true}); err != nil || tab.Rows() != 1 || tab.Labeled {
		t.Errorf("without labels: %v", err)
	}
}

// TestNoJSONLines: a file without rows has its form from its name, as its neighbor of one row has
// it from that (R9).
func TestNoJSONLines(t *testing.T) {
	s := parse(t, schematest.Small)
	for name, content := range map[string]string{"a.jsonl": "", "b.ndjson": "\ufeff\n \n", "a.jsonl.gz": ""} {
		tab, stats, err := read(t, s, name, content, data.Options{})
		if err != nil || tab.Rows() != 0 || stats.Rows != 0 {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
	}
	bare := parse(t, strings.Replace(schematest.Small, "format: {", "format: {header: false, ", 1))
	if tab, _, err := read(t, bare, "a.jsonl", "", data.Options{}); err != nil || tab.Rows() != 0 {
		t.Errorf("without a header: %v", err)
	}
	if _, _, err := read(t, s, "a.csv", "", data.Options{}); err == nil || !strings.Contains(err.Error(), "found an empty file") {
		t.Errorf("CSV: %v", err)
	}
}

// TestFirstRow: without a header, where the first line is a row, a row never decides how the
// others are read: it would drop them all.
func TestFirstRow(t *testing.T) {
	s := parse(t, "on_bad_row: drop\n"+strings.Replace(schematest.Small, "format: {", "format: {header: false, ", 1))
	const rows = "30,red,a1,2,yes\n7,red,a3,4,no\n"
	if tab, stats, err := read(t, s, "a", rows, data.Options{}); err != nil || tab.Rows() != 2 || stats.Dropped != 0 {
		t.Fatalf("%+v, %v", stats, err)
	}
	for _, first := range []string{"{\"SECRET\n", "{}\n", " {\n"} {
		tab, stats, err := read(t, s, "a", first+rows, data.Options{})
		switch {
		case err == nil && tab.Rows() != 2:
			t.Errorf("a first row %q: %d rows are left, %+v", first, tab.Rows(), stats)
		case err != nil && (!errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), "format.header") || strings.Contains(err.Error(), "SECRET")):
			t.Errorf("a first row %q: %v", first, err)
		}
	}
}

// TestRegister: a format from outside is offered every file after those that are here, under a name of its own.
func TestRegister(t *testing.T) {
	before := len(source.Formats())
	name := fmt.Sprint("a test ", before)
	test := data.Format{Name: name, Is: func(_ string, head []byte) bool { return bytes.HasPrefix(head, []byte("%test")) },
		Open: func(context.Context, *data.Input) (data.Rows, error) { return &one{}, nil }}
	source.Register(test)
	if got := source.Formats(); len(got) != before+1 || got[before].Name != name {
		t.Fatalf("%d formats", len(got))
	}
	func() {
		defer func() {
			if said := fmt.Sprint(recover()); said != "format: Register("+name+"): the name is taken" {
				t.Errorf("a second format of that name: %s", said)
			}
		}()
		source.Register(test)
	}()
	tab, _, err := read(t, parse(t, schematest.Small), "a", "%test", data.Options{})
	if err != nil || tab.Rows() != 1 || tab.Blocks[0].Y[0] != 1 {
		t.Errorf("%v", err)
	}
}

// one gives one row.
type one struct{ done bool }

func (o *one) Next(row *data.Row) (data.Fault, error) {
	if o.done {
		return data.Fault{}, io.EOF
	}
	o.done = true
	return row.Cells([]string{"1", "red", "x", "2", "yes"}, nil), nil
}

func (*one) Place(data.Fault) *config.Error { return &config.Error{} }
func (*one) Close() error                   { return nil }

// FuzzJSONLines: no panic, and no value in an error.
func FuzzJSONLines(f *testing.F) {
	const marker = "Zq7Zq"
	small := parse(f, schematest.Small)
	dropping := parse(f, "on_bad_row: drop\n"+schematest.Small)
	f.Add([]byte(jsonl), uint(20), false)
	for _, c := range badLines {
		if len(c.line) < 1000 {
			f.Add([]byte(good+c.line), uint(len(good)+5), true)
		}
	}
	path := filepath.Join(f.TempDir(), "f")
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop bool) {
		i := int(at % uint(len(content)+1))
		text := []byte(string(content[:i]) + marker + string(content[i:]))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := small
		if drop {
			s = dropping
		}
		formats := slices.DeleteFunc(source.Formats(), func(f data.Format) bool { return f.Name != "a JSON Lines file" })
		if !formats[0].Is(path, text) {
			return // another format has tests of its own
		}
		_, _, err := data.Read(context.Background(), &datatest.Gate{}, s, path, data.Options{Formats: formats})
		if err != nil && (!errors.As(err, new(*config.Error)) || strings.Contains(err.Error(), marker)) {
			t.Fatal(err)
		}
	})
}
