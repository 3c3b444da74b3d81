//go:build !race

package examples_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/study/compare"
)

// TestAutoCentersRows: what rows less their noisy mean must gain on covtype-sample, class 2 against the rest, at ε = 0.1. The seeds are
// fixed, so the medians are too.
func TestAutoCentersRows(t *testing.T) {
	t.Parallel()
	dir, packed := t.TempDir(), filepath.Join(needs.Data(t), "covtype-sample", "covtype-sample-15000.csv.gz")
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var text, columns strings.Builder
	lines := bufio.NewScanner(z)
	for n := 0; lines.Scan(); n++ {
		at := strings.LastIndexByte(lines.Text(), ',')
		if n == 0 {
			high := []int{4000, 360, 60, 1400, 600, 7200, 255, 255, 255, 7200}
			for k, name := range strings.Split(lines.Text()[:at], ",") {
				most := 1
				if k < len(high) {
					most = high[k]
				}
				fmt.Fprintf(&columns, "  - {name: %s, type: numeric, min: 0, max: %d}\n", name, most)
			}
			fmt.Fprintln(&text, lines.Text())
			continue
		}
		fmt.Fprintf(&text, "%s,%t\n", lines.Text()[:at], lines.Text()[at+1:] == "2")
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	columns.WriteString("  - {name: Cover_Type, type: label, classes: [\"false\", \"true\"]}\n")
	for name, text := range map[string]string{
		"covtype.csv": text.String(),
		"schema.yaml": "dataset: covtype\nrows: 12000\nformat: {kind: csv, header: true}\ncolumns:\n" + columns.String(),
		"spec.yaml":   "schema: schema.yaml\nmodel: {name: logistic}\nprivacy: {epsilon: 0.1, delta: 1e-5, adjacency: add-or-remove}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	median := func(over ...run.Override) float64 {
		p, err := compare.New(compare.Options{File: filepath.Join(dir, "spec.yaml"), Data: []string{filepath.Join(dir, "covtype.csv")},
			Flags: over, Varied: job.Comparison{Epsilon: []string{"0.1"}, Seeds: 5, Split: 0.8, Rows: 15000}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Prepare(1); err != nil {
			t.Fatal(err)
		}
		var got []float64
		if err := p.Train(t.Context(), 1, func(_ *compare.Cell, r compare.Result) error {
			got = append(got, *r.Score)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		sort.Float64s(got)
		return got[2]
	}
	none, mean := median(run.Override{Path: "method.center", Value: "none", From: "test"}), median()
	t.Logf("median accuracy %.4f, of rows as they are %.4f", mean, none)
	if mean < 0.67 || mean < none+0.02 {
		t.Errorf("median accuracy %.4f, of rows as they are %.4f; the bar is 0.67, and 0.02 more", mean, none)
	}
}
