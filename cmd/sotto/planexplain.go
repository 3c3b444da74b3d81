package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/privacy"
)

// explained is what `sotto plan --explain` answers.
type explained struct {
	Method string         `json:"method"`
	About  string         `json:"about"`
	Budget privacy.Budget `json:"budget"`
	*method.Explanation
}

// explainSpec says what the method of a spec chooses and why.
func explainSpec(c *cobra.Command, args []string) (*explained, error) {
	if given := givenFlags(c.Flags(), numberFlags); len(given) > 0 {
		return nil, usageError("--%s: what is explained is a spec's method; allowed with --explain is --set method.…", given[0])
	}
	if len(args) == 0 && !c.Flags().Changed("schema") {
		return nil, usageError("--explain: give a spec, whose method is explained")
	}
	job, err := jobOf(c, args)
	if err != nil {
		return nil, err
	}
	spec := job.Spec
	terms := method.Terms{Budget: spec.Privacy.Budget(), Accountant: job.Accountant, Off: spec.Privacy.Off}
	out, err := method.Explain(spec.Method, job.Facts, job.Objective, terms)
	if err != nil {
		return nil, usageError("--explain: %v", err)
	}
	entry, err := method.Lookup(spec.MethodName)
	if err != nil {
		return nil, err
	}
	return &explained{spec.MethodName, entry.About, terms.Budget, out}, nil
}

func (e *explained) print(w io.Writer) {
	fmt.Fprintf(w, "Method            %s: %s\n", e.Method, e.About)
	if e.Budget.Epsilon > 0 {
		fmt.Fprintf(w, "Budget            ε = %s at δ = %s, %v\n", exact(e.Budget.Epsilon), exact(e.Budget.Delta), e.Budget.Adjacency)
	}
	for i, r := range e.Rests {
		name := ""
		if i == 0 {
			name = "Rests on"
		}
		fmt.Fprintf(w, "%-18s%s\n", name, r)
	}
	fmt.Fprintln(w)
	for _, f := range e.Fields {
		fmt.Fprintf(w, "%-18s%-12s%s\n", f.Field, f.Value, f.Why)
	}
}
