package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper/p1"
)

func paperCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "paper",
		Short: "Reproduce the experiments of a paper that Sotto builds on",
	}
	c.AddCommand(paperP1Command(), paperP4Command())
	group(c)
	return c
}

func paperP1Command() *cobra.Command {
	var small, full bool
	var out string
	c := &cobra.Command{
		Use:   "p1",
		Short: "P1: accelerated methods with optimal noise schedules",
		Long: `P1 is Kuru, Birbil, Gürbüzbalaban and Yıldırım, Differentially Private Accelerated
Optimization Algorithms, 2022. This runs its experiments on a synthetic table and writes
Figures 1 to 4 as CSV and SVG, the paper's claims as inequalities that hold or fail, and what
the corrected schedules gain, with one page of HTML.

--small takes less than a minute: fewer rows, with ε·n and m as in the paper. --full is the paper's
size: 100,000 rows, 20 runs of each curve; minutes.`,
		Example: `  sotto paper p1
  sotto paper p1 --full --out p1-full`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			size := p1.Small
			switch {
			case small && full:
				return usageError("--small and --full: found both; allowed is one")
			case full:
				size = p1.Full
			}
			if out == "" {
				out = "p1-" + size.Name
			}
			if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
				return usageError("--out: %s exists and is not empty; allowed is a new or an empty directory", out)
			}
			shown := -1
			r, err := p1.Run(c.Context(), size, out, func(runs, all int) {
				if percent := 10 * (runs * 10 / all); percent > shown {
					shown = percent
					fmt.Fprintf(c.ErrOrStderr(), "%d of %d runs\n", runs, all)
				}
			})
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			for _, claim := range r.Claims {
				verdict := "holds"
				if !claim.Holds {
					verdict = "FAILS"
				}
				fmt.Fprintf(w, "%-36s  %s  %s\n", claim.Name, verdict, claim.Found)
			}
			fmt.Fprintf(w, "%d of %d claims hold. Page: %s\n", r.Passed(), len(r.Claims), filepath.Join(out, "index.html"))
			return nil
		},
	}
	c.Flags().BoolVar(&small, "small", false, "fewer rows and runs (the default)")
	c.Flags().BoolVar(&full, "full", false, "the size of the paper")
	c.Flags().StringVar(&out, "out", "", "directory for the results, new or empty (default p1-small or p1-full)")
	return c
}
