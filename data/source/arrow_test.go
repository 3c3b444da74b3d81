package source

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sottodp/sotto/data"
)

// TestArrowTypes: each type gives the text that a CSV has, or the number of that text.
func TestArrowTypes(t *testing.T) {
	a, err := openArrow("testdata/arrow/types.arrow")
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
