//go:build !race

// Package examples_test holds the accuracy that the examples must reach. It is
// left out under the race detector, which makes 20 runs take minutes; .ci/run
// runs it without.
package examples_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sort"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run"
)

// TestAdultAccuracy: one spec for every budget, nothing tuned per ε. The seeds are
// fixed, so the medians are too.
func TestAdultAccuracy(t *testing.T) {
	dir := needs.Data(t)
	for _, bar := range []struct{ epsilon, accuracy float64 }{{1, 0.846}, {0.5, 0.845}, {0.1, 0.843}, {0.05, 0.834}} {
		var got []float64
		for seed := range 5 {
			spec, err := run.LoadSpec("adult/sotto.yaml", []run.Override{
				{Path: "data", Value: quote(filepath.Join(dir, "adult", "adult.data.gz")), From: "test"},
				{Path: "test", Value: quote(filepath.Join(dir, "adult", "adult.test.gz")), From: "test"},
				{Path: "privacy.epsilon", Value: fmt.Sprint(bar.epsilon), From: "test"},
				{Path: "lab", Value: "true", From: "test"},
				{Path: "seed", Value: fmt.Sprint(seed), From: "test"},
				{Path: "out", Value: quote(filepath.Join(t.TempDir(), "run")), From: "test"},
				{Path: "ledger", Value: quote(filepath.Join(t.TempDir(), "ledger.db")), From: "test"},
			})
			if err != nil {
				t.Fatal(err)
			}
			job, err := run.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			info, _, err := run.Fit(context.Background(), job, run.Env{})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, *info.Result.Test.Accuracy)
		}
		sort.Float64s(got)
		t.Logf("ε = %g: median %.4f of %.4f", bar.epsilon, got[2], got)
		if got[2] < bar.accuracy {
			t.Errorf("ε = %g: median accuracy %.4f, the bar is %.4f", bar.epsilon, got[2], bar.accuracy)
		}
	}
}

// TestMNISTAccuracy: the digits as published, every row in every step, replace-one.
func TestMNISTAccuracy(t *testing.T) {
	dir := filepath.Join(needs.Data(t), "mnist")
	spec, err := run.LoadSpec("mnist/sotto.yaml", []run.Override{
		{Path: "data", Value: quote(filepath.Join(dir, "train-images-idx3-ubyte.gz")), From: "test"},
		{Path: "test", Value: quote(filepath.Join(dir, "t10k-images-idx3-ubyte.gz")), From: "test"},
		{Path: "lab", Value: "true", From: "test"},
		{Path: "seed", Value: "1", From: "test"},
		{Path: "out", Value: quote(filepath.Join(t.TempDir(), "run")), From: "test"},
		{Path: "ledger", Value: quote(filepath.Join(t.TempDir(), "ledger.db")), From: "test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	info, _, err := run.Fit(context.Background(), job, run.Env{})
	if err != nil {
		t.Fatal(err)
	}
	got := *info.Result.Test.Accuracy
	t.Logf("accuracy %.4f with noise multiplier %.4g", got, info.NoiseMultiplier)
	if b := info.Budget; got < 0.895 || b.Epsilon != 1 || b.Delta > 1.0/60000/60000 || b.Adjacency != privacy.ReplaceOne {
		t.Errorf("accuracy %.4f under %+v; the bar is 0.895 under ε = 1, δ = 1/n², replace-one", got, b)
	}
}

func quote(s string) string { return fmt.Sprintf("%q", s) }
