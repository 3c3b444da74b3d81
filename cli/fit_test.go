package cli

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sottodp/sotto/run"
)

// Of a quiet run no progress is computed.
func TestQuietProgress(t *testing.T) {
	if newProgress(nil, true).watch() != nil || newProgress(nil, false).watch() == nil {
		t.Error("a progress that is not shown is watched, or one that is shown is not")
	}
}

// Where there is no terminal, progress is a plain line now and then.
func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, false)
	p.update(run.Progress{Step: 10, MaxSteps: 2000, Epsilon: 0.1, Left: 90 * time.Second})
	if out.Len() > 0 {
		t.Errorf("a line too early: %q", out.String())
	}
	p.last = time.Now().Add(-lineEvery)
	p.update(run.Progress{Step: 1500, MaxSteps: 2000, Epsilon: 0.75, Left: 90 * time.Second})
	p.update(run.Progress{Step: 1501, MaxSteps: 2000, Epsilon: 0.75, Left: 90 * time.Second})
	p.last = time.Now().Add(-lineEvery)
	p.update(run.Progress{Step: 1600, MaxSteps: 2000, Epsilon: math.Inf(1), Left: time.Second})
	p.done()
	want := "step 1,500 of 2,000, ε 0.75, 1m30s left\nstep 1,600 of 2,000, no noise, 1s left\n"
	if out.String() != want {
		t.Errorf("found %q, want %q", out.String(), want)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("escape codes where there is no terminal")
	}
}
