package p2

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/account/claimed"
	"github.com/sottodp/sotto/run"
)

//go:embed page.html
var body string

// Experiment is the reproduction.
var Experiment = paper.Experiment{
	Name:  "p2",
	Short: "P2: private line search with adaptive budgets, and its baselines",
	Long: `P2 is Chen and Lee, Stochastic Adaptive Line Search for Differentially Private
Optimization, 2020. This runs its experiments on linear models, in the full size on networks too, and writes Figures 1 to 5 as
CSV and SVG, the paper's claims as inequalities that hold or fail, and its account beside the
sound one, with one page of HTML.

It needs Adult and Bank Marketing as published, in the folder --data: adult/adult.data.gz,
adult/adult.test.gz, bank/bank-full.csv.gz; --full needs MNIST, too. --small takes about a minute; --full is the
paper's size, 10 folds five times, and takes hours. To continue a stopped run, repeat the command.`,
	Example: `  sotto paper p2 --data datasets
  sotto paper p2 --data datasets --full --out p2-full`,
	Small: "fewer splits and budgets", Full: "the size of the paper",
	Data: "adult and bank", Needed: true, Resumes: true, Parallel: true,
	Page: body,
	Run:  paper.Sized(Small, Full, reproduce),
}

// A Report is the outcome.
type Report struct {
	Size     Size
	Accounts []Account
	Claimed  []claimed.Claim // P2's formulas beside the sound ones

	Fixed, OneSample, Adaptive float64 // at most, over what is claimed
}

// reproduce runs the experiment. What an earlier run in the same directory has trained is not trained again.
func reproduce(ctx context.Context, l *paper.Lab, size Size) (*paper.Results, error) {
	x := &experiment{Lab: l, size: size}
	needed := datasets
	if len(size.Neural.Networks) > 0 {
		needed = append(slices.Clone(datasets), mnist)
	}
	for _, d := range needed {
		for _, f := range d.files {
			name := filepath.Join(l.Data, f)
			if _, err := os.Stat(name); err != nil {
				return nil, &run.InputError{Where: "--data", Err: fmt.Errorf("%s: found no file to read; allowed is the folder that holds %s as published", name, d.name)}
			}
		}
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return nil, err
	}
	for _, d := range needed {
		if err := os.WriteFile(x.schema(d), []byte(d.schema), 0o644); err != nil {
			return nil, err
		}
	}
	all, err := x.experiments(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Size: size}
	if r.Accounts, err = accounts(Full.Epsilon); err != nil {
		return nil, err
	}
	for _, a := range r.Accounts {
		r.Fixed, r.OneSample, r.Adaptive = max(r.Fixed, a.Fixed/a.Claimed), max(r.OneSample, a.OneSample/a.Claimed), max(r.Adaptive, a.Adaptive/a.Claimed)
	}
	if r.Claimed, err = claimed.Example("p2"); err != nil {
		return nil, err
	}
	figures := []paper.Figure{all.figure1(), all.figure2(), all.figure34(3, logistic), all.figure34(4, svm)}
	if all.networks != nil {
		figures = append(figures, all.networks.figure())
	}
	return &paper.Results{R: r, Claims: all.claims(), Figures: figures}, nil
}
