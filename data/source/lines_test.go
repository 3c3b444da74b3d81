package source

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
)

// TestSplit: a line has the cells that package encoding/csv finds, at the same bytes, or its fault.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &schema.Format{Delimiter: rapid.SampledFrom([]string{",", ";", "\t", "é", "|"}).Draw(t, "delimiter"), Trim: rapid.Bool().Draw(t, "trim")}
		token := rapid.SampledFrom([]string{f.Delimiter, f.Delimiter, `"`, `"`, `""`, "a", "1.5", " ", "\t", "\r", "\u00a0", "é", "ü", `"b"`})
		line := strings.Join(rapid.SliceOfN(token, 0, 12).Draw(t, "line"), "") + rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		if strings.Trim(line, "\r\n") == "" {
			return // a blank line is no record
		}
		r := csv.NewReader(strings.NewReader(line))
		r.Comma, r.TrimLeadingSpace = []rune(f.Delimiter)[0], f.Trim
		want, err := r.Read()
		p := &csvPiece{of: &csvRows{format: f}}
		p.split([]byte(`"a""b","c""d"` + "\n")) // leaves something behind
		fault := p.split([]byte(line))
		if (err == nil) != (fault.Found == "") || err != nil && fault != csvFault(err) {
			t.Fatalf("%q: %+v, want %v", line, fault, err)
		}
		if err != nil {
			return
		}
		if !slices.Equal(p.cells, want) {
			t.Fatalf("%q: cells %q, want %q", line, p.cells, want)
		}
		for i, at := range p.at {
			if _, column := r.FieldPos(i); at+1 != column {
				t.Fatalf("%q: cell %d at byte %d, want %d", line, i, at+1, column)
			}
		}
	})
}

// checkRecords: the pieces of a CSV file have the records that package encoding/csv finds one after the other in the whole
// file, on the same lines. Where it finds none, a line is bad, and the next record begins after that line.
func checkRecords(t interface{ Fatalf(string, ...any) }, path, content string, format *schema.Format, size int) {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	reader := func(text string) *csv.Reader {
		r := csv.NewReader(strings.NewReader(text))
		r.Comma, r.TrimLeadingSpace = []rune(format.Delimiter)[0], format.Trim
		return r
	}
	got, want := recordsOf(t, path, format, size), []string{}
	rest := strings.TrimPrefix(content, "\ufeff")
	for n := 1; rest != ""; {
		line, _, _ := strings.Cut(rest, "\n")
		length := min(len(line)+1, len(rest))
		if line += "\n"; !skipped([]byte(line), format) {
			r := reader(rest)
			cells, err := r.Read()
			if err == nil {
				length = int(r.InputOffset())
			} else {
				_, err = reader(line).Read()
			}
			switch {
			case !isText([]byte(rest[:length])):
				want = append(want, fmt.Sprint(n, " not text"))
			case err != nil:
				want = append(want, fmt.Sprint(n, " ", csvFault(err)))
			default:
				want = append(want, fmt.Sprintf("%d %q", n, cells))
			}
		}
		n += strings.Count(rest[:length], "\n")
		rest = rest[length:]
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q in pieces of %d: records %q, want %q", content, size, got, want)
	}
}

func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(t *rapid.T) {
		format := &schema.Format{Kind: schema.KindCSV, Delimiter: rapid.SampledFrom([]string{",", ";", "é"}).Draw(t, "delimiter"), Trim: rapid.Bool().Draw(t, "trim"), Comment: "#", Multiline: true}
		token := rapid.SampledFrom([]string{"\n", "\n", "\r\n", `"`, `"`, `"`, `""`, format.Delimiter, format.Delimiter + `"`, `"` + format.Delimiter, "\"\n", "a", "b c", "\n#", " ", "\r", "ü", "\xff", "\x00"})
		content := rapid.SampledFrom([]string{"", "", "\ufeff"}).Draw(t, "BOM") + strings.Join(rapid.SliceOfN(token, 0, 60).Draw(t, "content"), "")
		checkRecords(t, path, content, format, rapid.IntRange(1, 100).Draw(t, "size"))
	})
}

// FuzzRecords: the same for any bytes.
func FuzzRecords(f *testing.F) {
	f.Add("a,b\n\"1\n2\",3\n\"x\r\n\r\n\"\"y\"\",\",z\r\n1,\"", false, uint8(0), uint8(3))
	f.Add("\"a\n1,\"b\"\n#\"\n\"#\n#\",2\n\"a\n\"b\n \"c\n\"\n\n\xff\"\n\"\xff\n\"", true, uint8(1), uint8(9))
	path := filepath.Join(f.TempDir(), "f")
	f.Fuzz(func(t *testing.T, content string, trim bool, delimiter, size uint8) {
		for _, other := range []string{"\xff\xfe", "\xfe\xff", "\x1f\x8b", "\x28\xb5\x2f\xfd", "PK", "\xd0\xcf", "ARROW1"} {
			if strings.HasPrefix(content, other) {
				return // no UTF-8, or no text
			}
		}
		if len(content) >= 12 && content[8:12] == "DUCK" {
			return
		}
		format := &schema.Format{Kind: schema.KindCSV, Delimiter: []string{",", ";", "é"}[delimiter%3], Trim: trim, Comment: "#", Multiline: true}
		checkRecords(t, path, content, format, int(size))
	})
}

// recordsOf reads the records of a CSV file in pieces of about size bytes.
func recordsOf(t interface{ Fatalf(string, ...any) }, path string, format *schema.Format, size int) []string {
	file, err := data.OpenFile(context.Background(), path, nil)
	text, err := newLines(file, err, size, format.Encoding)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer text.Close()
	c := &csvRows{lines: text, format: format}
	c.probe.of, text.whole = c, c.whole
	out := []string{}
	for {
		r, err := c.Piece(nil)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		for p := r.(*csvPiece); ; {
			line, fault, err := p.record(format)
			if err == io.EOF {
				break
			}
			switch {
			case fault.Found != "" && (strings.Contains(fault.Found, "not text") || strings.Contains(fault.Found, "UTF-16")):
				out = append(out, fmt.Sprint(p.n, " not text"))
				continue
			case fault.Found == "":
				fault = p.split(line)
			}
			if fault.Found != "" {
				out = append(out, fmt.Sprint(p.n, " ", fault))
			} else {
				out = append(out, fmt.Sprintf("%d %q", p.n, p.cells))
			}
		}
	}
}

// TestLongRecords: a cell that no quote ends in 8 MiB spoils one line, whatever the size of the pieces.
func TestLongRecords(t *testing.T) {
	race.Skip(t)
	path := filepath.Join(t.TempDir(), "f")
	format := &schema.Format{Kind: schema.KindCSV, Delimiter: ",", Multiline: true}
	const long = 1 << 16
	fill := strings.Repeat(strings.Repeat("b", long-1)+"\n", maxLine/long)
	for _, c := range []struct {
		content string
		want    int // records
	}{
		{"a\n\"\n" + fill[:maxLine-4] + "\"\nd\n", 3},                // the longest record
		{"a\n\"\n" + fill[:maxLine-3] + "\"\nd\n", 3 + maxLine/long}, // a byte more
		{"a\n\"b\n" + fill + fill, 2 + 2*maxLine/long},
		{"a\n\"\n" + fill[:maxLine-4] + "\"", 2},
		{"\"b\n" + strings.Repeat("x", maxLine+1) + "\"\nb\nb\n", 4},
	} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		want := recordsOf(t, path, format, 1000)
		if len(want) != c.want {
			t.Errorf("%d records, want %d", len(want), c.want)
		}
		for _, size := range []int{256 << 10, maxLine, 3 * maxLine} {
			if got := recordsOf(t, path, format, size); !slices.Equal(got, want) {
				t.Errorf("%d records in pieces of %d bytes, %d in others", len(got), size, len(want))
			}
		}
	}
}

// TestCut: the pieces of a file are its lines, whatever their size.
func TestCut(t *testing.T) {
	race.Skip(t)
	path := filepath.Join(t.TempDir(), "f")
	check := func(t interface{ Fatalf(string, ...any) }, content string, size int) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatalf("%v", err)
		}
		file, err := data.OpenFile(context.Background(), path, nil)
		l, err := newLines(file, err, size, "")
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer l.Close()
		var got []string
		p := &piece{}
		for {
			if err = l.cut(p); err != nil {
				break
			}
			for {
				line, err := p.next()
				if err == io.EOF {
					break
				}
				if errors.Is(err, errLongLine) {
					line = []byte("long\n")
				}
				if got = append(got, string(line)); p.n != len(got) {
					t.Fatalf("line %d has the number %d", len(got), p.n)
				}
			}
		}
		var want []string
		for _, line := range bytes.SplitAfter([]byte(strings.TrimPrefix(content, "\ufeff")), []byte("\n")) {
			switch {
			case len(line) > maxLine:
				line = []byte("long\n")
			case len(line) == 0:
				continue
			case line[len(line)-1] != '\n':
				line = append(line, '\n')
			}
			want = append(want, string(line))
		}
		if err != io.EOF || !slices.Equal(got, want) {
			t.Fatalf("%d lines, want %d; %v", len(got), len(want), err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "BOM") + rapid.StringMatching("([a-c]{0,40}\r?\n){0,20}[a-c]{0,9}").Draw(t, "content")
		check(t, content, rapid.IntRange(1, 200).Draw(t, "size"))
	})
	for _, n := range []int{maxLine - 1, maxLine, maxLine + 1, 3 * maxLine} {
		long := strings.Repeat("x", n)
		for _, content := range []string{long, long + "\n", "a\n" + long + "\nb", "a\n" + long[:n-1] + "\nb\n" + long} {
			check(t, content, 1000)
			check(t, content, 256<<10)
		}
	}
}

// TestEncodings: a file has the same records in every encoding.
func TestEncodings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	latin := charmap.ISO8859_1.NewEncoder()
	for name, c := range map[string]struct {
		encoding string
		encoder  *encoding.Encoder
		letters  string
	}{
		"UTF-16 LE":          {"", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(), "aé漢😀"},
		"UTF-16 BE":          {"", unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder(), "aé漢😀"},
		"UTF-16 BE, named":   {schema.EncodingUTF16, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder(), "aé漢😀"},
		"UTF-16, no mark":    {schema.EncodingUTF16, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder(), "aé漢😀"},
		"Latin-1":            {schema.EncodingLatin1, latin, "aéÿ\u0085"},
		"Windows-1252":       {schema.EncodingWindows, charmap.Windows1252.NewEncoder(), "aé€“"},
		"Latin-1, ASCII all": {schema.EncodingLatin1, latin, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			token := rapid.SampledFrom(append(strings.Split(c.letters, ""), ",", ",", "\n", "\n", "\r\n", `"`, "\"\n", " "))
			rapid.Check(t, func(t *rapid.T) {
				content := strings.Join(rapid.SliceOfN(token, 0, 60).Draw(t, "content"), "")
				format := &schema.Format{Kind: schema.KindCSV, Delimiter: ",", Multiline: true}
				size := rapid.IntRange(1, 100).Draw(t, "size")
				put := func(content, encoding string) []string {
					if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
					f := *format
					f.Encoding = encoding
					return recordsOf(t, path, &f, size)
				}
				encoded, err := c.encoder.String(content)
				if err != nil {
					t.Fatal(err)
				}
				if want, got := put(content, ""), put(encoded, c.encoding); !slices.Equal(got, want) {
					t.Fatalf("%q: records %q, want %q", content, got, want)
				}
			})
		})
	}
}
