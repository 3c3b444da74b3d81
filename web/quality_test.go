package web

import (
	"testing"

	"github.com/sottodp/sotto/run/runlog"
)

// TestQuality: the column of scores says where a constant would be better, as the lines of fit do, and in which figure.
func TestQuality(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	good, poor := [][]int{{75, 5}, {5, 15}}, [][]int{{50, 30}, {15, 5}}
	for want, s := range map[string]*runlog.Scores{
		"":                nil,
		"accuracy 0.9000": {Rows: 100, Accuracy: v(0.9), LogLoss: v(0.2), Confusion: good},
		"accuracy 0.9000; worse than a constant in log loss":           {Rows: 100, Accuracy: v(0.9), LogLoss: v(0.6), Confusion: good},
		"accuracy 0.5500; worse than a constant in accuracy, log loss": {Rows: 100, Accuracy: v(0.55), LogLoss: v(0.9), Confusion: poor},
		"RMSE 3, R² 0.6400": {Rows: 10, RMSE: v(3), R2: v(0.64)},
		"RMSE 6, R² -3.0000; worse than a constant in RMSE, R²": {Rows: 10, RMSE: v(6), R2: v(-3)},
	} {
		if got := score(s); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	figure := func(x float64) *runlog.Figure { return &runlog.Figure{Value: &x, Low: x - 0.1, High: x + 0.1} }
	for want, p := range map[string]*runlog.Private{
		"RMSE 2 (1.9 to 2.1), R² 0.5 (0.4 to 0.6)":                                 {RMSE: figure(2), R2: figure(0.5)},
		"RMSE 2 (1.9 to 2.1), R² -0.5 (-0.6 to -0.4); worse than a constant in R²": {RMSE: figure(2), R2: figure(-0.5)},
	} {
		if got := quality(p); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
