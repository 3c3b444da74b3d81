//go:build !race

package examples_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/run"
)

// visits are numbers of visits to a doctor, as the surveys of economists have them: most are 0, 1 or 2 and a few 30 and more, of
// people of whom five numbers are known. The label's bounds are 0 and 30.
func visits(rnd *rand.Rand) ([]float64, float64) {
	x := make([]float64, 5)
	log := 0.3
	for j, by := range []float64{0.9, -0.6, 0.4, 0, 0} {
		x[j] = 2*rnd.Float64() - 1
		log += by * x[j]
	}
	return x, math.Floor(math.Exp(log + rnd.NormFloat64()))
}

// progress is about as scikit-learn's diabetes is: ten correlated numbers, which explain half of the variance of one from 25 to 346.
func progress(rnd *rand.Rand) ([]float64, float64) {
	x, common, y := make([]float64, 10), rnd.NormFloat64(), 150+52*rnd.NormFloat64()
	for j := range x {
		x[j] = 0.25 * (0.7*common + rnd.NormFloat64())
		y += []float64{0, -12, 26, 16, -20, 10, -4, 8, 30, 3}[j] * x[j] * 4
	}
	return x, y
}

// TestRegression: `linear` without settings. A skewed label is fitted to its mean, not its median: what least squares without privacy
// gain over the mean of the label is gained whole at ε = 1 and nearly so at 0.1. 353 rows at ε = 0.1 are better than their
// mean. Least squares have no constant beside the rows, which are scaled to one norm, and so can be beaten. Medians of 5 seeds,
// add-or-remove, δ = 1e-5; the seeds are fixed, so the medians are too.
func TestRegression(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		draw          func(*rand.Rand) ([]float64, float64)
		features      int
		rows, test    int
		low, high     float64
		epsilon, gain float64
	}{
		{"visits", visits, 5, 16000, 4000, 0, 30, 1, 1},
		{"visits", visits, 5, 16000, 4000, 0, 30, 0.1, 0.9}, // 0.95 with lines alone, as waves cost 1.2 % here
		{"progress", progress, 10, 353, 4000, 0, 350, 1, 1},
		{"progress", progress, 10, 353, 4000, 0, 350, 0.1, 0.25},
	} {
		dir, rnd := t.TempDir(), rand.New(rand.NewPCG(22, 4))
		var schema strings.Builder
		fmt.Fprintf(&schema, "dataset: %s\nrows: %d\ncolumns:\n", c.name, c.rows)
		head := ""
		for j := range c.features {
			fmt.Fprintf(&schema, "  - {name: x%d, type: numeric, min: -1, max: 1}\n", j)
			head += fmt.Sprintf("x%d,", j)
		}
		fmt.Fprintf(&schema, "  - {name: y, type: label, min: %v, max: %v}\n", c.low, c.high)
		table := func(n int) (text string, labels []float64) {
			var b strings.Builder
			b.WriteString(head + "y\n")
			for range n {
				x, y := c.draw(rnd)
				for _, v := range x {
					fmt.Fprintf(&b, "%.4f,", v)
				}
				fmt.Fprintf(&b, "%.4f\n", y)
				labels = append(labels, math.Max(c.low, math.Min(c.high, y)))
			}
			return b.String(), labels
		}
		fitted, seen := table(c.rows)
		held, asked := table(c.test)
		for name, text := range map[string]string{
			"schema.yaml": schema.String(), "train.csv": fitted, "test.csv": held,
			"spec.yaml": fmt.Sprintf("schema: %s/schema.yaml\nmodel: {name: linear}\nprivacy: {epsilon: %v, delta: 1e-5, adjacency: add-or-remove}\n", dir, c.epsilon),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fit := func(seed int, more ...run.Override) float64 {
			return *train(t, filepath.Join(dir, "spec.yaml"), filepath.Join(dir, "train.csv"), filepath.Join(dir, "test.csv"), seed, more...).Result.Test.RMSE
		}
		mean, flat := 0.0, 0.0
		for _, y := range seen {
			mean += y / float64(len(seen))
		}
		for _, y := range asked {
			flat += (y - mean) * (y - mean) / float64(len(asked))
		}
		flat = math.Sqrt(flat)
		least := fit(0, run.Override{Path: "privacy", Value: "none", From: "test"}, run.Override{Path: "method.name", Value: "optimum", From: "test"})
		var got []float64
		for seed := range 5 {
			got = append(got, fit(seed))
		}
		found := median(got)
		t.Logf("%s, ε = %v: root mean squared error %.4f of %.4f; the mean label has %.4f, least squares %.4f", c.name, c.epsilon, found, got, flat, least)
		if bar := flat - c.gain*(flat-least); !(found <= bar) {
			t.Errorf("%s, ε = %v: root mean squared error %.4f, the bar is %.4f", c.name, c.epsilon, found, bar)
		}
	}
}
