package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// TestPresence: whether events state both moves of a sum follows from a field of run.json (ADR 41). A run without it has
// the events of earlier builds; one whose field was edited neither verifies nor goes on.
func TestPresence(t *testing.T) {
	t.Parallel()
	const sgd = "method: {name: sgd, steps: 40, batch: 256, rate: 0.5}"
	replace := Override{Path: "privacy.adjacency", Value: "replace-one", From: "test"}
	for _, presence := range []bool{true, false} {
		t.Run(fmt.Sprint(presence), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			with := sgd
			if !presence { // as such a run was written
				with = "method: {name: sgd, steps: 40, batch: 256, rate: 0.5, sampling: poisson}"
			}
			job, whole := begin(t, dir, "whole", with, replace)
			if !presence {
				job.Facts.Presence = false
				var err error
				if job.Method, err = job.Spec.Method.Configure(job.Facts, job.Objective, method.Terms{Budget: job.Spec.Privacy.Budget(), Accountant: job.Accountant}); err != nil {
					t.Fatal(err)
				}
				if job.Plan, err = job.Method.Plan(job.Facts); err != nil {
					t.Fatal(err)
				}
			}
			if privacy.Contains[privacy.GaussianSum](job.Plan) != presence || !privacy.Contains[privacy.PoissonSampled](job.Plan) {
				t.Fatalf("planned is %v", job.Plan)
			}
			if _, _, err := Fit(t.Context(), job, Env{Workers: 1}); err != nil {
				t.Fatal(err)
			}
			l := openLedger(t, dir)
			if found, err := Verify(t.Context(), whole, l); err != nil || !allHold(found) {
				t.Fatalf("%v, %v", found, err)
			}
			broken(t, l, whole, fmt.Sprint(dir, "/broken"), 20, 20)
			broken(t, l, whole, fmt.Sprint(dir, "/edited"), 20, 20)
			l.Close()
			// As it is, the broken run goes on.
			info, err := Resume(t.Context(), fmt.Sprint(dir, "/broken"), Env{Workers: 1})
			if err != nil || info.Status != runlog.Finished {
				t.Fatalf("resumed: %v", err)
			}
			flip(t, fmt.Sprint(dir, "/edited"), !presence)
			if _, err := Resume(t.Context(), fmt.Sprint(dir, "/edited"), Env{Workers: 1}); err == nil {
				t.Error("a run goes on with other events than it planned")
			} else if errors.Is(err, account.ErrNotPlanned) {
				t.Logf("refused by the meter: %v", err)
			}
			if rec := logOf(t, fmt.Sprint(dir, "/edited")); rec.Charged() != 20 || rec.Released != 20 {
				t.Errorf("%d batches are charged, %d released", rec.Charged(), rec.Released)
			}
			flip(t, whole, !presence)
			if found, err := Verify(t.Context(), whole, nil); err == nil && allHold(found) {
				t.Errorf("verifies with another field presence: %v", found)
			}
		})
	}
}

func allHold(list []record.Finding) bool {
	return !slices.ContainsFunc(list, func(f record.Finding) bool { return !f.Holds })
}

// flip sets public.presence of a run.
func flip(t *testing.T, dir string, to bool) {
	t.Helper()
	info, err := runlog.ReadInfo(dir)
	if err != nil {
		t.Fatal(err)
	}
	var public map[string]any
	if err := json.Unmarshal(info.Public, &public); err != nil {
		t.Fatal(err)
	}
	delete(public, "presence")
	if to {
		public["presence"] = true
	}
	if info.Public, err = json.Marshal(public); err != nil {
		t.Fatal(err)
	}
	if err := runlog.WriteInfo(dir, info); err != nil {
		t.Fatal(err)
	}
}
