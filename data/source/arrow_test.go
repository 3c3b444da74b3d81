package source

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
)

// TestArrowTypes: each type gives the text that a CSV has, or the number of that text.
func TestArrowTypes(t *testing.T) {
	a, err := openArrow(context.Background(), "testdata/arrow/types.arrow")
	if err != nil {
		t.Fatal(err)
	}
	defer a.f.Close()
	q := &arrowRows{arrowFile: a, in: &data.Input{}}
	at := arrowColumn{}
	for i, f := range a.fields {
		c := at
		c.arrowField = f
		c.number = i%2 == 0 && f.value.number != nil
		at.node, at.buffer, at.view = at.node+f.nodes, at.buffer+f.buffers, at.view+f.views
		q.columns = append(q.columns, c)
	}
	q.all = at
	var got []string
	for {
		m, err := a.next()
		if err == io.EOF {
			break
		}
		if err == nil && m.kind == arrowEntries {
			err = q.dictionary(m)
		} else if err == nil {
			for i := range q.columns {
				if q.columns[i].value.form == arrowUnknown {
					t.Fatalf("%s has no text", q.columns[i].name)
				}
			}
			err = q.begin(m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range q.columns {
		c := &q.columns[i]
		var cells typedCells
		if err := c.cells(&cells, 3); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var row []string
		begin := 0
		for k, kind := range cells.kind {
			switch kind {
			case data.Null:
				row = append(row, "-")
			case data.Number:
				row = append(row, fmt.Sprint("#", cells.numbers[k]))
			default:
				text := string(cells.text[begin:cells.end[k]])
				if cells.bad[k] {
					text = "bad"
				}
				row = append(row, text)
			}
			if !c.number {
				begin = cells.end[k]
			}
		}
		got = append(got, c.name+": "+strings.Join(row, " "))
	}
	const want = `a: true - false
b: 18446744073709551615 0 -
c: 2024-10-04 1969-12-31 -
d: 2024-10-04 1969-12-31 -
e: -0.05 12345678901234567890.25 -
f: 0.1 1.6777216e+07 -
g: #1e-300 #-0 -
h: -7 127 -
i: - - -
j:  a longer text than twelve bytes -
k: x bad -
l: -9223372036854775808 9223372036854775807 -
m: 2000-01-01 2000-01-02 2000-01-01
n: 1970-01-01T00:00:01 1970-01-01T00:00:02 -
o: -1.500 3.250 -`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("found\n%s\nwant\n%s", text, want)
	}
}

// TestSharedMetadata: many fields that point to one long name, or to one long list, cost no more than the metadata's size.
func TestSharedMetadata(t *testing.T) {
	const n, size = 1 << 14, 1 << 16
	le := binary.LittleEndian
	// A message with a schema whose fields are one table: its name and its metadata are long.
	var b []byte
	word := func(v int) { b = le.AppendUint32(b, uint32(v)) }
	at := func() int { return len(b) }
	b = append(b, make([]byte, 4)...) // root
	messages := at()
	b = append(b, 10, 0, 12, 0, 0, 0, 4, 0, 8, 0) // vtable: kind at 4, header at 8
	b = append(b, 0, 0)
	message := at()
	word(message - messages)
	word(arrowSchema)
	word(0) // header
	header := at() - 4
	schemas := at()
	b = append(b, 8, 0, 8, 0, 0, 0, 4, 0) // vtable: fields at 4
	schema := at()
	word(schema - schemas)
	word(4)
	word(n)
	list := at()
	b = append(b, make([]byte, 4*n)...)
	fields := at()
	b = append(b, 18, 0, 12, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0) // vtable: name at 4, metadata at 8
	field := at()
	word(field - fields)
	word(8)
	word(4 + 4 + size)
	word(size)
	b = append(b, bytes.Repeat([]byte{'x'}, size)...)
	word(n)
	for range n {
		word(0)
	}
	le.PutUint32(b, uint32(message))
	le.PutUint32(b[header:], uint32(schema-header))
	for i := range n {
		le.PutUint32(b[list+4*i:], uint32(field-list-4*i))
	}
	f := flatRoot(b)
	if s, ok := f.table(2); !ok || len(s.tables(1)) != n || s.tables(1)[n-1].text(0) != strings.Repeat("x", size) || len(s.tables(1)[0].tables(6)) != n {
		t.Fatal("the message is not what the test says")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, ok := arrowSchemaTypes(append(make([]byte, 4), b...))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; ok || took > 64<<20 {
		t.Errorf("%d MB for metadata of %d kB; %v", took>>20, len(b)>>10, ok)
	}
}
