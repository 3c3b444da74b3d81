package cli

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/ledger"
)

func verifyCommand() *cobra.Command {
	var where string
	var asJSON, claim, void bool
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check a finished run from its files alone",
		Long: `Verify reads a run directory and no data. It checks that the files are those that
the run left; that what was charged is what was planned and fits the budget, by
the run's accountant, with a second one beside it; that every release was paid
for; that the method, replayed from the releases, gives the model and every line
of steps.jsonl; and that run.json says what all of this gives. With --ledger it
also checks what that ledger knows of the run: its reservation, its settlement, and
the hashes of all files, which the settlement holds since then. Without --ledger the
verdict says so: a person who can write the directory can write files that fit each other.

Of an owner's part of a training among owners (sotto node) it checks that each vector that was published
follows from what was paid and from what peers sent, by the journal. The model is the mean of all owners'
parameters, of which the part holds the owner's own alone: the file must be the one that the part left.

A run of a second-order method that has converged claims a bound on the gradient and
on the curvature of the objective at its model. --claim reads the rows and computes both,
without noise: for lab runs only. If the dataset stands in the ledger (--ledger, or else the
run's), the look is recorded there; where that ends a guarantee it needs --void.

Exit code 0: all holds; 1: something does not.`,
		Example: "  sotto verify runs/20261120-154800-0a1b2c3d",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			// Of a run with another event in every batch the ledger's entry is held in several
			// forms at once: to collect early took the peak from 365 MB to 277 to 297.
			defer debug.SetGCPercent(debug.SetGCPercent(25))
			var l *ledger.Ledger
			if where != "" {
				var err error
				if l, err = run.ViewLedger(c.Context(), where); err != nil {
					return err
				}
				defer l.Close()
			}
			found, err := party.Verify(c.Context(), args[0], l)
			if err != nil {
				return err
			}
			if claim {
				f, err := run.VerifyClaim(c.Context(), args[0], where, void)
				if errors.Is(err, access.ErrWouldEnd) {
					return fmt.Errorf("%w. --void accesses them all the same", err)
				}
				if err != nil {
					return err
				}
				found = append(found, f)
			}
			var broken []string
			against := l != nil
			for _, f := range found {
				if !f.Holds {
					broken = append(broken, f.What)
				}
				against = against && !f.Skipped
			}
			w := c.OutOrStdout()
			if asJSON {
				err = writeJSON(w, map[string]any{"holds": len(broken) == 0, "against_ledger": against, "findings": found})
			} else {
				for _, f := range found {
					verdict := "holds: "
					switch {
					case !f.Holds:
						verdict = "DOES NOT HOLD: "
					case f.Skipped:
						verdict = ""
					}
					fmt.Fprintf(w, "%-11s %s%s\n", f.What, verdict, f.Detail)
				}
				fmt.Fprintln(w, verdictOf(broken, against))
			}
			if err == nil && len(broken) > 0 {
				err = fmt.Errorf("%s: does not hold: %s", args[0], strings.Join(broken, ", "))
			}
			return err
		},
	}
	c.Flags().StringVar(&where, "ledger", "", "also check what this ledger knows of the run")
	c.Flags().BoolVar(&claim, "claim", false, "lab runs: compute from the rows what the run claims of its model")
	c.Flags().BoolVar(&void, "void", false, "with --claim: "+voids)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// verdictOf is the last line of a verification.
func verdictOf(broken []string, against bool) string {
	verdict := "All that was checked holds"
	if len(broken) > 0 {
		verdict = "Does not hold: " + strings.Join(broken, ", ")
	}
	if !against {
		return verdict + "; not checked against a ledger."
	}
	return verdict + "."
}
