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

var page = paper.Page("P2, reproduced", body)

// A Report is the outcome of the reproduction.
type Report struct {
	Size     Size
	Claims   paper.Claims
	Accounts []Account
	Claimed  []claimed.Claim // P2's formulas beside the sound ones
	Files    []string        // written, by name
}

// Options say where the experiment finds its tables and leaves its results.
type Options struct {
	Data     string              // the folder of the tables: adult/adult.data.gz and so on
	Dir      string              // of the results; one that is there goes on
	Version  string              // of Sotto
	Jobs     int                 // trainings at once; 0: one for each core
	Progress func(runs, all int) // may be nil
}

// Run runs the experiment and writes its figures and page. What an earlier Run in the same
// directory has trained is not trained again.
func Run(ctx context.Context, size Size, o Options) (*Report, error) {
	x := &experiment{size: size, data: o.Data, dir: o.Dir, done: o.Progress, jobs: o.Jobs}
	needed := datasets
	if len(size.Neural.Networks) > 0 {
		needed = append(slices.Clone(datasets), mnist)
	}
	for _, d := range needed {
		for _, f := range d.files {
			name := filepath.Join(o.Data, f)
			if _, err := os.Stat(name); err != nil {
				return nil, &run.InputError{Where: "--data", Err: fmt.Errorf("%s: found no file to read; allowed is the folder that holds %s as published", name, d.name)}
			}
		}
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	for _, d := range datasets {
		if err := x.write(d); err != nil {
			return nil, err
		}
	}
	all, err := x.experiments(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	r := &Report{Size: size, Claims: all.claims()}
	if r.Accounts, err = accounts(Full.Epsilon); err != nil {
		return nil, err
	}
	if r.Claimed, err = claimed.Example("p2"); err != nil {
		return nil, err
	}
	figures := []paper.Figure{all.figure1(), all.figure2(), all.figure34(3, logistic), all.figure34(4, svm)}
	if all.networks != nil {
		figures = append(figures, all.networks.figure())
	}
	r.Files, err = paper.Write(o.Dir, figures, page, map[string]any{
		"R": r, "Fixed": worst(r.Accounts, func(a Account) float64 { return a.Fixed }), "OneSample": worst(r.Accounts, func(a Account) float64 { return a.OneSample }),
		"Adaptive": worst(r.Accounts, func(a Account) float64 { return a.Adaptive }),
	})
	return r, err
}
