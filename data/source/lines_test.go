package source

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sottodp/sotto/data"
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

// TestCut: the pieces of a file are its lines, whatever their size.
func TestCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	check := func(t interface{ Fatalf(string, ...any) }, content string, size int) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatalf("%v", err)
		}
		file, err := data.OpenFile(path, nil)
		l, err := newLines(file, err, size)
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
