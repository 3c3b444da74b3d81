package cli

import (
	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/study/tune"
)

func tuneCommand() *cobra.Command {
	var out string
	var dry, asJSON, quiet bool
	c := &cobra.Command{
		Use:   "tune spec.yaml",
		Short: "Choose the best of several methods, and charge the search",
		Long: `Tune trains a random number of candidates, each drawn from the list in the spec's block tune, and releases only the
best one. The spec's ε and δ cover the whole search (docs/how-to/tune.md), so each candidate trains at a smaller ε; --dry-run
prints it. The number of candidates and the other results stay secret, so there is no progress to watch.

Tune scores candidates on the spec's test rows, which need no protection. Without test rows it charges a noisy mean loss
on the training rows.`,
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
			if dry {
				p.Text(c.OutOrStdout())
				return nil
			}
			if err := newfile.EmptyDir(out); err != nil {
				return err
			}
			r, err := p.RunIn(c.Context(), out, runlog.Version(), page.Write, warner(c))
			if err != nil || quiet && !asJSON {
				return err
			}
			return answer(c, asJSON, r, nil)
		},
	}
	f := c.Flags()
	addSomeSpecFlags(c, "any field of the spec, in all candidates, as in --set model.l2=0.01", "holdout", "method", "out",
		"seed")
	addOverlaps(f)
	f.StringVar(&out, "out", "tuned", "run directory: new or empty")
	f.BoolVar(&dry, "dry-run", false, "print the cost of the search and of each candidate; read and charge nothing")
	addOutput(f, &asJSON, &quiet, "")
	return c
}
