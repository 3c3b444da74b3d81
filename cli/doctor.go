package cli

import (
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
entries holds. It reads no table and makes no ledger, and removes what it
writes to the directory.

Exit code 0: well or doubtful; 1: broken.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			r := doctor.Examine(c.Context(), dir, where)
			if err := answer(c, asJSON, r, nil); err != nil {
				return err
			}
			return r.Err()
		},
	}
	c.Flags().StringVar(&where, "ledger", "", ledgerUsage)
	c.Flags().StringVar(&dir, "dir", ".", "the directory for runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
