package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/run/doctor"
)

func doctorCommand() *cobra.Command {
	var where, dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine can run Sotto: randomness, kernels, disk, ledger",
		Long: `Doctor checks what every run rests on: that the system gives random bits, that the
float kernels of this machine give the bits of plain Go, that the directory of runs
can be written, synced and locked, and that the ledger can be read and its chain of
entries holds. It looks at no table and changes nothing: what it writes to the
directory it takes away again, and it makes no ledger.

Exit code 0: all is well, or doubtful; 1: something is broken.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			found, verdict := doctor.Examine(c.Context(), dir, where)
			w := c.OutOrStdout()
			if asJSON {
				if err := writeJSON(w, map[string]any{"verdict": verdict, "examinations": found}); err != nil {
					return err
				}
			} else {
				for _, e := range found {
					fmt.Fprintf(w, "%-11s %-9s %s\n", e.What, e.Verdict, e.Detail)
				}
				fmt.Fprintf(w, "\n%s\n", map[string]string{doctor.Well: "All is well.", doctor.Doubtful: "Runs work; see what is doubtful.", doctor.Broken: "Do not run Sotto here before what is broken is mended."}[verdict])
			}
			if verdict == doctor.Broken {
				fine := slices.DeleteFunc(slices.Clone(found), func(e doctor.Examination) bool { return e.Verdict == doctor.Broken })
				return fmt.Errorf("doctor: %d of %d are broken", len(found)-len(fine), len(found))
			}
			return nil
		},
	}
	c.Flags().StringVar(&where, "ledger", "", ledgerUsage)
	c.Flags().StringVar(&dir, "dir", ".", "the directory that runs are to be written to")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
