package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/run/runlog"
)

// TestWidthOfLabels: runs of auto beside a numeric label whose bounds are far wider than it is, and as wide on both sides of 0, ask how widely
// it lies, after a mean label of its own and after a first release. They verify, a broken one goes on, and the model scores rows as the run did.
func TestWidthOfLabels(t *testing.T) {
	t.Parallel()
	schema, table, test := crossed(t, 6000)
	rnd := rand.New(rand.NewPCG(94, 1))
	for path, rows := range map[string]int{table: 6000, test: 2000} {
		var b strings.Builder
		b.WriteString("x,z,y,same\n")
		for range rows {
			x, z := 2*rnd.Float64()-1, rnd.Float64()
			fmt.Fprintf(&b, "%.4f,%.4f,%.4f,%.4f\n", x, z, 10*rnd.Float64(), 2*math.Sin(3*x)+z+rnd.NormFloat64())
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(schema, []byte(strings.Replace(string(text), `classes: ["no", "yes"]`, "min: -100, max: 100", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pairs string
		first bool
	}{{"none", false}, {"", true}} {
		dir := t.TempDir()
		set := func(path, value string) Override { return Override{Path: path, Value: value, From: "test"} }
		over := []Override{set("data", table), set("test", test), set("schema", schema), set("model.name", "linear"), set("privacy.epsilon", "2")}
		if c.pairs != "" {
			over = append(over, set("pairs", c.pairs))
		}
		job, whole := begin(t, dir, "whole", "method: {name: auto}", over...)
		m := job.Method.(method.Auto)
		if m.SpreadNoise == 0 || (m.FirstNoise > 0) != c.first || (m.LabelNoise > 0) == c.first || m.Center != method.CenterMean {
			t.Fatalf("pairs %q: %s, %+v", c.pairs, job.Encoding, m)
		}
		info, _, err := Fit(t.Context(), job, Env{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		// Labels have a deviation of 1.8, between bounds that are 200 apart.
		if rmse := *info.Result.Test.RMSE; rmse > 1.25 {
			t.Errorf("pairs %q: root mean squared error %v; the label's noise is 1", c.pairs, rmse)
		}
		trained, err := LoadModel(whole)
		if err != nil {
			t.Fatal(err)
		}
		again, err := trained.Evaluate(t.Context(), test, Evaluation{Ledger: job.Spec.Ledger, Unprotected: true})
		if err != nil || math.Abs(*again.RMSE-*info.Result.Test.RMSE) > 1e-4 {
			t.Errorf("pairs %q: the model's error is %v, the run says %v; %v", c.pairs, again, *info.Result.Test.RMSE, err)
		}
		l := openLedger(t, dir)
		if found, err := Verify(t.Context(), whole, l); err != nil || !allHold(found) {
			t.Errorf("pairs %q: %v, %v", c.pairs, found, err)
		}
		name := filepath.Join(dir, "broken")
		broken(t, l, whole, name, 20, 20)
		l.Close()
		went, err := Resume(t.Context(), name, Env{Workers: 1})
		if err != nil || went.Status != runlog.Finished {
			t.Fatalf("pairs %q: resumed: %+v, %v", c.pairs, went, err)
		}
		if found, err := Verify(t.Context(), name, nil); err != nil || !allHold(found) {
			t.Errorf("pairs %q: resumed: %v, %v", c.pairs, found, err)
		}
	}
}
