//go:build unix

package cli

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/internal/race"
)

// TestC4VerifyIsStreamed: verify of a run with another event in every step stays below
// 200 MB, without a ledger and with one. With -long the run has 100,000 steps.
func TestC4VerifyIsStreamed(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	const most int64 = 200_000_000
	clinic := filepath.Join("..", "examples", "clinic", "sotto.yaml")
	for name, c := range map[string]struct {
		steps    int // without -long
		settings []string
	}{
		"another event in every step":             {200, []string{"method.name=blsgd"}},
		"another event in every step, on samples": {200, []string{"method.name=blsgd", "method.batch=40"}},
		"another noise in every step, on samples": {40, []string{"method.name=nag-opt", "method.batch=40"}}, // the accountant takes a minute for 200
	} {
		t.Run(name, func(t *testing.T) {
			steps := c.steps
			if *long {
				steps = 100_000
			}
			dir := t.TempDir()
			book, out := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "run")
			fit := []string{"fit", clinic, "--quiet", "--ledger", book, "--out", out, "--set", fmt.Sprintf("method.steps=%d", steps)}
			for _, s := range c.settings {
				fit = append(fit, "--set", s)
			}
			if b, err := sotto(t, fit...).Output(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			for _, more := range [][]string{nil, {"--ledger", book}} {
				c := sotto(t, append([]string{"verify", out}, more...)...)
				c.Env = append(c.Env, "GOGC=25") // on a busy machine the collector comes late
				own := measured(t, c)
				if b, err := c.Output(); err != nil {
					t.Fatalf("%v: %s", err, b)
				}
				peak := own()
				t.Logf("%d steps, verify %v: a peak of %d MB", steps, more, peak/1e6)
				if peak > most {
					t.Errorf("%d steps, verify %v: a peak of %d MB; the bar is %d", steps, more, peak/1e6, most/1e6)
				}
			}
		})
	}
}
