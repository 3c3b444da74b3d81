package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/runlog"
)

// A run whose configuration was edited while it was broken off goes on only with what
// its plan holds: another step size is a later choice of queries, less noise is refused
// before a batch is drawn (PROOFS.md#basic-composition).
func TestB3EditedConfiguration(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]struct {
		value             any
		charged, released int
		err               error
	}{
		"rate":             {0.25, 20, 20, nil},
		"noise_multiplier": {0.01, 1, 0, account.ErrNotPlanned},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			job, whole := begin(t, dir, "whole", "method: {name: sgd, steps: 40, batch: 256, rate: 0.5}")
			if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			l := openLedger(t, dir)
			out := fmt.Sprint(dir, "/broken")
			broken(t, l, whole, out, c.charged, c.released)
			l.Close()
			info, err := runlog.ReadInfo(out)
			if err != nil {
				t.Fatal(err)
			}
			var config map[string]any
			if err := json.Unmarshal(info.Config, &config); err != nil || config[field] == nil {
				t.Fatalf("%s, %v", info.Config, err)
			}
			config[field] = c.value
			if info.Config, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
			if err := runlog.WriteInfo(out, info); err != nil {
				t.Fatal(err)
			}
			_, err = Resume(t.Context(), out, Env{Workers: 1})
			if !errors.Is(err, c.err) {
				t.Errorf("resumed: %v, want %v", err, c.err)
			}
			rec := logOf(t, out)
			if n := rec.Charged(); c.err == nil && n != 40 || c.err != nil && (n != c.charged || rec.Released != c.released) {
				t.Errorf("%d batches are charged, %d released", n, rec.Released)
			}
		})
	}
}
