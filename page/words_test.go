package page

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sottodp/sotto/oracle"
	"github.com/sottodp/sotto/record"
)

// Every public fact that a report shows has a name in words.
func TestFieldNames(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[oracle.Public]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if fieldNames[name] == "" && name != "-" && !f.Anonymous {
			t.Errorf("the field %s of public facts has no name in words", f.Name)
		}
	}
}

// TestBatches: where more batches were charged than steps planned, the words say what the others are.
func TestBatches(t *testing.T) {
	for want, c := range map[string]record.Course{
		"90 batches were charged; 89 steps were planned. One batch more than the steps is a query before, within or after them; its cost is part of ε.":             {Charged: 90, Planned: 89, Steps: 89},
		"192 batches were charged; 190 steps were planned. The 2 batches beside the steps are queries before, within or after them; the cost of each is part of ε.": {Charged: 192, Planned: 190, Steps: 190},
		"1 batch was charged; 1 step was planned.":         {Charged: 1, Planned: 1, Steps: 1},
		"41 batches were charged; 40 steps were planned.":  {Charged: 41, Planned: 40, Steps: 40, Lost: 1}, // another sentence says what was lost
		"17 batches were charged; 100 steps were planned.": {Charged: 17, Planned: 100},
	} {
		if got := Batches(&c, false); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if got, want := Batches(&record.Course{Charged: 3, Planned: 9, Steps: 3}, true), "3 batches were charged; at most 9 steps were planned."; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
