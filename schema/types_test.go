package schema

import (
	"maps"
	"slices"
	"testing"
)

// TestColumnTypes: questions know every type of column, and only fields that it has.
func TestColumnTypes(t *testing.T) {
	var names []string
	for _, typ := range ColumnTypes() {
		names = append(names, typ.Name)
		for asks := typ.Asks; len(asks) > 0; {
			q := asks[0]
			asks = slices.Concat(asks[1:], q.Then)
			if fields := columnFields[typ.Name]; !slices.Contains(fields, q.Field) || q.Instead != "" && !slices.Contains(fields, q.Instead) {
				t.Errorf("%s has no field %q or %q", typ.Name, q.Field, q.Instead)
			}
		}
	}
	slices.Sort(names)
	if known := slices.Sorted(maps.Keys(columnFields)); !slices.Equal(names, known) {
		t.Errorf("offered are %v, known are %v", names, known)
	}
}
