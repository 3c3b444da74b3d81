package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/privacy/noise"
	"github.com/sottodp/sotto/run/report"
	"github.com/sottodp/sotto/run/trace"
	"github.com/sottodp/sotto/run/tune"
)

func tuneCommand() *cobra.Command {
	var out string
	var dry, asJSON, quiet bool
	c := &cobra.Command{
		Use:   "tune spec.yaml",
		Short: "Search for the best of several methods, and pay for the search",
		Long: `Tune trains a random number of candidates, each drawn from the list in the spec's block tune, and releases the best of them
alone. The spec's ε and δ pay for all of it, by the theorem for such searches (docs/tune.md): each candidate trains at a smaller ε, which
--dry-run shows. How many were trained, and how the others did, stays secret, and there is no progress to watch.

Candidates are scored on the spec's test rows, which need no protection; without them by a noisy mean loss on the rows
trained on, which is paid for like all else.`,
		Example: `  sotto tune sotto.yaml --dry-run
  sotto tune sotto.yaml --out tuned`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			flags, err := overridesOf(c.Flags())
			if err != nil {
				return err
			}
			label, _ := c.Flags().GetString("label")
			p, err := tune.New(args[0], flags, label)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if dry {
				printSearch(w, p)
				return nil
			}
			if err := newfile.EmptyDir(out); err != nil {
				return err
			}
			// The directory is there before anything is spent.
			_, missing := os.Stat(out)
			if err := writable(out); err != nil {
				return usageError("--out: %s: found a place that takes no directory with files; allowed is a new or an empty directory", out)
			}
			for _, text := range p.Warnings() {
				warner(c)(text)
			}
			r, err := p.Run(c.Context(), noise.SecureStreams(), warner(c))
			if err != nil {
				if missing != nil {
					os.Remove(out)
				}
				return err
			}
			if err := r.Write(out, version()); err != nil {
				return err
			}
			if err := errors.Join(report.Write(out), r.Backdate(out)); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(w, r)
			}
			if !quiet {
				fmt.Fprintf(w, "Winner     %s, of the %d in the list; %s\n", r.Winner, len(r.Among), scored(r.By, r.Score))
				fmt.Fprintf(w, "Guarantee  ε = %.4g at δ = %v, %v, for any %s and the search as a whole; each candidate was trained at ε = %.4g\n", p.Budget.Epsilon, p.Budget.Delta, p.Budget.Adjacency, p.Whom(), p.Each)
				fmt.Fprintf(w, "Model      %s\nReport     %s\n", filepath.Join(out, trace.ModelFile), filepath.Join(out, trace.ReportFile))
			}
			return nil
		},
	}
	f := c.Flags()
	addSomeSpecFlags(f, "any field of the spec, in all candidates, as in --set model.l2=0.01", "method", "out", "seed")
	addOverlaps(f)
	f.StringVar(&out, "out", "tuned", "run directory: new or empty")
	f.BoolVar(&dry, "dry-run", false, "say what a search would cost and what it leaves each candidate; nothing is read or spent")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.BoolVar(&quiet, "quiet", false, "print nothing but errors and warnings")
	return c
}

// writable makes a directory, if it is not there, and tries it.
func writable(dir string) error {
	if err := trace.MakeDir(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".try")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// scored says what a score is.
func scored(by string, score float64) string {
	switch {
	case by == tune.ByLoss:
		return fmt.Sprintf("mean loss about %.4g, by a noisy look that is paid for", -score)
	case score < 0:
		return fmt.Sprintf("root mean squared error %.4g on the test rows", -score)
	}
	return fmt.Sprintf("accuracy %.4g on the test rows", score)
}

func printSearch(w io.Writer, p *tune.Plan) {
	b := p.Budget
	fmt.Fprintf(w, "Search     ε = %.4g at δ = %v, %v, for any %s; about %.4g trainings, of which the best is released alone\n", b.Epsilon, b.Delta, b.Adjacency, p.Whom(), p.Mean)
	fmt.Fprintf(w, "Each       ε = %.4g, scored by %s\n", p.Each, map[string]string{tune.ByTest: "the test rows", tune.ByLoss: "a noisy mean loss"}[p.Score])
	for _, c := range p.Candidates {
		fmt.Fprintf(w, "           %-24s noise %.4g\n", c.Name, c.Job.Method.NoiseMultiplier())
	}
	if u := p.Unpaid(); !math.IsInf(u, 1) {
		fmt.Fprintf(w, "Unpaid     %.0f trainings at ε = %.4g each, the best kept and the choice not paid for, are proven only ε = %.4g together\n", p.Mean, b.Epsilon, u)
	}
}
