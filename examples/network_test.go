//go:build !race

package examples_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"sort"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
)

var long = flag.Bool("long", false, "train on all of MNIST with five seeds: about half an hour of processor time")

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

// TestMNISTFull: what the examples of MNIST must reach on all images, medians of five seeds: the network, and auto
// and a small network on scattering coefficients.
func TestMNISTFull(t *testing.T) {
	if !*long {
		t.Skip("takes half an hour of processor time; -long runs it")
	}
	dir := filepath.Join(needs.Data(t), "mnist")
	images, test := filepath.Join(dir, "train-images-idx3-ubyte.gz"), filepath.Join(dir, "t10k-images-idx3-ubyte.gz")
	for _, bar := range []struct {
		spec              string
		epsilon, accuracy float64
	}{
		{"mnist/mlp.yaml", 3, 0.953},
		{"mnist/scattering.yaml", 0.1, 0.95}, {"mnist/scattering.yaml", 1, 0.972}, {"mnist/scattering.yaml", 3, 0.978},
		{"mnist/scattering-cnn.yaml", 3, 0.985},
	} {
		var got []float64
		for seed := range 5 {
			info := train(t, bar.spec, images, test, seed+1, run.Override{Path: "privacy.epsilon", Value: fmt.Sprint(bar.epsilon), From: "test"})
			got = append(got, *info.Result.Test.Accuracy)
		}
		sort.Float64s(got)
		t.Logf("%s, ε = %g: median %.4f of %.4f", bar.spec, bar.epsilon, got[2], got)
		if got[2] < bar.accuracy {
			t.Errorf("%s, ε = %g: median accuracy %.4f, the bar is %.3f", bar.spec, bar.epsilon, got[2], bar.accuracy)
		}
	}
}
