//go:build !race

// Package examples_test holds the accuracy that the examples must reach. It is
// left out under the race detector, which makes 20 runs take minutes; .ci/run
// runs it without.
package examples_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// TestAdultAccuracy: one spec for every budget, nothing tuned per ε. The seeds are
// fixed, so the medians are too.
func TestAdultAccuracy(t *testing.T) {
	t.Parallel()
	dir := needs.Data(t)
	for _, bar := range []struct{ epsilon, accuracy float64 }{{1, 0.857}, {0.5, 0.856}, {0.1, 0.85}, {0.05, 0.845}} {
		var got []float64
		for seed := range 5 {
			info := train(t, "adult/sotto.yaml", filepath.Join(dir, "adult", "adult.data.gz"), filepath.Join(dir, "adult", "adult.test.gz"),
				seed, run.Override{Path: "privacy.epsilon", Value: fmt.Sprint(bar.epsilon), From: "test"})
			got = append(got, *info.Result.Test.Accuracy)
		}
		sort.Float64s(got)
		t.Logf("ε = %g: median %.4f of %.4f", bar.epsilon, got[2], got)
		if got[2] < bar.accuracy {
			t.Errorf("ε = %g: median accuracy %.4f, the bar is %.4f", bar.epsilon, got[2], bar.accuracy)
		}
	}
}

// TestAdultLineSearch: without a step size given, P2's line search comes within half a point of what
// sgd must reach, in the worst of five runs; also with batches and budgets that grow.
func TestAdultLineSearch(t *testing.T) {
	t.Parallel()
	dir := needs.Data(t)
	for _, bar := range []struct{ epsilon, accuracy float64 }{{1, 0.841}, {0.1, 0.838}} {
		for _, growth := range []string{"no", "adaptive"} {
			var got []float64
			for seed := range 5 {
				over := []run.Override{{Path: "privacy.epsilon", Value: fmt.Sprint(bar.epsilon), From: "test"}, {Path: "method.name", Value: "blsgd", From: "test"}, {Path: "method.growth", Value: growth, From: "test"}}
				if growth != "no" {
					over = append(over, run.Override{Path: "method.batch", Value: "3256", From: "test"})
				}
				info := train(t, "adult/sotto.yaml", filepath.Join(dir, "adult", "adult.data.gz"), filepath.Join(dir, "adult", "adult.test.gz"), seed, over...)
				got = append(got, *info.Result.Test.Accuracy)
			}
			sort.Float64s(got)
			t.Logf("ε = %g, growth %s: %.4f", bar.epsilon, growth, got)
			if got[0] < bar.accuracy {
				t.Errorf("ε = %g, growth %s: worst accuracy %.4f, the bar is %.4f", bar.epsilon, growth, got[0], bar.accuracy)
			}
		}
	}
}

// TestMNISTAccuracy: the digits as published, every row in every step, replace-one.
func TestMNISTAccuracy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(needs.Data(t), "mnist")
	info := train(t, "mnist/sotto.yaml", filepath.Join(dir, "train-images-idx3-ubyte.gz"), filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), 1)
	got := *info.Result.Test.Accuracy
	t.Logf("accuracy %.4f with noise multiplier %.4g", got, info.NoiseMultiplier)
	if b := info.Budget; got < 0.898 || b.Epsilon != 1 || b.Delta > 1.0/60000/60000 || b.Adjacency != privacy.ReplaceOne {
		t.Errorf("accuracy %.4f under %+v; the bar is 0.898 under ε = 1, δ = 1/n², replace-one", got, b)
	}
}

// TestMNISTScattering: the first 5,000 images. All 60,000 take minutes; their accuracy is in the README.
func TestMNISTScattering(t *testing.T) {
	t.Parallel()
	from, dir := filepath.Join(needs.Data(t), "mnist"), t.TempDir()
	first := func(name string, head, size, n int) string {
		f, err := os.Open(filepath.Join(from, name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, head+n*size)
		if _, err := io.ReadFull(z, b); err != nil {
			t.Fatal(err)
		}
		binary.BigEndian.PutUint32(b[4:], uint32(n))
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first("train-labels-idx1-ubyte", 8, 1, 5000)
	first("t10k-labels-idx1-ubyte", 8, 1, 2000)
	b, err := os.ReadFile("mnist/waves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(dir, "schema.yaml")
	if err := os.WriteFile(schema, bytes.Replace(b, []byte("rows: 60000"), []byte("rows: 5000"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	info := train(t, "mnist/scattering.yaml", first("train-images-idx3-ubyte", 16, 784, 5000), first("t10k-images-idx3-ubyte", 16, 784, 2000), 1,
		run.Override{Path: "schema", Value: quote(schema), From: "test"})
	got := *info.Result.Test.Accuracy
	t.Logf("accuracy %.4f with noise multiplier %.4g", got, info.NoiseMultiplier)
	if b := info.Budget; got < 0.94 || b.Epsilon != 3 || b.Delta != 1e-5 || b.Adjacency != privacy.AddRemove {
		t.Errorf("accuracy %.4f under %+v; the bar is 0.94 under ε = 3, δ = 1e-5, add-or-remove", got, b)
	}
}

// TestMNISTImages: the network on images learns in a fraction of its steps, and keeps examples for the report. The accuracy of the
// whole run is in the README: it takes minutes.
func TestMNISTImages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(needs.Data(t), "mnist")
	info := train(t, "mnist/cnn.yaml", filepath.Join(dir, "train-images-idx3-ubyte.gz"), filepath.Join(dir, "t10k-images-idx3-ubyte.gz"), 1,
		run.Override{Path: "method.steps", Value: "60", From: "test"}, run.Override{Path: "method.batch", Value: "512", From: "test"})
	got := *info.Result.Test.Accuracy
	t.Logf("accuracy %.4f with noise multiplier %.4g", got, info.NoiseMultiplier)
	if b := info.Budget; got < 0.9 || b.Epsilon != 2.93 || b.Delta != 1e-5 || b.Adjacency != privacy.AddRemove {
		t.Errorf("accuracy %.4f under %+v; the bar is 0.9 under ε = 2.93, δ = 1e-5, add-or-remove", got, b)
	}
	if n := len(info.Result.Test.Examples); n != 16 {
		t.Errorf("%d examples", n)
	}
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// train runs a spec on a table of the data folder in the lab, with a seed.
func train(t *testing.T, spec, rows, test string, seed int, more ...run.Override) *runlog.Info {
	t.Helper()
	dir := t.TempDir()
	var overrides []run.Override
	for _, f := range [][2]string{
		{"data", quote(rows)}, {"test", quote(test)}, {"lab", "true"}, {"seed", fmt.Sprint(seed)},
		{"out", quote(filepath.Join(dir, "run"))}, {"ledger", quote(filepath.Join(dir, "ledger.db"))},
	} {
		overrides = append(overrides, run.Override{Path: f[0], Value: f[1], From: "test"})
	}
	s, err := run.LoadSpec(spec, append(overrides, more...))
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	info, _, err := run.Fit(context.Background(), job, run.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}
