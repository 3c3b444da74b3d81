package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/p1"
	"github.com/sottodp/sotto/paper/p2"
)

func paperCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "paper",
		Short: "Reproduce the experiments of a paper that Sotto builds on",
	}
	c.AddCommand(paperP1Command(), paperP2Command(), paperP3Command(), paperP4Command())
	group(c)
	return c
}

// oneSize refuses --small beside --full.
func oneSize(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("small") && c.Flags().Changed("full") {
		return usageError("--small and --full: found both; allowed is one")
	}
	return nil
}

// tenths calls tell at each tenth of the way.
func tenths(tell func(done, all int)) func(done, all int) {
	shown := -1
	return func(done, all int) {
		if tenth := done * 10 / max(1, all); tenth > shown {
			shown = tenth
			tell(done, all)
		}
	}
}

// printClaims prints what holds and what fails, and where the page is.
func printClaims(w io.Writer, claims paper.Claims, dir string) {
	for _, claim := range claims {
		verdict := "holds"
		if !claim.Holds {
			verdict = "FAILS"
		}
		fmt.Fprintf(w, "%-36s  %s  %s\n", claim.Name, verdict, claim.Found)
	}
	fmt.Fprintf(w, "%d of %d claims hold. Page: %s\n", claims.Passed(), len(claims), filepath.Join(dir, "index.html"))
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
		Args: args(cobra.NoArgs), PreRunE: oneSize,
		RunE: func(c *cobra.Command, _ []string) error {
			size := p1.Small
			if full {
				size = p1.Full
			}
			if out == "" {
				out = "p1-" + size.Name
			}
			if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
				return usageError("--out: %s exists and is not empty; allowed is a new or an empty directory", out)
			}
			r, err := p1.Run(c.Context(), size, out, tenths(func(runs, all int) { fmt.Fprintf(c.ErrOrStderr(), "%d of %d runs\n", runs, all) }))
			if err != nil {
				return err
			}
			printClaims(c.OutOrStdout(), r.Claims, out)
			return nil
		},
	}
	c.Flags().BoolVar(&small, "small", false, "fewer rows and runs (the default)")
	c.Flags().BoolVar(&full, "full", false, "the size of the paper")
	c.Flags().StringVar(&out, "out", "", "directory for the results, new or empty (default p1-small or p1-full)")
	return c
}

func paperP2Command() *cobra.Command {
	var small, full bool
	var out, data string
	var jobs int
	c := &cobra.Command{
		Use:   "p2",
		Short: "P2: private line search with adaptive budgets, and its baselines",
		Long: `P2 is Chen and Lee, Stochastic Adaptive Line Search for Differentially Private
Optimization, 2020. This runs its experiments on linear models and writes Figures 1 to 4 as
CSV and SVG, the paper's claims as inequalities that hold or fail, and its account beside the
sound one, with one page of HTML.

It needs Adult and Bank Marketing as published, in the folder --data: adult/adult.data.gz,
adult/adult.test.gz, bank/bank-full.csv.gz. --small takes about a minute; --full is the
paper's size, 10 folds five times, and takes hours. Stopped, the same command goes on.`,
		Example: `  sotto paper p2 --data datasets
  sotto paper p2 --data datasets --full --out p2-full`,
		Args: args(cobra.NoArgs), PreRunE: oneSize,
		RunE: func(c *cobra.Command, _ []string) error {
			size := p2.Small
			if full {
				size = p2.Full
			}
			if out == "" {
				out = "p2-" + size.Name
			}
			if data == "" {
				data = os.Getenv("SOTTO_DATA")
			}
			if data == "" {
				return usageError("--data: found nothing; allowed is the folder that holds adult and bank, which SOTTO_DATA may name too")
			}
			r, err := p2.Run(c.Context(), size, p2.Options{Data: data, Dir: out, Version: version(), Jobs: jobs, Progress: tenths(func(runs, all int) {
				fmt.Fprintf(c.ErrOrStderr(), "%d of %d trainings\n", runs, all)
			})})
			if c.Context().Err() != nil {
				return stoppedError("the experiment was stopped; the same command goes on")
			}
			if err != nil {
				return err
			}
			printClaims(c.OutOrStdout(), r.Claims, out)
			return nil
		},
	}
	c.Flags().BoolVar(&small, "small", false, "fewer splits and budgets (the default)")
	c.Flags().BoolVar(&full, "full", false, "the size of the paper")
	c.Flags().StringVar(&out, "out", "", "directory for the results; one that was begun goes on (default p2-small or p2-full)")
	c.Flags().StringVar(&data, "data", "", "folder of the tables (default $SOTTO_DATA)")
	c.Flags().IntVar(&jobs, "jobs", 0, "trainings at once (default one for each core)")
	return c
}
