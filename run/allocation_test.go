package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
)

// Of about 4000 rows, 3 epochs of 4 batches and half of a fourth.
const allocation = "method: {name: sgd, steps: 14, batch: 900, rate: 0.5, sampling: allocation}"

// A run charges each epoch with its first batch. Wherever it is killed, what is left of an epoch is never asked: the run that
// goes on begins an epoch of its plan, or ends if there is none left.
func TestAllocationAfterACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, whole := begin(t, dir, "whole", allocation)
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	epoch, ok := job.Plan.(privacy.Repeated)
	if !ok || epoch.Count != 4 {
		t.Fatalf("the plan is %v", job.Plan)
	}
	batches := epoch.Of.(privacy.Allocated).Batches
	if batches != 4 {
		t.Fatalf("the plan is %v", job.Plan)
	}
	check := func(out string) (begun int) {
		t.Helper()
		left := 0
		for e := range logOf(t, out).Batches() {
			switch {
			case privacy.Equal(e, epoch.Of):
				begun++
				left = batches
			case e != (privacy.Continued{}) || left == 0:
				t.Fatalf("%s: charged %v with %d batches left of an epoch", out, e, left)
			}
			left--
		}
		if begun > epoch.Count {
			t.Errorf("%s: %d epochs of a plan of %d", out, begun, epoch.Count)
		}
		wantHolds(t, dir, out)
		return begun
	}
	if n := check(whole); n != 4 || logOf(t, whole).Charged() != 14 {
		t.Errorf("%d epochs and %d batches, want 4 and 14", n, logOf(t, whole).Charged())
	}
	for charged := 1; charged <= 14; charged++ {
		for _, lost := range []int{0, 1, 3} {
			if lost > charged {
				continue
			}
			l := openLedger(t, dir)
			out := filepath.Join(dir, fmt.Sprintf("broken-%d-%d", charged, lost))
			broken(t, l, whole, out, charged, charged-lost)
			l.Close()
			info, err := Resume(t.Context(), out, Env{Workers: 1})
			if err != nil {
				t.Fatalf("%d charged, %d lost: %v", charged, lost, err)
			}
			check(out)
			released := charged - lost
			spent := (charged + batches - 1) / batches // epochs
			want := min(14, released+(4-spent)*batches)
			outcome := method.Done.String()
			if want < 14 {
				outcome = method.OutOfBudget.String()
			}
			if info.Result.Steps != want || info.Result.Outcome != outcome {
				t.Errorf("%d charged, %d lost: %d steps, %s; want %d, %s", charged, lost, info.Result.Steps, info.Result.Outcome, want, outcome)
			}
		}
	}
}

// Verify refuses a run log that continues an epoch beyond its batches, or one that was never charged.
func TestVerifyAllocation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job, out := begin(t, dir, "run", allocation)
	if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, runlog.EventsFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := privacy.MarshalEvent(job.Plan.(privacy.Repeated).Of)
	if err != nil {
		t.Fatal(err)
	}
	line := func(first, count int, event []byte) string {
		b, err := json.Marshal(map[string]any{"first": first, "count": count, "event": json.RawMessage(event)})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	more := []byte(`{"event":"continued"}`)
	for name, text := range map[string]string{
		"one epoch for all":  line(0, 1, first) + line(1, 13, more),
		"none for the first": line(0, 14, more),
		"one batch too many": line(0, 1, first) + line(1, 4, more) + line(5, 1, first) + line(6, 3, more) + line(9, 1, first) + line(10, 3, more) + line(13, 1, first),
		"an epoch too many":  line(0, 5, first) + line(5, 3, more) + line(8, 1, first) + line(9, 3, more) + line(12, 1, first) + line(13, 1, more),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Verify(t.Context(), out, nil)
		if err != nil {
			t.Fatal(err)
		}
		holds := true
		for _, f := range found {
			if f.What == "charges" {
				holds = f.Holds
			}
		}
		if holds {
			t.Errorf("%s: the charges hold", name)
		}
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	wantHolds(t, dir, out)
}

// A seeded run with random allocation is not resumed, and neither shards nor other methods take it.
func TestAllocationRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, out := begin(t, dir, "seeded", "lab: true\nseed: 5\n"+allocation)
	if _, _, err := Fit(t.Context(), j, Env{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	info, err := runlog.ReadInfo(out)
	if err != nil {
		t.Fatal(err)
	}
	info.Status = runlog.Running
	if err := runlog.WriteInfo(out, info); err != nil {
		t.Fatal(err)
	}
	var input *InputError
	if _, err := Resume(t.Context(), out, Env{}); !errors.As(err, &input) || !strings.Contains(err.Error(), "random allocation cannot resume") {
		t.Errorf("resumed: %v", err)
	}
	if err := j.Allows(job.OnWorkers); !errors.As(err, &input) || !strings.Contains(err.Error(), "method.sampling: found allocation") {
		t.Errorf("shards: %v", err)
	}
	file, _ := clinicSpec(t, dir, "adam", strings.Replace(allocation, "sgd", "adam", 1))
	spec, err := LoadSpec(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(spec); err == nil || !strings.Contains(err.Error(), `found "allocation"; choose poisson, fixed`) {
		t.Errorf("adam: %v", err)
	}
}
