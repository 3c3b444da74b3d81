package run_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run"
)

// The way of `sotto fit` as a library: read a spec, settle it from public facts,
// train with a report, load the model.
func Example() {
	dir, err := os.MkdirTemp("", "sotto")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	spec, err := run.LoadSpec("../examples/clinic/sotto.yaml", []run.Override{
		{Path: "privacy.epsilon", Value: "0.5", From: "epsilon"},
		{Path: "out", Value: filepath.Join(dir, "run"), From: "out"},
		{Path: "ledger", Value: filepath.Join(dir, "ledger.db"), From: "ledger"},
	})
	if err != nil {
		log.Fatal(err)
	}
	job, err := run.Prepare(spec) // opens the schema, and no data
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v, noise multiplier %.2f\n", job.Plan, method.NoiseMultiplier(job.Method))

	info, out, err := run.Fit(context.Background(), job, run.Env{Version: "example", Report: page.Write})
	if err != nil {
		log.Fatal(err)
	}
	trained, err := run.LoadModel(out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Status, info.Result.Steps, "steps;", trained.Guarantee.Budget)
	fmt.Println("better than guessing:", *info.Result.Test.Accuracy > 0.8)
	// Output:
	// Gaussian(σ=22.2366) + 62 × Gaussian(σ=59.3614) + Gaussian(σ=40.5983), noise multiplier 59.36
	// finished 62 steps; (0.5, 1e-05) under add-or-remove
	// better than guessing: true
}
