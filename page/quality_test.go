package page

import (
	"testing"

	"github.com/sottodp/sotto/run/runlog"
)

// TestTestWords: a sentence of scores sets each beside that of the best constant.
func TestTestWords(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	for want, s := range map[string]*runlog.Scores{
		"On 1 test row: no scores.": {Rows: 1},
		"On 10 test rows: root mean squared error 3 (the best constant: 5), R² 0.6400 (the best constant: 0.0000).": {Rows: 10, RMSE: v(3), R2: v(0.64)},
		"On 100 test rows: accuracy 0.9000 (the best constant: 0.8000), log loss 0.2000 (the best constant: 0.5004), area under the ROC curve 0.9100.": {
			Rows: 100, Accuracy: v(0.9), LogLoss: v(0.2), AUC: v(0.91), Confusion: [][]int{{75, 5}, {5, 15}}},
	} {
		if got := testWords(s); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
