package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
)

func synthCommand() *cobra.Command {
	var schemaPath, outPath string
	var packed bool
	var rows, units int
	var seed uint64
	c := &cobra.Command{
		Use:   "synth --schema FILE --rows N | --units N",
		Short: "Make a synthetic table that fits a schema, with a known truth",
		Long: `Synth draws rows within the schema's public bounds and levels and labels them by a
random true model. The same seed gives the same table. No real record is involved.

If a unit has several rows in the schema, --units gives the number of units. --packed
writes the table as sotto data pack would, in memory for 1,024 rows.`,
		Example: "  sotto synth --schema examples/clinic/schema.yaml --rows 4000 --seed 1 > patients.csv",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if schemaPath == "" || rows < 1 && units < 1 {
				return usageError("--schema FILE and --rows N (1 or more) are needed, or --units N")
			}
			s, err := data.LoadSchema(schemaPath)
			if err != nil {
				return err
			}
			records, other := rows, units
			if s.UnitRows > 0 {
				records, other = units, rows
			}
			if records < 1 || other != 0 {
				return usageError("found --rows %d and --units %d; give --units alone for a schema with a unit of several rows, --rows alone for others", rows, units)
			}
			if packed {
				if outPath == "" {
					return usageError("--packed: a packed table needs a file; --out FILE names it")
				}
				if err := newfile.Check(outPath, true, schemaPath); err != nil {
					return err
				}
				_, err := data.SynthPacked(s, records, seed, outPath)
				return err
			}
			return newfile.Write(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := data.Synth(s, records, seed, w)
				return err
			})
		},
	}
	c.Flags().StringVar(&schemaPath, "schema", "", "schema of the table (required)")
	c.Flags().IntVar(&rows, "rows", 0, "number of rows (this or --units is required)")
	c.Flags().IntVar(&units, "units", 0, "number of units, for a schema with a unit of several rows")
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of the table")
	c.Flags().BoolVar(&packed, "packed", false, "write a packed table (to --out)")
	c.Flags().StringVar(&outPath, "out", "", "file to write (default: standard output)")
	return c
}
