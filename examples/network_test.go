//go:build !race

package examples_test

import (
	"sort"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
)

// TestNetworkDefaults: a network without any setting but its layers, on 80/20 splits by fixed seeds, at ε = 1, add-or-remove,
// δ = 1e-5. Its input scale, clip norm, steps and rate follow from public numbers.
func TestNetworkDefaults(t *testing.T) {
	t.Parallel()
	dir := needs.Data(t)
	for _, table := range []struct {
		name     string
		rows     []string
		schema   string
		accuracy float64
		logLoss  float64
	}{
		{"covtype", covertype(t, dir), covertypeSchema(t, dir), 0.76, 0.53},
		{"ijcnn1", ijcnn1(t, dir), ijcnn1Schema(), 0.925, 0.2},
	} {
		var got, loss []float64
		for seed := range 5 {
			spec, train80, test20 := fourFifths(t, table.name, table.rows, table.schema, "model: {name: mlp, layers: [64 relu]}\nmethod: {name: sgd}", seed)
			info := train(t, spec, train80, test20, seed)
			got, loss = append(got, *info.Result.Test.Accuracy), append(loss, *info.Result.Test.LogLoss)
		}
		sort.Float64s(got)
		sort.Float64s(loss)
		t.Logf("%s: median %.4f of %.4f, log loss %.4f", table.name, got[2], got, loss)
		if got[2] < table.accuracy || loss[2] > table.logLoss {
			t.Errorf("%s: median accuracy %.4f and log loss %.4f; the bars are %.3f and %.2f", table.name, got[2], loss[2], table.accuracy, table.logLoss)
		}
	}
}
