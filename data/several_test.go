package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/config"
)

// inDir writes files into one directory.
func inDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSeveral: several files are the table of all their rows, in the order of their names or of the list.
func TestSeveral(t *testing.T) {
	s := mustParse(t, small)
	const header = "age,colour,id,gain,sick\n"
	var a, b strings.Builder
	for range 700 { // more than one block, and pieces in both files
		a.WriteString("1,red,x,2,yes\n2,green,x,2,no\n")
		b.WriteString("3,green,y,4,no\n")
	}
	dir := inDir(t, map[string]string{"v-1.csv": header + a.String(), "v-2.csv.gz": zipped("\ufeff" + header + b.String()), "v-3.csv": header, "w + x.csv": header + b.String()})
	one, two := filepath.Join(dir, "v-1.csv"), filepath.Join(dir, "v-2.csv.gz")
	load := func(path string, opt Options) (*Table, Content) {
		t.Helper()
		gate := &testGate{key: testKey}
		tab, _, err := readTable(context.Background(), gate, s, path, opt)
		if err != nil {
			t.Fatal(err)
		}
		checkTable(t, tab)
		return tab, gate.content
	}
	want, whole := load(writeFile(t, "all", header+a.String()+b.String()), Options{})
	back, _ := load(writeFile(t, "all", header+b.String()+a.String()), Options{})
	_, first := load(one, Options{})
	for name, c := range map[string]struct {
		path string
		want *Table
	}{
		"pattern":           {filepath.Join(dir, "v-*"), want},
		"list":              {one + Plus + two, want},
		"list of a pattern": {one + Plus + filepath.Join(dir, "v-[23]*"), want},
		"other order":       {two + Plus + one, back},
	} {
		for _, opt := range []Options{{workers: 1}, {workers: 4, piece: 100}} {
			got, content := load(c.path, opt)
			if d := cmp.Diff(c.want, got, sameTable); d != "" {
				t.Errorf("%s: %s", name, d)
			}
			parts := 2
			if strings.Contains(c.path, "-*") || strings.Contains(c.path, "[") {
				parts = 3 // with the file without rows
			}
			if len(content.Parts) != parts || content.Digest == first.Digest || content.Rows.Len() != whole.Rows.Len() {
				t.Errorf("%s: %d parts, %d hashes of rows, want %d and %d", name, len(content.Parts), content.Rows.Len(), parts, whole.Rows.Len())
			}
			if name != "other order" && cmp.Diff(whole.Rows, content.Rows) != "" {
				t.Errorf("%s: the rows have other hashes than in one file", name)
			}
		}
	}
	_, forth := load(one+Plus+two, Options{})
	_, reverse := load(two+Plus+one, Options{})
	if forth.Digest != reverse.Digest || forth.Parts[0] != sha256.Sum256([]byte(header+a.String())) {
		t.Error("the digest depends on the order of the files, or a part's is not that of the file")
	}
	if _, content := load(filepath.Join(dir, "v-1*"), Options{}); content.Digest != first.Digest || content.Parts != nil {
		t.Error("a pattern of one file is not that file")
	}
	load(filepath.Join(dir, "w + x.csv"), Options{}) // a file whose name looks like two
}

// TestSeveralUnits: rows of one unit in two files belong to it.
func TestSeveralUnits(t *testing.T) {
	s := mustParse(t, visits)
	const header = "patient_id,who,age,sick\n"
	dir := inDir(t, map[string]string{"1": header + "a,1,1,no\nb,1,2,no\n", "2": header + "a,1,3,yes\nc,1,4,no\n"})
	tab, _, err := readTable(context.Background(), admit(), s, filepath.Join(dir, "[12]"), Options{})
	if err != nil || tab.Units() != 3 || tab.Rows() != 4 {
		t.Fatalf("%v: %d units of %d rows", err, tab.Units(), tab.Rows())
	}
}

// TestSeveralErrors: an error names the file that it is about.
func TestSeveralErrors(t *testing.T) {
	s := mustParse(t, small)
	const header, row = "age,colour,id,gain,sick\n", "1,red,x,2,yes\n"
	dir := inDir(t, map[string]string{"a": header + row, "order": "colour,age,id,gain,sick\nred,1,x,2,yes\n", "few": "age,id\n", "bad": header + row + "1,red,x,SECRET123,yes\n", "none": "",
		"cut": zipped(header + strings.Repeat(row, 99))[:40], "db": "SQLite format 3\x00"})
	at := func(names ...string) string {
		for i := range names {
			names[i] = filepath.Join(dir, names[i])
		}
		return strings.Join(names, Plus)
	}
	for path, want := range map[string]string{
		at("a", "order"):           at("order") + ": found other columns than in " + at("a") + ", or another order; expected the same columns",
		at("a", "few"):             at("few") + ":1: columns: found no columns colour, gain, sick",
		at("a", "bad"):             at("bad") + ":3:9: column gain: found text that is not a number",
		at("a", "none"):            at("none") + ": found an empty file",
		at("a", "cut"):             at("cut") + ": found a gzip file that ends too early",
		at("a", "a"):               at("a") + ": found the file a second time in one table",
		at("a", "no*"):             "ok", // none, which is empty
		at("a", "x*"):              at("x*") + ": found no file with such a name",
		at("a", "["):               at("[") + ": found a pattern that does not read",
		at("a", "missing"):         at("missing") + ": ",
		at("a", "db"):              at("db") + ": found",
		at("a") + Plus + "-":       "-: found no file of text or Parquet",
		at("a", "db") + "?table=t": at("db") + "?table=t: found no file of text or Parquet",
		at("a") + Plus + "postgres://u:SECRET123@h/d?table=t": "postgres://…@h/d?table=t: found no file",
	} {
		for _, workers := range []int{1, 3} {
			tab, _, err := readTable(context.Background(), admit(), s, path, Options{workers: workers, piece: 16})
			if want == "ok" {
				want = at("none") + ": found an empty file"
			}
			var e *config.Error
			if tab != nil || !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %v, want %s", path, err, want)
			}
		}
	}
	if _, _, err := readTable(context.Background(), admit(), s, at("a", "bad"), Options{Rows: 2}); err == nil {
		t.Error("more rows than under replace-one")
	}
	packed := filepath.Join(dir, "p")
	if _, err := packTable(context.Background(), admit(), s, at("a", "order"), packed, Options{}); err == nil || !strings.Contains(err.Error(), "found other columns than in") || exists(packed) {
		t.Errorf("packed: %v", err)
	}
	if _, err := Describe(context.Background(), at("a", "order"), TestFormats); err != nil { // the first line of text may be a row
		t.Error(err)
	}
	if got := Public("a.csv + postgres://u:SECRET123@h/d?table=t + x"); strings.Contains(got, "SECRET") {
		t.Error(got)
	}
	if got, want := Join("/d", "a.csv + b/*.csv"), "/d/a.csv + /d/b/*.csv"; got != want {
		t.Errorf("joined: %s, want %s", got, want)
	}
}

// TestPackSeveral: packed, several files are the same table, with the marks of the whole and of each file.
func TestPackSeveral(t *testing.T) {
	s := mustParse(t, small)
	const header = "age,colour,id,gain,sick\n"
	dir := inDir(t, map[string]string{"v-1.csv": header + strings.Repeat("1,red,x,2,yes\n", 700), "v-2.csv": header + strings.Repeat("3,green,y,4,no\n", 900)})
	path, packed := filepath.Join(dir, "v-*"), filepath.Join(dir, "p")
	for _, key := range []*RowKey{nil, testKey} {
		files, one := &testGate{key: key}, &testGate{key: key}
		want, counts, err := readTable(context.Background(), files, s, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := packTable(context.Background(), &testGate{key: key}, s, path, packed, Options{}); err != nil {
			t.Fatal(err)
		}
		got, stats, err := readTable(context.Background(), one, s, packed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, sameTable); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(counts, stats); d != "" {
			t.Error(d)
		}
		files.content.Positions = nil // packed tables have none
		if d := cmp.Diff(files.content, one.content); d != "" || len(one.content.Parts) != 2 {
			t.Errorf("%d parts: %s", len(one.content.Parts), d)
		}
		if err := got.Close(); err != nil {
			t.Fatal(err)
		}
		// Whatever the footer says of the files, however short it is, is an error or as before.
		whole, err := os.ReadFile(packed)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []uint32{0, 1, 3, 1 << 20, 1<<32 - 1} {
			b := bytes.Clone(whole)
			binary.LittleEndian.PutUint32(b[len(b)-4:], n)
			foot := binary.LittleEndian.Uint64(b[16:])
			sum := sha256.New()
			sum.Write(b[:32])
			sum.Write(b[foot:])
			copy(b[32:], sum.Sum(nil))
			if _, _, err := readTable(context.Background(), admit(), s, writeFile(t, "odd", string(b)), Options{}); err == nil || !strings.Contains(err.Error(), "whose footer does not fit its rows") {
				t.Errorf("%d files: %v", n, err)
			}
		}
	}
	d, err := Describe(context.Background(), path, TestFormats)
	if err != nil || !strings.HasPrefix(d.Form, "a table of 2 files, the first of which is text") {
		t.Errorf("%v, %v", d, err)
	}
	arrows := filepath.Join(arrowFiles, "plain.arrow") + Plus
	if d, err := Describe(context.Background(), arrows+filepath.Join(arrowFiles, "polars.arrow"), TestFormats); err != nil || len(d.Fields) != 5 {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Describe(context.Background(), arrows+filepath.Join(arrowFiles, "types.arrow"), TestFormats); err == nil || !strings.Contains(err.Error(), "types.arrow: found other columns than in") {
		t.Error(err)
	}
}
