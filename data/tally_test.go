package data

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/schema"
)

// A tally counts every cell, also after the first bad one of a row, with any number of workers, and changes nothing of the table.
func TestTally(t *testing.T) {
	s, err := schema.Parse("", []byte(`dataset: d
unit: {name: person, rows: 4}
on_bad_row: drop
format: {missing: ["", "?"]}
columns:
  - {name: id, type: unit}
  - {name: a, type: numeric, min: 0, max: 10, missing: 0}
  - {name: b, type: categorical, levels: [x, z], unknown: zero, missing: error}
  - {name: skipped, type: ignore}
  - {name: y, type: label, min: -1, max: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"i,0,x,,0", "i,10,z,,1", "j,-3,w,,-1", "j,11,w,,2", "k,,x,,-5", // good: bounds, unknown levels, a missing number
		",oops,?,,none",  // four bad cells, two of them missing
		"k,1,?,,0",       // one
		"k,1e400,x,,NaN", // two
		"k,1,x",          // no row
	}
	const times = 2000
	content := "id,a,b,skipped,y\n" + strings.Repeat(strings.Join(lines, "\n")+"\n", times)
	n := func(k int64) int64 { return k * times }
	bad := func(kinds ...string) map[string]int {
		m := map[string]int{}
		for _, k := range kinds {
			m[k] += times
		}
		return m
	}
	want := []ColumnCounts{
		{Type: "row", Bad: bad("3 cells in the row")},
		{Name: "id", Type: "unit", Bad: bad("a missing value")},
		{Name: "a", Type: "numeric", Missing: n(1), AtLeast: n(1), AtMost: n(1), Below: n(1), Above: n(1), Bad: bad("text that is not a number", "a number too large to hold")},
		{Name: "b", Type: "categorical", Missing: n(2), Unknown: n(2), Bad: bad("a missing value", "a missing value")},
		{Name: "y", Type: "label", AtLeast: n(1), AtMost: n(1), Below: n(1), Above: n(1), Bad: bad("text that often marks a missing value", "NaN")},
	}
	plain, without := mustRead(t, s, content, Options{ByRow: true})
	for _, workers := range []int{1, 4} {
		var tally Tally
		tab, stats := mustRead(t, s, content, Options{Tally: &tally, ByRow: true, workers: workers, piece: 1000})
		if stats.Dropped != without.Dropped || !cmp.Equal(stats, without) || tab.Rows() != plain.Rows() {
			t.Errorf("%+v, without a tally %+v", stats, without)
		}
		tally = Tally{}
		if _, stats, err = read(t, s, content, Options{Tally: &tally, workers: workers, piece: 1000}); err != nil || stats.Dropped != 4*times {
			t.Fatalf("%+v, %v", stats, err)
		}
		if diff := cmp.Diff(want, tally.Counts(s)); diff != "" {
			b, _ := json.Marshal(tally.Counts(s))
			t.Errorf("%d workers: %s\n%s", workers, diff, b)
		}
	}
}

// Other formats: sparse rows count their features together.
func TestTallyOfPairs(t *testing.T) {
	s, err := schema.Parse("", []byte(`{dataset: d, format: {kind: libsvm}, on_bad_row: drop, features: 3, columns: [{name: y, type: label, classes: [0, 1]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var tally Tally
	if _, _, err := read(t, s, "0 1:-1 2:1 3:7\n1 2:-3 3:0.5\n2 1:1\n1 9:1\n", Options{Tally: &tally}); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", tally.Counts(s))
	want := "[{Name: Type:row Missing:0 Unknown:0 Below:0 AtLeast:0 AtMost:0 Above:0 Bad:map[an index out of range:1]} " +
		"{Name:features Type:numeric Missing:0 Unknown:0 Below:1 AtLeast:1 AtMost:1 Above:1 Bad:map[]} " +
		"{Name:y Type:label Missing:0 Unknown:0 Below:0 AtLeast:0 AtMost:0 Above:0 Bad:map[a label that is none of the classes:1]}]"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
