package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper/p3"
)

func paperP3Command() *cobra.Command {
	var small, full bool
	var out, tables string
	c := &cobra.Command{
		Use:   "p3",
		Short: "P3: dual averaging among nodes that do not share their rows",
		Long: `P3 is Distributed Empirical Risk Minimization With Differential Privacy. This runs its experiments on
synthetic tables in the shape of epsilon and rcv1, and with --data on rcv1-small, and writes Figures 1 to 4 as
CSV and SVG, the paper's claims as inequalities that hold or fail, the true ε of the published noise beside the claimed one, and
what noise that holds its ε reaches with local samples, with one page of HTML.

--small takes a minute: 400 and 300 rows a node, with the noise of the paper. --full has ten times the rows and
four times the features; some 20 minutes of processor time.`,
		Example: `  sotto paper p3
  sotto paper p3 --full --data /data --out p3-full`,
		Args: args(cobra.NoArgs), PreRunE: oneSize,
		RunE: func(c *cobra.Command, _ []string) error {
			size := p3.Small
			if full {
				size = p3.Full
			}
			if out == "" {
				out = "p3-" + size.Name
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
	c.Flags().BoolVar(&small, "small", false, "fewer rows and features (the default)")
	c.Flags().BoolVar(&full, "full", false, "ten times the rows")
	c.Flags().StringVar(&tables, "data", "", "folder that holds rcv1-small/rcv1-small-train.svm.gz and -test.svm.gz")
	c.Flags().StringVar(&out, "out", "", "directory for the results, new or empty (default p3-small or p3-full)")
	return c
}
