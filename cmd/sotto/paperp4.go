package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper/p4"
)

func paperP4Command() *cobra.Command {
	var small, full bool
	var out, tables string
	c := &cobra.Command{
		Use:   "p4",
		Short: "P4: second-order methods for smooth non-convex objectives",
		Long: `P4 is Differentially Private Optimization for Smooth Non-Convex ERM. This runs its
experiments on a synthetic table in the shape of Covertype, and with --data on real tables,
and writes the paper's tables of losses, iterations, Hessians and times, its comparisons
with DP-TR as inequalities that hold or fail, and what sound sensitivities and a public number
of steps gain or cost, as CSV, Markdown and SVG, with one page of HTML.

--small takes seconds: 20,000 rows, with ε·n as in the paper. --full is the paper's size:
495,141 rows, five runs of each cell; half an hour of processor time.`,
		Example: `  sotto paper p4
  sotto paper p4 --full --data /data --out p4-full`,
		Args: args(cobra.NoArgs), PreRunE: oneSize,
		RunE: func(c *cobra.Command, _ []string) error {
			size := p4.Small
			if full {
				size = p4.Full
			}
			if out == "" {
				out = "p4-" + size.Name
			}
			if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
				return usageError("--out: %s exists and is not empty; allowed is a new or an empty directory", out)
			}
			r, err := size.Run(c.Context(), tables, out, tenths(func(runs, all int) { fmt.Fprintf(c.ErrOrStderr(), "%d of %d runs\n", runs, all) }))
			if err != nil {
				return err
			}
			printClaims(c.OutOrStdout(), r.Claims, out)
			return nil
		},
	}
	c.Flags().BoolVar(&small, "small", false, "fewer rows and runs (the default)")
	c.Flags().BoolVar(&full, "full", false, "the size of the paper")
	c.Flags().StringVar(&tables, "data", "", "folder that holds covtype-sample/covtype-sample-15000.csv.gz and ijcnn1/ijcnn1.gz")
	c.Flags().StringVar(&out, "out", "", "directory for the results, new or empty (default p4-small or p4-full)")
	return c
}
