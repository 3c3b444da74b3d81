package page

import (
	"testing"

	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// A damaged run.json is no panic: a table of classes that is not square is left out.
func TestConfusionOfDamaged(t *testing.T) {
	for _, table := range [][][]int{nil, {{}}, {{1, 2}}, {{1}, {2}}, {{1, 2}, {3}}} {
		if c := confusionOf(qualityOf(table)); c != nil {
			t.Errorf("%v: %v", table, c)
		}
	}
	if c := confusionOf(qualityOf([][]int{{3, 1}, {0, 2}})); c == nil || c.Rows[0][3] != "0.7500" {
		t.Errorf("a square table: %v", c)
	}
}

func qualityOf(table [][]int) *record.Quality {
	return &record.Of(&runlog.Info{Result: &runlog.Result{Test: &runlog.Scores{Confusion: table}}}, nil).Quality
}
