package run

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/runlog"
)

// A run by auto has a factor on its margins: scores, evaluate and predict use it, verify computes it again from the
// releases where no last release finds one, and raw_margins leaves it out without another effect. A change of the factor in the model file is found,
// and a file of an earlier version, without it, verifies.
func TestMarginFactorOfRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	heldout, err := filepath.Abs(filepath.Join("..", "examples", "clinic", "heldout.csv"))
	if err != nil {
		t.Fatal(err)
	}
	fit := func(name, more string) (*runlog.Info, *Trained, string) {
		job, out := begin(t, dir, name, fmt.Sprintf("test: %s\nlab: true\nseed: 3\n%s", heldout, more))
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		m, err := LoadModel(out)
		if err != nil {
			t.Fatal(err)
		}
		return info, m, out
	}
	info, m, out := fit("run", "method: {name: auto, last: none}")
	rawInfo, raw, _ := fit("raw", "method: {name: auto, raw_margins: true}")
	_, last, _ := fit("last", "output: last")
	a := m.File.MarginFactor
	if !(a > 0 && a < 1) || raw.File.MarginFactor != 0 || last.File.MarginFactor != 0 || !slices.Equal(m.File.W, raw.File.W) {
		t.Fatalf("factors %v, raw %v, of the last iterate %v", a, raw.File.MarginFactor, last.File.MarginFactor)
	}
	loss, rawLoss := *info.Result.Test.LogLoss, *rawInfo.Result.Test.LogLoss
	if loss >= rawLoss || *info.Result.Test.Accuracy != *rawInfo.Result.Test.Accuracy || *info.Result.Test.AUC != *rawInfo.Result.Test.AUC {
		t.Errorf("log loss %v, raw %v; accuracy and AUC stay: %+v, %+v", loss, rawLoss, info.Result.Test, rawInfo.Result.Test)
	}
	scores, err := m.Evaluate(t.Context(), heldout, Evaluation{Unprotected: true, Ledger: filepath.Join(dir, "ledger.db")})
	if err != nil || *scores.LogLoss != loss {
		t.Errorf("evaluate: %v, %v; the run says %v", scores, err, loss)
	}
	for i, w := range m.File.Weights() {
		if w != a*raw.File.W[i] {
			t.Fatalf("parameter %d for predictions: %v", i, w)
		}
	}
	broken := func() (names []string) {
		found, err := Verify(t.Context(), out, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if !f.Holds {
				names = append(names, f.What)
			}
		}
		return names
	}
	if names := broken(); names != nil {
		t.Fatalf("does not hold: %v", names)
	}
	path := filepath.Join(out, runlog.ModelFile)
	for _, c := range []struct {
		factor float64
		found  bool
	}{{math.Nextafter(a, 0), true}, {1, true}, {0, false}, {a, false}} {
		m.File.MarginFactor = c.factor
		if err := model.Write(path, m.File); err != nil {
			t.Fatal(err)
		}
		if names := broken(); slices.Contains(names, "model") != c.found {
			t.Errorf("factor %v: found %v", c.factor, names)
		}
	}
}
