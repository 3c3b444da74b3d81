//go:build !race

package examples_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/run/score"
)

// TestAdultHoldout: the private figures of Adult's holdout at ε = 1 beside the exact ones of the same rows. An interval is for 95 %
// of runs; the seeds are fixed, so the test never fails by chance.
func TestAdultHoldout(t *testing.T) {
	t.Parallel()
	table := filepath.Join(needs.Data(t), "adult", "adult.data.gz")
	runs, least := 5, 4
	if *long {
		runs, least = 20, 18
	}
	within := map[string]int{}
	for seed := range runs {
		info, exact := heldOut(t, "adult/sotto.yaml", table, seed, run.Override{Path: "holdout", Value: "0.2", From: "test"}, run.Override{Path: "privacy.epsilon", Value: "1", From: "test"})
		private := info.Result.Private
		for _, f := range []struct {
			name    string
			private *runlog.Figure
			exact   *float64
		}{{"accuracy", private.Accuracy, exact.Accuracy}, {"AUC", private.AUC, exact.AUC}, {"log loss", private.LogLoss, exact.LogLoss}} {
			if f.private.Low <= *f.exact && *f.exact <= f.private.High {
				within[f.name]++
			}
			t.Logf("seed %d: %s %.4f, %.4f to %.4f; exact %.4f", seed, f.name, *f.private.Value, f.private.Low, f.private.High, *f.exact)
		}
		if half := (private.Accuracy.High - private.Accuracy.Low) / 2; half > 0.012 {
			t.Errorf("seed %d: the interval of the accuracy has half a width of %.4f; the bar is .012", seed, half)
		}
		if off := math.Abs(*private.AUC.Value - *exact.AUC); off > 0.02 {
			t.Errorf("seed %d: AUC is off by %.4f; the bar is .02", seed, off)
		}
	}
	t.Logf("of %d runs the interval holds the exact figure in: %v", runs, within)
	if within["accuracy"] < least {
		t.Errorf("the interval of the accuracy holds the exact one in %d of %d runs; the bar is %d", within["accuracy"], runs, least)
	}
}

// heldOut trains with a holdout as `sotto fit --lab --seed` does, verifies the run, and scores its model on the same rows without noise.
func heldOut(t *testing.T, spec, table string, seed int, over ...run.Override) (*runlog.Info, *runlog.Scores) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	// Rows are read again under the job's schema, which is the model's if the run chooses no pairs.
	for _, f := range [][2]string{{"pairs", "none"}, {"data", quote(table)}, {"lab", "true"}, {"seed", fmt.Sprint(seed)}, {"out", quote(dir)}, {"ledger", quote(dir + ".db")}} {
		over = append(over, run.Override{Path: f[0], Value: f[1], From: "test"})
	}
	s, err := run.LoadSpec(spec, over)
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
	found, err := run.Verify(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !f.Holds {
			t.Errorf("seed %d: %s: %s", seed, f.What, f.Detail)
		}
	}
	if epsilon := job.Cost(job.Plan); !(epsilon <= 1) || epsilon < 0.9999 {
		t.Errorf("seed %d: all of it costs ε = %v", seed, epsilon)
	}
	trained, err := run.LoadModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := run.Read(t.Context(), dir+".db", "", access.Gate{}, access.Lab, job.Schema, table, job.RowOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	text, err := os.ReadFile(filepath.Join(dir, runlog.HoldoutFile))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	held := data.HeldOut(rows, key, info.Holdout.Share)
	part := data.Subset([]*data.Table{rows}, func(record int) bool { return held[record] })
	return info, score.Exact(trained.Model, trained.File.Weights(), part, job.Schema.ClassNames(), nil)
}
