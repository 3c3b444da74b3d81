package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/race"
)

// fileText is the CSV of the first rows of the files that other programs wrote.
func fileText(rows int) string {
	var text strings.Builder
	text.WriteString("age,colour,id,gain,sick\n")
	for i := range rows {
		age, color, sick := fmt.Sprint((i*7)%130-4), []string{"red", "green", "mauve", "1.0"}[i%4], "no"
		if i%37 == 5 {
			age = ""
		}
		if i%41 == 3 {
			color = ""
		}
		if i*i%7 < 3 {
			sick = "yes."
		}
		cents := i * i % 200000
		fmt.Fprintf(&text, "%s,%s,%d,%d.%02d,%s\n", age, color, i, cents/100, cents%100, sick)
	}
	return text.String()
}

// TestReadParquet reads a file that pyarrow 22 wrote, from these formulas:
// testdata/small.parquet has its columns in another order, two row groups, several
// pages, a dictionary, nulls, decimals, a list in an ignored column, and each of
// zstd, gzip and snappy. The table is that of the CSV, bit for bit.
func TestReadParquet(t *testing.T) {
	s := mustParse(t, small)
	want, counts := mustRead(t, s, fileText(2000), Options{Rows: 2000})
	got, stats, err := readTable(context.Background(), admit(), s, "testdata/small.parquet", Options{Rows: 2000})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, sameTable); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(counts, stats); d != "" {
		t.Error(d)
	}
	d, err := Describe(context.Background(), "testdata/small.parquet", TestFormats)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Description{Form: "Parquet", Fields: []FieldName{{"gain", "DECIMAL(12,2)"}, {"id", "nested"}, {"age", "INT(16,true)"}, {"sick", "STRING"}, {"colour", "STRING"}}}, d); diff != "" {
		t.Error(diff)
	}
	b, err := Skeleton(context.Background(), "testdata/small.parquet", "")
	if err != nil || !bytes.Contains(b, []byte("format: {kind: csv} # Parquet")) || !bytes.Contains(b, []byte(`- {name: "colour", type: }`)) {
		t.Errorf("%v\n%s", err, b)
	}

	// No byte that is damaged makes a panic, or an error that is none of the input.
	whole, err := os.ReadFile("testdata/small.parquet")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "p")
	for i := 4; i < len(whole); i += 97 {
		for _, b := range [][]byte{whole[:i], append(append(bytes.Clone(whole[:i]), whole[i]^0x55), whole[i+1:]...)} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			tab, _, err := readTable(context.Background(), admit(), s, path, Options{})
			if err == nil {
				checkTable(t, tab)
			} else if !errors.As(err, new(*config.Error)) {
				t.Fatalf("byte %d: %T %v", i, err, err)
			}
		}
	}
}

// TestReadParquetCodecs reads files that pyarrow 26 and polars 2.1 wrote with testdata/arrow.py. Some of their pages make the
// library's decompression need more memory than the page has in the end; see plainPages.
func TestReadParquetCodecs(t *testing.T) {
	s := mustParse(t, small)
	want, counts := mustRead(t, s, fileText(512), Options{Rows: 512})
	for _, name := range []string{"lz4", "lz4-v2", "polars-lz4", "gzip", "brotli"} {
		path := filepath.Join(arrowFiles, name+".parquet")
		got, stats, err := readTable(context.Background(), admit(), s, path, Options{Rows: 512})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, sameTable); d != "" {
			t.Errorf("%s: %s", path, d)
		}
		if d := cmp.Diff(counts, stats); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}

	// A codec that cannot be read is named, with what to do.
	b, err := os.ReadFile(filepath.Join(arrowFiles, "lz4.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	at := len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	var meta format.FileMetaData
	protocol := new(thrift.CompactProtocol)
	if err := thrift.Unmarshal(protocol, b[at:len(b)-8], &meta); err != nil {
		t.Fatal(err)
	}
	for codec, name := range map[format.CompressionCodec]string{format.LZO: "LZO", format.Lz4: "LZ4 in the framing of Hadoop", 99: "an unknown codec, 99"} {
		meta.RowGroups[0].Columns[0].MetaData.Codec = codec
		footer, err := thrift.Marshal(protocol, &meta)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(path, append(binary.LittleEndian.AppendUint32(append(b[:at:at], footer...), uint32(len(footer))), "PAR1"...), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err = readTable(context.Background(), admit(), s, path, Options{Rows: 512})
		if err == nil || !strings.Contains(err.Error(), "column gain: found pages compressed by "+name) || !strings.Contains(err.Error(), "write the file again with zstd or snappy") {
			t.Error(err)
		}
	}
}

// TestReadParquetTruths: pyarrow writes runs of truth values where pages are of the second version.
func TestReadParquetTruths(t *testing.T) {
	s := mustParse(t, "dataset: d\nrows: 1000\ncolumns:\n  - {name: on, type: boolean}\n  - {name: gap, type: boolean, missing: zero}\n  - {name: sick, type: label, classes: [no, yes.]}\n")
	text := "on,gap,sick\n"
	for i := range 1000 {
		gap, sick := fmt.Sprint(i > 200 || i%3 == 0), "no"
		if i%41 == 3 {
			gap = ""
		}
		if i*i%7 < 3 {
			sick = "yes."
		}
		text += fmt.Sprintf("%v,%s,%s\n", i%97 < 50, gap, sick)
	}
	want, _ := mustRead(t, s, text, Options{Rows: 1000})
	got, _, err := readTable(context.Background(), admit(), s, filepath.Join(arrowFiles, "truths.parquet"), Options{Rows: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, sameTable); d != "" {
		t.Error(d)
	}
}

type smallParquet struct {
	Sick  *string  `parquet:"sick,optional"`
	Gain  *float64 `parquet:"gain,optional"`
	ID    string   `parquet:"id"`
	Age   *float32 `parquet:"age,optional"`
	Color *string  `parquet:"colour,optional,dict"`
}

// dictParquet has numbers in a dictionary.
type dictParquet struct {
	Sick  *string  `parquet:"sick,optional"`
	Gain  *float64 `parquet:"gain,optional,dict"`
	ID    string   `parquet:"id"`
	Age   *float32 `parquet:"age,optional"`
	Color *string  `parquet:"colour,optional,dict"`
}

func writeParquet[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "t.parquet", b.String())
}

// TestParquetEqualsCSV: any table of numbers, texts and missing cells.
func TestParquetEqualsCSV(t *testing.T) {
	race.Skip(t)
	s := mustParse(t, "on_bad_row: drop\n"+small)
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(r, "rows")
		var rows []smallParquet
		var text strings.Builder
		text.WriteString("age,colour,id,gain,sick\n")
		for range n {
			some := rapid.Bool()
			row, cells := smallParquet{ID: "x"}, []string{"", "", "x", "", ""}
			if some.Draw(r, "age") {
				v := rapid.Float32Range(-10, 120).Draw(r, "a")
				row.Age, cells[0] = &v, fmt.Sprint(v)
			}
			if some.Draw(r, "colour") {
				v := rapid.SampledFrom([]string{"red", "green", "1.0", "?", "", "mauve"}).Draw(r, "c")
				row.Color, cells[1] = &v, v
			}
			if some.Draw(r, "gain") {
				v := rapid.Float64().Draw(r, "g")
				row.Gain, cells[3] = &v, fmt.Sprint(v)
			}
			if rapid.IntRange(0, 9).Draw(r, "label") > 0 {
				v := rapid.SampledFrom([]string{"yes", "no", "no.", "perhaps"}).Draw(r, "s")
				row.Sick, cells[4] = &v, v
			}
			rows = append(rows, row)
			text.WriteString(strings.Join(cells, ",") + "\n")
		}
		codec := rapid.SampledFrom([]compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw}).Draw(r, "codec")
		options := []parquet.WriterOption{parquet.Compression(codec), parquet.MaxRowsPerRowGroup(int64(rapid.IntRange(1, 40).Draw(r, "group"))), parquet.DataPageVersion(rapid.IntRange(1, 2).Draw(r, "pages"))}
		path := ""
		if rapid.Bool().Draw(r, "dictionary") {
			var looked []dictParquet
			for _, row := range rows {
				looked = append(looked, dictParquet(row))
			}
			path = writeParquet(t, looked, options...)
		} else {
			path = writeParquet(t, rows, options...)
		}
		opt := Options{KeepBad: rapid.Bool().Draw(r, "keep"), Unlabeled: rapid.Bool().Draw(r, "unlabelled")}
		g, g2 := &testGate{key: testKey}, &testGate{key: testKey}
		want, counts, err := readTable(context.Background(), g, s, writeFile(t, "f", text.String()), opt)
		opt.workers = rapid.IntRange(1, 3).Draw(r, "workers")
		got, stats, err2 := readTable(context.Background(), g2, s, path, opt)
		if (err == nil) != (err2 == nil) {
			r.Fatal(err, err2)
		}
		if d := cmp.Diff(want, got, sameTable); d != "" {
			r.Fatal(d)
		}
		if d := cmp.Diff(counts, stats); d != "" {
			r.Fatal(d)
		}
		if !cmp.Equal(g.content.Rows, g2.content.Rows) || err == nil && g.content.Rows.Len() != n {
			r.Fatalf("hashes of rows %x, want %x", g2.content.Rows, g.content.Rows)
		}
	})
}

// TestParquetNumbersAreNotBelieved: no damaged byte, and no size, number of values or length of a run that is made huge, takes
// memory that the file does not fill.
func TestParquetNumbersAreNotBelieved(t *testing.T) {
	race.Skip(t)
	s := mustParse(t, small)
	var rows []dictParquet
	for i := range 20 {
		sick, gain, age, color := "no", 5.0, float32(i), "red"
		rows = append(rows, dictParquet{&sick, &gain, "x", &age, &color})
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	read := func(content string) uint64 {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := readTable(context.Background(), admit(), s, path, Options{})
		runtime.ReadMemStats(&after)
		if err != nil && !errors.As(err, new(*config.Error)) {
			t.Fatalf("%T %v", err, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Lz4Raw} {
		for pages := 1; pages <= 2; pages++ {
			b, err := os.ReadFile(writeParquet(t, rows, parquet.Compression(codec), parquet.DataPageVersion(pages)))
			if err != nil {
				t.Fatal(err)
			}
			usual := read(string(b))
			for i := 4; i+5 <= len(b); i += 3 {
				for _, bad := range []string{string([]byte{b[i] ^ 0x55}), "\xfe\xff\xff\xff\x0f"} {
					if got := read(string(b[:i]) + bad + string(b[i+len(bad):])); got > usual+16<<20 {
						t.Fatalf("%v, pages of version %d, %q at byte %d: %d bytes, usually %d", codec, pages, bad, i, got, usual)
					}
				}
			}
		}
	}
}

func TestBadParquet(t *testing.T) {
	s := mustParse(t, small)
	text := func(v string) *string { return &v }
	one := func(v float64) *float64 { return &v }
	good := smallParquet{Sick: text("no"), Gain: one(1), ID: "x", Color: text("red")}
	with := func(change func(*smallParquet)) []smallParquet {
		bad := good
		change(&bad)
		return []smallParquet{good, good, bad, bad}
	}
	for name, c := range map[string]struct{ path, want string }{
		"class":     {writeParquet(t, with(func(r *smallParquet) { r.Sick = text("SECRET") })), "row 3: column sick: found a label that is none of the classes; expected one of the classes in the schema (2 rows are bad, this is the first"},
		"null":      {writeParquet(t, with(func(r *smallParquet) { r.Sick = nil })), "row 3: column sick: found a missing value; expected a label"},
		"NaN":       {writeParquet(t, with(func(r *smallParquet) { r.Gain = one(0); *r.Gain /= *r.Gain })), "row 3: column gain: found NaN"},
		"no text":   {writeParquet(t, with(func(r *smallParquet) { r.Color = text("\xffSECRET") })), "row 3: column colour: found bytes that are not text"},
		"no column": {writeParquet(t, []struct{ Age int32 }{{1}}), "columns: found no columns age, colour, id, gain, sick; expected"},
		"one more": {writeParquet(t, []struct {
			smallParquet
			More int32
		}{{good, 1}}), `column 6 of the header is not in the schema`},
		"type": {writeParquet(t, []struct {
			Sick  string   `parquet:"sick"`
			Gain  int64    `parquet:"gain,timestamp"`
			ID    string   `parquet:"id"`
			Age   []int32  `parquet:"age,list"`
			Color []string `parquet:"colour"`
		}{{}}), "column \"colour\" holds nested values; write each part that the schema needs as a column of its own"},
		"cut": {writeFile(t, "t", "PAR1 and so on"), "the Parquet file does not end as one: it is cut short, encrypted, or bytes follow its end"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readTable(context.Background(), admit(), s, c.path, Options{})
			if !errors.As(err, new(*config.Error)) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if _, _, err := readTable(context.Background(), admit(), mustParse(t, svm), "testdata/small.parquet", Options{}); err == nil || !strings.Contains(err.Error(), "found a Parquet file; expected what format.kind says, libsvm") {
		t.Error(err)
	}
}
