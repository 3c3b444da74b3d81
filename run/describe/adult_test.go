//go:build !race

package describe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
)

// TestAdultBounds: bounds of Adult's five numeric columns, estimated at ε = 0.1, cost the default method at ε = 1 at most 0.004 of its
// accuracy with the bounds that a person wrote: the median of five seeds, of noise and of training, which are fixed.
func TestAdultBounds(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(needs.Data(t), "adult")
	byHand, err := os.ReadFile("../../examples/adult/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	open := string(byHand)
	for _, bounds := range []string{"min: 17, max: 90", "min: 1, max: 16", "min: 0, max: 99999", "min: 0, max: 4500", "min: 1, max: 99"} {
		if strings.Count(open, bounds+"}")+strings.Count(open, bounds+",") != 1 {
			t.Fatalf("the schema has not one %q", bounds)
		}
		open = strings.Replace(open, bounds, "bounds: unknown", 1)
	}
	lost := map[float64][]float64{}
	for seed := range uint64(5) {
		dir := t.TempDir()
		score := func(name string, text []byte) float64 {
			file, spec := filepath.Join(dir, name+".yaml"), filepath.Join(dir, name+"-spec.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(spec, fmt.Appendf(nil, `{schema: %s.yaml, data: %q, test: %q, model: {name: logistic}, privacy: {epsilon: 1, delta: 1e-6, adjacency: add-or-remove}, lab: true, seed: %d, ledger: %q, out: %q}`,
				name, filepath.Join(folder, "adult.data.gz"), filepath.Join(folder, "adult.test.gz"), seed, filepath.Join(dir, name+".db"), filepath.Join(dir, name)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := run.LoadSpec(spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			job, err := run.Prepare(s)
			if err != nil {
				t.Fatal(err)
			}
			info, _, err := run.Fit(t.Context(), job, run.Env{})
			if err != nil {
				t.Fatal(err)
			}
			return *info.Result.Test.Accuracy
		}
		file := filepath.Join(dir, "open.yaml")
		if err := os.WriteFile(file, []byte(open), 0o600); err != nil {
			t.Fatal(err)
		}
		whole := score("whole", byHand)
		for _, delta := range []float64{0, 1e-6} {
			b, err := EstimateBounds(t.Context(), BoundsOptions{Schema: file, Data: filepath.Join(folder, "adult.data.gz"), Ledger: filepath.Join(dir, "ledger.db"),
				Epsilon: 0.1, Delta: delta, Adjacency: "add-or-remove", streams: noise.SeededStreams(seed)})
			if err != nil {
				t.Fatal(err)
			}
			if len(b.found()) != 5 {
				t.Fatalf("δ = %v, seed %d: %v", delta, seed, b.found())
			}
			estimated := score(fmt.Sprintf("estimated-%v", delta), b.Schema)
			t.Logf("δ = %v, seed %d: %.4f with bounds by hand, %.4f with %v", delta, seed, whole, estimated, b.found())
			lost[delta] = append(lost[delta], whole-estimated)
		}
	}
	for delta, l := range lost {
		slices.Sort(l)
		t.Logf("δ = %v: lost %.4f", delta, l)
		if l[2] > 0.004 {
			t.Errorf("δ = %v: a median of %.4f is lost", delta, l[2])
		}
	}
}
