package run_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
)

// TestFitComposesLittle: calibration, meter, progress, report and settlement of a fit share what they compose, and the
// loop composes nothing for a progress that nobody sees. It counts for the whole process, so it runs alone.
func TestFitComposesLittle(t *testing.T) {
	dir := t.TempDir()
	prepared := func(epsilon, name string) *run.Job {
		spec, err := run.LoadSpec("../examples/clinic/sotto.yaml", []run.Override{
			{Path: "privacy.epsilon", Value: epsilon, From: "epsilon"},
			{Path: "method.name", Value: "sgd", From: "method"},
			{Path: "method.batch", Value: "64", From: "batch"},
			{Path: "method.steps", Value: "300", From: "steps"},
			{Path: "out", Value: filepath.Join(dir, name), From: "out"},
			{Path: "ledger", Value: filepath.Join(dir, name+".db"), From: "ledger"},
		})
		if err != nil {
			t.Fatal(err)
		}
		job, err := run.Prepare(spec)
		if err != nil {
			t.Fatal(err)
		}
		return job
	}
	count := func(f func()) int64 {
		before := account.Compositions()
		f()
		return account.Compositions() - before
	}
	fit := func(job *run.Job, env run.Env) string {
		_, out, err := run.Fit(context.Background(), job, env)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	var job *run.Job
	if n := count(func() { job = prepared("0.7", "whole") }); n > 12 {
		t.Errorf("calibration composed %d times; allowed are 12", n)
	}
	last := math.Inf(1)
	env := run.Env{Version: "test", Report: page.Write, Progress: func(p run.Progress) { last = p.Epsilon }}
	var out string
	if n := count(func() { out = fit(job, env) }); n > 30 {
		t.Errorf("a fit with its report composed %d times; allowed are 30", n)
	}
	if cost := job.Cost(job.Plan); last > cost*1.01 || last < cost {
		t.Errorf("the last progress says ε = %v; the plan costs %v", last, cost)
	}
	if n := count(func() {
		if err := page.Write(out, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 10 {
		t.Errorf("the report written again composed %d times; allowed are 10, for its curve", n)
	}

	// Without a report and without progress, run.json asks for the trade-off curve; the settlement asks what is known.
	job = prepared("0.6", "quiet")
	if method.MaxSteps(job.Method) != 300 {
		t.Fatalf("%d steps", method.MaxSteps(job.Method))
	}
	if n := count(func() { fit(job, run.Env{Version: "test"}) }); n > 3 {
		t.Errorf("a fit without report and progress composed %d times after its calibration; allowed are 3, for its trade-off curve", n)
	}
}
