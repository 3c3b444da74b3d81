package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/compare"
)

func compareCommand() *cobra.Command {
	var o compare.Options
	var methods, epsilons []string
	var flags run.Comparison
	var out string
	var jobs int
	var void, quiet bool
	c := &cobra.Command{
		Use:   "compare [spec.yaml]",
		Short: "Train with many methods and budgets, and put their scores side by side (lab)",
		Long: `Compare trains each method at each ε, once for each seed (and fold), and writes one
table: accuracy, objective and time, mean ± standard deviation (median). Results go to
a directory as CSV, Markdown and SVG. Stopped or killed, the same command goes on.

What is compared stands in the spec's block compare, in flags, or in both; flags beat
the file. The rest of the spec is what all cells share. The rows scored are those of
--test, or a part of the data that no cell trains on: --split, --folds.

A comparison is a look at the rows without protection. A dataset that the ledger knows
and that still has a guarantee is compared only with --void, which ends it.`,
		Example: `  sotto compare examples/clinic/sotto.yaml --methods sgd,nag-opt --epsilon 0.1,1 --seeds 5
  sotto compare sotto.yaml --data a.csv --data b.csv --rows 48842 --split 0.8 --seeds 10`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f := c.Flags()
			if len(args) > 0 {
				o.File = args[0]
			} else if f.NFlag() == 0 {
				return usageError("give a spec file, or --data, --schema, --model, --delta and --adjacency; `sotto compare --help` shows both")
			}
			var err error
			if o.Varied, err = run.LoadComparison(o.File); err != nil {
				return err
			}
			if o.Flags, err = overridesOf(f); err != nil {
				return err
			}
			o.Flags = slices.DeleteFunc(o.Flags, func(v run.Override) bool { return v.Path == "out" })
			if f.Changed("methods") {
				o.Varied.Methods = nil
				for _, m := range methods {
					o.Varied.Methods = append(o.Varied.Methods, run.Settings{{Path: "name", Value: fmt.Sprintf("%q", m), From: "--methods"}})
				}
			}
			if f.Changed("epsilon") {
				o.Varied.Epsilon = epsilons
			}
			for name, set := range map[string]func(){
				"seeds": func() { o.Varied.Seeds = flags.Seeds }, "rows": func() { o.Varied.Rows = flags.Rows },
				"split": func() { o.Varied.Split, o.Varied.Folds = flags.Split, 0 },
				"folds": func() { o.Varied.Folds = flags.Folds; o.Varied.Split = 0 },
			} {
				if f.Changed(name) {
					set()
				}
			}
			for name, zero := range map[string]bool{"seeds": flags.Seeds == 0, "rows": flags.Rows == 0, "folds": flags.Folds == 0} {
				if f.Changed(name) && zero {
					return usageError("--%s: found 0; allowed is a whole number above 0", name)
				}
			}
			if f.Changed("split") && flags.Split == 0 {
				return usageError("--split: found 0; allowed is a share of the rows, above 0 and below 1, as in 0.8")
			}
			if f.Changed("split") && f.Changed("folds") {
				return usageError("--split and --folds: found both; allowed is one")
			}
			if jobs < 0 {
				return usageError("--jobs: found %d; allowed is 1 or more", jobs)
			}
			return runCompare(c, o, out, jobs, void, quiet)
		},
	}
	f := c.Flags()
	addSomeSpecFlags(f, "any field of the spec, in all cells, as in --set method.steps=200", "method", "epsilon", "data", "seed", "out", "label")
	f.StringArrayVar(&o.Data, "data", nil, "table to train on, as in fit; several are read as one")
	f.StringVar(&o.Label, "label", "", "the schema's column to predict, when it is not the schema's label")
	f.StringSliceVar(&methods, "methods", nil, "methods, with a comma between (default the spec's)")
	f.StringSliceVar(&epsilons, "epsilon", nil, "budgets ε, with a comma between; none trains without noise (default the spec's)")
	f.IntVar(&flags.Seeds, "seeds", 0, "repetitions, each with noise and split of its own (default 1)")
	f.Float64Var(&flags.Split, "split", 0, "train on this share of the rows, by a keyed hash of each, and score on the others")
	f.IntVar(&flags.Folds, "folds", 0, "cross-validation: as many parts, each scored once by what the others trained")
	f.IntVar(&flags.Rows, "rows", 0, "declared rows of all files of --data together (default the schema's, for one file)")
	f.StringVar(&out, "out", "compare", "directory of the results: new, empty, or that of this comparison, which then goes on")
	f.IntVar(&jobs, "jobs", 0, "trainings at once (default one for each core)")
	f.BoolVar(&void, "void", false, voids)
	f.BoolVar(&quiet, "quiet", false, "print nothing but errors and warnings")
	return c
}

func runCompare(c *cobra.Command, o compare.Options, out string, jobs int, void, quiet bool) error {
	ctx, w := c.Context(), c.ErrOrStderr()
	warn := func(format string, args ...any) { warner(c)(fmt.Sprintf(format, args...)) }
	p, err := compare.New(o)
	if err != nil {
		return err
	}
	store, err := p.Open(out, run.Version())
	if err != nil {
		return err
	}
	defer store.Close()
	if err := p.Prepare(jobs); err != nil {
		store.Undo()
		return err
	}
	p.Notice = warner(c)
	for _, text := range p.Warnings() {
		warn("%s", text)
	}
	if left := p.Left(); left > 0 {
		if err := p.OpenTables(ctx, store.ID, void); err != nil {
			store.Undo()
			if errors.Is(err, access.ErrWouldEnd) {
				return fmt.Errorf("%w. Compare on rows that need no protection or on a synthetic table (`sotto synth`), or give --void", err)
			}
			return err
		}
		bar := newProgress(w, quiet)
		bar.name = "comparing "
		done := p.Runs - left
		bar.show(done, p.Runs, "", "")
		err = p.Train(ctx, jobs, func(cell *compare.Cell, r compare.Result) error {
			done++
			bar.show(done, p.Runs, "", fmt.Sprintf("%d of %d trainings, last %s, ε = %s", done, p.Runs, cell.Method, cell.Epsilon))
			return store.Add(cell, r)
		})
		bar.done()
		if ctx.Err() != nil {
			return stoppedError(fmt.Sprintf("the comparison was stopped with %d of %d trainings done; the same command goes on", p.Runs-p.Left(), p.Runs))
		}
		if err != nil {
			if p.Left() == left {
				store.Undo() // nothing was trained, as where a file of rows is missing
			}
			return err
		}
	}
	if err := p.Write(out); err != nil {
		return err
	}
	if quiet {
		return nil
	}
	fmt.Fprintf(c.OutOrStdout(), "%s\n%s\nPage       %s\nCells      %s\nTrainings  %s\nFigure     %s\n", p.Tables(), text.Wrap(compare.Unpaid, 100),
		filepath.Join(out, compare.Page), filepath.Join(out, compare.CellsCSV), filepath.Join(out, compare.RunsCSV), filepath.Join(out, compare.Chart))
	return nil
}

// stoppedError is a stop by the user, in words.
type stoppedError string

func (e stoppedError) Error() string { return string(e) }

func (e stoppedError) Unwrap() error { return context.Canceled }
