package schema

import (
	"slices"
	"testing"
)

// TestColumnTypes: questions ask only for fields that a column of the type has.
func TestColumnTypes(t *testing.T) {
	for _, typ := range ColumnTypes() {
		if typ.About == "" {
			t.Errorf("nothing says what a column of type %s is", typ.Name)
		}
		for asks := typ.Asks; len(asks) > 0; {
			q := asks[0]
			asks = slices.Concat(asks[1:], q.Then)
			if !HasField(typ.Name, q.Field) || q.Instead != "" && !HasField(typ.Name, q.Instead) {
				t.Errorf("%s has no field %q or %q", typ.Name, q.Field, q.Instead)
			}
		}
	}
}
