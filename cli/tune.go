package cli

import (
	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/report"
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
			if dry {
				p.Text(c.OutOrStdout())
				return nil
			}
			if err := newfile.EmptyDir(out); err != nil {
				return err
			}
			r, err := p.RunIn(c.Context(), out, run.Version(), report.Write, warner(c))
			if err != nil || quiet && !asJSON {
				return err
			}
			return answer(c, asJSON, r, nil)
		},
	}
	f := c.Flags()
	addSomeSpecFlags(c, "any field of the spec, in all candidates, as in --set model.l2=0.01", "method", "out", "seed")
	addOverlaps(f)
	f.StringVar(&out, "out", "tuned", "run directory: new or empty")
	f.BoolVar(&dry, "dry-run", false, "say what a search would cost and what it leaves each candidate; nothing is read or spent")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.BoolVar(&quiet, "quiet", false, "print nothing but errors and warnings")
	return c
}
