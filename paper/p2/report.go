package p2

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/privacy/account/claimed"
	"github.com/sottodp/sotto/run"
)

//go:embed page.html
var body string

// Experiment is the reproduction.
var Experiment = paper.Experiment{
	Of: of, Contents: contents, Record: record,
	Name:  "p2",
	Short: "P2: private line search with adaptive budgets, and its baselines",
	Long: `P2 is Chen and Lee, Stochastic Adaptive Line Search for Differentially Private
Optimization, 2020. This runs its experiments on linear models, in the full size on networks too, and writes Figures 1 to 5 as
CSV and SVG, the paper's claims as inequalities that hold or fail, and its account beside the
sound one, with one page of HTML.

It needs P2's tables in the folder --data: a9a/a9a.gz, a9a/a9a.t.gz and bank/BANK.dat.gz; --full also needs MNIST.
--small takes one to two minutes; --full has P2's training rows, nine tenths, with four repetitions where P2 has fifty, and
two networks, and takes half an hour to an hour of processor time. To continue a stopped run, repeat the command.`,
	Example: `  sotto paper p2 --data datasets
  sotto paper p2 --data datasets --full --out p2-full`,
	Small: "fewer splits and budgets", Full: "nine tenths of the rows, four times, and networks",
	Data: "adult and bank", Needed: true, Parallel: true,
	Seeds: "0 and up, one for each part of the rows that is held out",
	Page:  body,
	Run:   paper.Sized(Small, Full, reproduce),
}

// A Report is the outcome.
type Report struct {
	Size     Size
	Parts    []string // folders of the comparisons
	Accounts []Account
	Claimed  []claimed.Claim // P2's formulas beside the sound ones

	Fixed, OneSample, Adaptive float64 // at most, over what is claimed
}

// reproduce runs the experiment. What an earlier run in the same directory has trained is not trained again.
func reproduce(ctx context.Context, l *paper.Lab, size Size) (*paper.Results, error) {
	x := &experiment{Lab: l, size: size}
	var files []string
	needed := datasets
	if len(size.Neural.Networks) > 0 {
		needed = append(slices.Clone(needed), mnist)
	}
	for _, d := range needed {
		for _, f := range d.files {
			name := filepath.Join(l.Data, f)
			if _, err := os.Stat(name); err != nil {
				return nil, &run.InputError{Where: "--data",
					Err: fmt.Errorf("%s: found no file to read; give the folder that holds %s as published", name, d.name)}
			}
			files = append(files, name)
		}
	}
	if err := l.Begin(files...); err != nil {
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
	first, rest := x.parts()
	for _, q := range append(first, rest...) {
		r.Parts = append(r.Parts, q.name)
	}
	if r.Accounts, err = accounts(Full.Epsilon); err != nil {
		return nil, err
	}
	for _, a := range r.Accounts {
		r.Fixed, r.OneSample, r.Adaptive = max(r.Fixed, a.Fixed/a.Claimed), max(r.OneSample, a.OneSample/a.Claimed),
			max(r.Adaptive, a.Adaptive/a.Claimed)
	}
	if r.Claimed, err = claimed.Example("p2"); err != nil {
		return nil, err
	}
	figures := []paper.Figure{all.figure1(), all.figure2(), all.figure34(3, logistic), all.figure34(4, svm)}
	if all.networks != nil {
		figures = append(figures, all.networks.figure())
	}
	printed, err := all.printed()
	if err != nil {
		return nil, err
	}
	settings, err := all.settings()
	if err != nil {
		return nil, err
	}
	return &paper.Results{R: r,
		Tables: []paper.Table{*printed, all.adaptive(), all.leaders(), r.published(), r.formulas(), *settings},
		Claims: all.claims(), Figures: figures}, nil
}

// published is the table of what the published algorithm costs.
func (r *Report) published() paper.Table {
	t := paper.Table{ID: "published",
		Title: "What the published algorithm costs", Seeds: paper.NoSeed,
		Note: "Algorithm 2 as P2 sets it: q = 0.1, ε_BT = ε/100, ρ_grad = (ε/100)²/2, gradient and search of one sample, until P2's account (Lemma 4 for each release, orders 2 to 500, classic conversion) " +
			"reaches ε. It divides by the size of the batch that was drawn, which is a release without a bound; what follows leaves that out. " +
			fmt.Sprintf("At most %.2g and %.2g of what is claimed: at these small budgets the slack of the classic conversion, which at δ = 1e-8 and orders up to 500 takes 0.037 of ε, hides that releases of one sample are charged as if of many. ", r.Fixed, r.OneSample) +
			fmt.Sprintf("It is no proof: the loop has no bound, and which order certifies depends on what was released (up to %.2g times the claim).", r.Adaptive),
		Head: []string{"ε claimed", "iterations", "sound ε, if so many were fixed beforehand",
			"failing searches of one sample", "sound ε of these", "ε claimed, with δ shared by the orders"}}
	for _, a := range r.Accounts {
		t.Add(a.Claimed, a.Iterations, a.Fixed, a.Searches, a.OneSample, a.Adaptive)
	}
	return t
}

// formulas is the table of P2's formulas beside sound ones.
func (r *Report) formulas() paper.Table {
	t := paper.Table{ID: "formulas",
		Title: "At larger budgets the account is false", Seeds: paper.NoSeed,
		Head: []string{"of", "quantity", "P2's formula", "claimed", "sound", "", "why"}}
	for _, c := range r.Claimed {
		var sound []string
		for _, s := range c.Sound {
			sound = append(sound, fmt.Sprintf("%.4g (%s)", s.Value, s.By))
		}
		t.Add(c.About, c.Quantity, c.Formula, c.Claimed, strings.Join(sound, ", "), c.Verdict,
			fmt.Sprintf("%s (%s)", c.Why, c.Source))
	}
	return t
}
