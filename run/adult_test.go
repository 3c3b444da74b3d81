//go:build !race

package run

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/runlog"
)

// TestAdultEvaluation: private figures of a model of Adult, on the rows of its test file and on 6,512 of them, as many as a fifth of the
// training file: of twenty evaluations with fixed seeds the interval of the accuracy holds the exact one in 18 at least, which an interval
// with the coverage .95 misses with probability .08; it is ±.012 wide at most, and the AUC is off by .02 at most.
func TestAdultEvaluation(t *testing.T) {
	t.Parallel()
	folder, dir := filepath.Join(needs.Data(t), "adult"), t.TempDir()
	whole := filepath.Join(folder, "adult.test.gz")
	packed, err := os.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	const few = 6512
	part := filepath.Join(dir, "part.data")
	if err := os.WriteFile(part, bytes.Join(bytes.SplitAfterN(text, []byte("\n"), few+2)[:few+1], nil), 0o600); err != nil { // the first line is a comment
		t.Fatal(err)
	}
	spec := filepath.Join(dir, "spec.yaml")
	example, err := filepath.Abs("../examples/adult/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spec, fmt.Appendf(nil, `{schema: %q, data: %q, model: {name: logistic}, privacy: {epsilon: 1, delta: 1e-6, adjacency: add-or-remove}, lab: true, seed: 1, ledger: %q, out: %q}`,
		example, filepath.Join(folder, "adult.data.gz"), filepath.Join(dir, "lab.db"), filepath.Join(dir, "run")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadSpec(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Fit(t.Context(), job, Env{}); err != nil {
		t.Fatal(err)
	}
	m, err := LoadModel(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		table   string
		rows    int
		epsilon float64
		bar     bool
	}{{whole, 16281, 1, true}, {part, few, 1, true}, {whole, 16281, 0.1, false}} {
		exact, err := m.Evaluate(t.Context(), c.table, Evaluation{Ledger: filepath.Join(dir, "lab.db"), Void: true})
		if err != nil || exact.Rows != c.rows {
			t.Fatalf("%+v, %v", exact, err)
		}
		var accuracy, auc, loss int
		var width, off, far, widthAUC, widthLoss float64
		for seed := range uint64(20) {
			at := filepath.Join(dir, fmt.Sprintf("%d-%v-%d", c.rows, c.epsilon, seed))
			e, _, err := m.EvaluatePrivately(t.Context(), c.table, PrivateEvaluation{Epsilon: c.epsilon, Rows: c.rows, Dataset: "adult-test", Ledger: at + ".db", Out: at, streams: noise.SeededStreams(seed)})
			if err != nil {
				t.Fatal(err)
			}
			holds := func(f *runlog.Figure, v float64, n *int, width *float64) float64 {
				if f.Low <= v && v <= f.High {
					*n++
				}
				*width = max(*width, (f.High-f.Low)/2)
				return math.Abs(*f.Value - v)
			}
			off = max(off, holds(e.Private.Accuracy, *exact.Accuracy, &accuracy, &width))
			far = max(far, holds(e.Private.AUC, *exact.AUC, &auc, &widthAUC))
			holds(e.Private.LogLoss, *exact.LogLoss, &loss, &widthLoss)
		}
		t.Logf("%d rows, ε = %v: accuracy %.4f in %d of 20 intervals of ±%.4f at most, off by %.4f at most; AUC %.4f in %d, ±%.4f, off by %.4f; log loss %.4f in %d, ±%.4f",
			c.rows, c.epsilon, *exact.Accuracy, accuracy, width, off, *exact.AUC, auc, widthAUC, far, *exact.LogLoss, loss, widthLoss)
		if c.bar && (accuracy < 18 || width > 0.012 || far > 0.02 || auc < 18 || loss < 18) {
			t.Errorf("%d rows, ε = %v: missed", c.rows, c.epsilon)
		}
	}
}
