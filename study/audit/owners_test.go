package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run"
)

// ofOwners is a run of the example of owners who add up masked sums.
func ofOwners(t *testing.T, over ...string) *run.Job {
	t.Helper()
	var all []run.Override
	for i := 0; i < len(over); i += 2 {
		all = append(all, run.Override{Path: over[i], Value: over[i+1], From: "test"})
	}
	spec, err := run.LoadSpec("../../examples/network/sum.yaml", all)
	if err != nil {
		t.Fatal(err)
	}
	job, err := netplan.PrepareJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// What the hub and the colluding owners see of owners who add up masked sums, attempts that were given up included, shows nearly the whole
// claim and no more, and the noise is what is charged: with all rows in a step, Hessians beside the gradients, and samples.
func TestOwnersAreAudited(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct {
		over  []string
		least float64
	}{
		"auto":   {nil, 0.85},
		"newton": {[]string{"method.name", "newton"}, 0.5},
		"sgd":    {[]string{"method.name", "sgd", "method.batch", "400", "method.steps", "8"}, 0.6},
		"center": {[]string{"model.name", "softmax", "method.center", "mean"}, 0.85},
	} {
		r := craft(t, ofOwners(t, append(c.over, "privacy.epsilon", "8")...), 1, "", 0)
		t.Logf("%s: at least %.3f, %.3f of any mechanism, %d runs of %d steps, μ %.4f of %.4f, noise %.4f to %.4f", name, r.Bound, r.Plain, r.Runs, r.Steps, r.Mu, r.Charged, r.Scale[0], r.Scale[1])
		if r.Refuted() || r.Bound < c.least*r.Epsilon {
			t.Errorf("%s: at least %.3f; want from %.3f; alarms %v", name, r.Bound, c.least*r.Epsilon, r.Alarms)
		}
		if words := r.Words(); !strings.Contains(words, "against the hub and any one other owner") {
			t.Errorf("%s: %s", name, words)
		}
	}
	job := ofOwners(t, "privacy.epsilon", "8")
	opt := Options{Canaries: 1000, Streams: noise.SeededStreams(1)}
	r, err := One(t.Context(), job, synthetic(t, job.Schema, job.Facts.Rows), opt)
	if err != nil || r.Refuted() || r.Bound < 0.2*r.Epsilon {
		t.Errorf("one run: %v, at least %.3f, alarms %v", err, r.Bound, r.Alarms)
	}
	job = ofOwners(t, "method.name", "gd", "method.steps", "4")
	if r, err = Many(t.Context(), job, synthetic(t, job.Schema, 20), 60, opt); err != nil || r.Refuted() || r.Steps != 4 {
		t.Errorf("many runs: %v, %d steps, alarms %v", err, r.Steps, r.Alarms)
	}
}

// Faults of owners who add up are found.
func TestFaultsOfOwnersAreFound(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	job := ofOwners(t, "privacy.epsilon", "8")
	for fault, alarms := range map[Fault][]string{
		FaultShare: {"canaries", "noise: scale"},
		FaultRerun: {"noise: independent of steps"},
		FaultNoise: {"canaries", "noise: scale"},
		FaultTwice: {"canaries"},
	} {
		r := craft(t, job, 1, fault, 200)
		for _, a := range alarms {
			if !slices.Contains(r.Alarms, a) {
				t.Errorf("%s: alarms %q; want %q", fault, r.Alarms, a)
			}
		}
	}
}
