//go:build !race

package examples_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"sort"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
)

var long = flag.Bool("long", false, "train on all of MNIST with five seeds, scattering too: about three quarters of an hour of processor time")

// TestNetworkDefaults: a network without any setting but its layers, on 80/20 splits by fixed seeds, at ε = 1, add-or-remove,
// δ = 1e-5: medians of three, with -long of five. Its input scale, clip norm, steps and rate follow from public numbers.
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
		seeds := 3
		if *long {
			seeds = 5
		}
		for seed := range seeds {
			spec, train80, test20 := fourFifths(t, table.name, table.rows, table.schema, "model: {name: mlp, layers: [64 relu]}\nmethod: {name: sgd}", seed)
			info := train(t, spec, train80, test20, seed)
			got, loss = append(got, *info.Result.Test.Accuracy), append(loss, *info.Result.Test.LogLoss)
		}
		sort.Float64s(got)
		sort.Float64s(loss)
		middle := seeds / 2
		t.Logf("%s: median %.4f of %.4f, log loss %.4f", table.name, got[middle], got, loss[middle])
		if got[middle] < table.accuracy || loss[middle] > table.logLoss {
			t.Errorf("%s: median accuracy %.4f and log loss %.4f; the bars are %.3f and %.2f", table.name, got[middle], loss[middle],
				table.accuracy, table.logLoss)
		}
	}
}

// TestMNISTFull: what the examples of MNIST must reach on all images, add-or-remove, δ = 1e-5: the network of 128 hidden units, by one
// seed, and with -long the medians of five of the network, of auto, and of a small network on scattering coefficients.
func TestMNISTFull(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(needs.Data(t), "mnist")
	images, test := filepath.Join(dir, "train-images-idx3-ubyte.gz"), filepath.Join(dir, "t10k-images-idx3-ubyte.gz")
	type bar struct {
		spec              string
		epsilon, accuracy float64
	}
	bars, seeds := []bar{{"mnist/mlp.yaml", 3, 0.953}}, 1
	if *long {
		seeds = 5
		bars = append(bars, bar{"mnist/scattering.yaml", 0.1, 0.95}, bar{"mnist/scattering.yaml", 1, 0.976}, bar{"mnist/scattering.yaml", 3, 0.981},
			bar{"mnist/scattering-cnn.yaml", 3, 0.985})
	}
	for _, bar := range bars {
		var got []float64
		for seed := range seeds {
			info := train(t, bar.spec, images, test, seed+1, run.Override{Path: "privacy.epsilon", Value: fmt.Sprint(bar.epsilon), From: "test"})
			if b := info.Budget; b.Epsilon != bar.epsilon || b.Delta != 1e-5 || b.Adjacency != privacy.AddRemove {
				t.Errorf("%s: trained under %+v", bar.spec, b)
			}
			got = append(got, *info.Result.Test.Accuracy)
		}
		sort.Float64s(got)
		median := got[len(got)/2]
		t.Logf("%s, ε = %g: median %.4f of %.4f", bar.spec, bar.epsilon, median, got)
		if median < bar.accuracy {
			t.Errorf("%s, ε = %g: median accuracy %.4f, the bar is %.3f", bar.spec, bar.epsilon, median, bar.accuracy)
		}
	}
}
