package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/compare"
)

func compareCommand() *cobra.Command {
	var o compare.Options
	var methods, epsilons []string
	var flags job.Comparison
	var out string
	var jobs int
	var void, quiet bool
	c := &cobra.Command{
		Use:   "compare [spec.yaml]",
		Short: "Train with many methods and budgets and compare their scores (lab)",
		Long: `Compare trains each method at each ε, once for each seed (and fold), and writes tables of accuracy, objective
and time as CSV, Markdown and SVG. The same command continues a comparison that was stopped.

The spec's block compare says what varies; flags override it. All cells share the rest of the spec. They are scored on
--test, or on rows of the data that no cell trains on (--split, --folds). docs/how-to/compare.md has more.

A comparison is an access to the rows without protection. For a dataset with a guarantee it needs --void, which ends it.`,
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
			if o.Varied, err = job.LoadComparison(o.File); err != nil {
				return err
			}
			if o.Flags, err = overridesOf(f, "out"); err != nil {
				return err
			}
			if f.Changed("methods") {
				o.Varied.Methods = nil
				for _, m := range methods {
					o.Varied.Methods = append(o.Varied.Methods,
						job.Settings{{Path: "name", Value: fmt.Sprintf("%q", m), From: "--methods"}})
				}
			}
			if f.Changed("epsilon") {
				o.Varied.Epsilon = epsilons
			}
			for _, v := range []struct {
				flag, allowed string
				zero          bool
				set           func()
			}{
				{"seeds", "a whole number above 0", flags.Seeds == 0, func() { o.Varied.Seeds = flags.Seeds }},
				{"rows", "a whole number above 0", flags.Rows == 0, func() { o.Varied.Rows = flags.Rows }},
				{"split", "a share of the rows, above 0 and below 1, as in 0.8", flags.Split == 0, func() {
					o.Varied.Split, o.Varied.Folds = flags.Split, 0
				}},
				{"folds", "a whole number above 0", flags.Folds == 0, func() { o.Varied.Folds, o.Varied.Split = flags.Folds, 0 }},
			} {
				if f.Changed(v.flag) && v.zero {
					return usageError("--%s: found 0; write %s", v.flag, v.allowed)
				}
				if f.Changed(v.flag) {
					v.set()
				}
			}
			if f.Changed("split") && f.Changed("folds") {
				return usageError("--split and --folds: found both; give one")
			}
			if jobs < 0 {
				return usageError("--jobs: found %d; write a whole number of 1 or more", jobs)
			}
			return runCompare(c, o, out, jobs, void, quiet)
		},
	}
	f := c.Flags()
	addSomeSpecFlags(c, "any field of the spec, in all cells, as in --set method.steps=200", "method", "epsilon", "data",
		"holdout", "seed", "out", "label")
	f.StringArrayVar(&o.Data, "data", nil, "table to train on, as in fit; several are read as one")
	f.StringVar(&o.Label, "label", "", labelUsage)
	f.StringSliceVar(&methods, "methods", nil, "methods, separated by commas (default the spec's)")
	f.StringSliceVar(&epsilons, "epsilon", nil,
		"budgets ε, separated by commas; none trains without noise (default the spec's)")
	f.IntVar(&flags.Seeds, "seeds", 0, "repetitions, each with different noise and split (default 1)")
	numberVar(f, &flags.Split, "split", 0,
		"train on this share of the rows, chosen by a keyed hash, and score on the others")
	f.IntVar(&flags.Folds, "folds", 0, "cross-validation with this many folds")
	f.IntVar(&flags.Rows, "rows", 0, "declared rows of all files of --data together (default the schema's, for one file)")
	f.StringVar(&out, "out", "compare",
		"directory for the results: new, empty, or that of this comparison, to continue it")
	f.IntVar(&jobs, "jobs", 0, "trainings at the same time (default one for each core)")
	f.BoolVar(&void, "void", false, voids)
	f.BoolVar(&quiet, "quiet", false, "print only errors and warnings")
	return c
}

func runCompare(c *cobra.Command, o compare.Options, out string, jobs int, void, quiet bool) error {
	ctx, w := c.Context(), c.ErrOrStderr()
	p, err := compare.New(o)
	if err != nil {
		return err
	}
	store, err := p.Open(out, runlog.Version())
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
		p.Notice(text)
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
			bar.show(done, p.Runs, "",
				fmt.Sprintf("%d of %d trainings, last %s, ε = %s", done, p.Runs, cell.Method, cell.Epsilon))
			return store.Add(cell, r)
		})
		bar.done()
		if ctx.Err() != nil {
			return stoppedError(fmt.Sprintf("the comparison was stopped with %d of %d trainings done; repeat the command to continue it", p.Runs-p.Left(), p.Runs))
		}
		if err != nil {
			if p.Left() == left {
				store.Undo() // no training ended, for instance because a file is missing
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
	fmt.Fprintf(c.OutOrStdout(), "%s\n%s\nPage       %s\nCells      %s\nTrainings  %s\nFigure     %s\n", p.Tables(),
		text.Wrap(compare.Notice, 100),
		filepath.Join(out, compare.Page), filepath.Join(out, compare.CellsCSV), filepath.Join(out, compare.RunsCSV),
		filepath.Join(out, compare.Chart))
	return nil
}

// stoppedError says what the user stopped.
type stoppedError string

func (e stoppedError) Error() string { return string(e) }

func (e stoppedError) Unwrap() error { return context.Canceled }
