//go:build !race

package examples_test

import (
	"path/filepath"
	"sort"
	"sync"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/study/compare"
)

// TestAutoSplits: the accuracy that the default method must reach on splits of all rows, by a keyed hash of
// each, under replace-one with δ below 1/n². The seeds are fixed, so the medians are too.
func TestAutoSplits(t *testing.T) {
	t.Parallel()
	dir := needs.Data(t)
	for _, bar := range []struct {
		name     string
		files    []string
		rows     int
		delta    string
		accuracy float64
	}{
		{"adult", []string{"adult/adult.data.gz", "adult/adult.test.gz"}, 48842, "4.1e-10", 0.833},
		{"bank", []string{"bank/bank-full.csv.gz"}, 45211, "4.8e-10", 0.895},
	} {
		var files []string
		for _, f := range bar.files {
			files = append(files, filepath.Join(dir, f))
		}
		p, err := compare.New(compare.Options{File: filepath.Join(bar.name, "sotto.yaml"), Data: files,
			Flags: []run.Override{
				{Path: "privacy.delta", Value: bar.delta, From: "test"},
				{Path: "privacy.adjacency", Value: "replace-one", From: "test"},
			},
			Varied: job.Comparison{Epsilon: []string{"0.1"}, Seeds: 10, Split: 0.8, Rows: bar.rows},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Prepare(2); err != nil {
			t.Fatal(err)
		}
		var got []float64
		var mu sync.Mutex
		if err := p.Train(t.Context(), 2, func(_ *compare.Cell, r compare.Result) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, *r.Score)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sort.Float64s(got)
		median := (got[len(got)/2-1] + got[len(got)/2]) / 2
		t.Logf("%s: median %.4f of %.4f", bar.name, median, got)
		if median < bar.accuracy {
			t.Errorf("%s: median accuracy %.4f, the bar is %.4f", bar.name, median, bar.accuracy)
		}
	}
}
