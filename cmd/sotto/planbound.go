package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
)

// bounded is what `sotto plan --bound` answers.
type bounded struct {
	Method string         `json:"method"`
	Budget privacy.Budget `json:"budget"`
	*method.Outlook
}

// boundSpec asks theory about a spec.
func boundSpec(c *cobra.Command, args []string) (*bounded, error) {
	if given := givenFlags(c.Flags(), numberFlags); len(given) > 0 {
		return nil, usageError("--%s: a bound is of a spec's method; allowed with --bound is --set method.…", given[0])
	}
	if len(args) == 0 && !c.Flags().Changed("schema") {
		return nil, usageError("--bound: give a spec, whose method and model the bound is of")
	}
	job, err := jobOf(c, args)
	if err != nil {
		return nil, err
	}
	spec := job.Spec
	terms := method.Terms{Budget: spec.Privacy.Budget(), Accountant: job.Accountant, Off: spec.Privacy.Off}
	out, err := method.Predict(spec.Method, job.Facts, job.Objective, terms)
	if err != nil {
		return nil, usageError("--bound: %v", err)
	}
	return &bounded{spec.MethodName, terms.Budget, out}, nil
}

func (b *bounded) print(w io.Writer) {
	fmt.Fprintf(w, "Bound             on E F(w) − F*, w the last iterate of %s, by P1 as corrected in package method/schedule\n", b.Method)
	fmt.Fprintf(w, "Budget            ε = %s at δ = %s, %v\n", exact(b.Budget.Epsilon), exact(b.Budget.Delta), b.Budget.Adjacency)
	fmt.Fprintf(w, "Counts on         μ = %.4g, L = %.4g, F(0) − F* ≤ %.4g\n", b.Mu, b.L, b.Start)
	for _, t := range b.Trust {
		fmt.Fprintf(w, "On trust          %s\n", t)
	}
	fmt.Fprintf(w, "\n%10s  %14s  %10s  %10s\n", "steps", "start's share", "noise", "error ≤")
	next := 1
	for _, p := range b.Curve {
		if p.Steps < next && p.Steps != b.Best.Steps {
			continue
		}
		next = max(p.Steps+1, p.Steps*3/2)
		mark := ""
		if p.Steps == b.Best.Steps {
			mark = "  least"
		}
		fmt.Fprintf(w, "%10s  %14.4g  %10.4g  %10.4g%s\n", count(p.Steps), p.Start, p.Noise, p.Error, mark)
	}
	p := b.Best
	fmt.Fprintf(w, "\nPicked            T = %s, α = %.6g, β = %.6g: error ≤ %.4g\n", count(p.Steps), p.Rate, p.Momentum, p.Error)
	if p.Error >= b.Start {
		fmt.Fprintln(w, "Warning           the bound is no better than w = 0 has without a look: theory promises nothing at this budget")
	}
	// μ stands for momentum in a spec: β = (1−√(αμ))/(1+√(αμ)).
	root := (1 - p.Momentum) / (1 + p.Momentum)
	fmt.Fprintf(w, "To use it         --set method.steps=%d --set method.rate=%.6g --set method.mu=%.6g --set method.clip=%.6g\n",
		p.Steps, p.Rate, root*root/p.Rate*(1-1e-6), b.Clip)
	fmt.Fprintln(w, "                  (the defaults of fit count on tables flatter than the worst; docs/methods.md)")
}
