package page

import (
	"testing"

	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/run/runlog"
)

// TestTestWords: a sentence of scores sets each beside that of the best constant.
func TestTestWords(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for want, s := range map[string]*runlog.Scores{
		"On 1 test row: no scores.": {Rows: 1},
		"On 10 test rows: RMSE (root mean squared error) 3 (one answer for all rows: 5; lower is better), R² 0.6400 (one answer for all rows: 0.0000; 1 is perfect).": {Rows: 10, RMSE: v(3), R2: v(0.64)},
		"On 100 test rows: accuracy 0.9000 (one answer for all rows: 0.8000), log loss 0.2000 (one answer for all rows: 0.5004; lower is better), AUC (area under the ROC curve) 0.9100 (0.5 is guessing, 1 is perfect).": {
			Rows: 100, Accuracy: v(0.9), LogLoss: v(0.2), AUC: v(0.91), Confusion: [][]int{{75, 5}, {5, 15}}},
	} {
		if got := testWords(s, chart.FigureWords()); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
