package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/schema"
)

func schemaCommand() *cobra.Command {
	c := &cobra.Command{Use: "schema", Short: "Public descriptions of tables"}
	var delimiter, outPath string
	init := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a schema skeleton from a table's header",
		Long: `Init reads only the header of a table and writes a schema in which a person fills
in every type, bound and level. They must come from knowledge of the world, not
from the table: a bound that is read off the data reveals something about it.`,
		Example: "  sotto schema init patients.csv > schema.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if st, err := os.Stat(outPath); outPath != "" && err == nil && st.Mode().IsRegular() && st.Size() > 0 {
				return usageError("--out: %s exists; allowed is a new file: a schema that somebody filled in is not overwritten", outPath)
			}
			b, err := access.Skeleton(args[0], delimiter)
			if err != nil {
				return err
			}
			return newfile.Write(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := w.Write(b)
				return err
			})
		},
	}
	init.Flags().StringVar(&delimiter, "delimiter", "", "delimiter of the file (default: the most frequent of , ; tab | in the header)")
	init.Flags().StringVar(&outPath, "out", "", "file to write (default: standard output)")
	var asJSON bool
	check := &cobra.Command{
		Use:     "check SCHEMA",
		Short:   "Check a schema and list the assumptions of a guarantee",
		Example: "  sotto schema check schema.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := data.LoadSchema(args[0])
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				said := map[string]any{
					"dataset": s.Dataset, "unit": s.Unit, "rows": s.Rows, "features": s.Dim(), "label": s.LabelName(), "classes": s.ClassNames(), "assumptions": s.Assumptions(),
				}
				if s.UnitRows > 0 {
					delete(said, "rows")
					said["units"], said["unit_rows"], said["unit_column"] = s.Rows, s.UnitRows, s.UnitColumn()
				}
				return json.NewEncoder(w).Encode(said)
			}
			fmt.Fprintf(w, "%s: ", args[0])
			printSchema(w, s)
			if s.Rows == 0 {
				fmt.Fprintf(w, "There is no field %s; training needs it: a public number that a person writes, about as many as the table has.\n", s.Counted())
			}
			return nil
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.AddCommand(init, check, boundsCommand())
	group(c)
	return c
}

func boundsCommand() *cobra.Command {
	var o run.BoundsOptions
	var outPath string
	var force, asJSON bool
	var accept *bool
	c := &cobra.Command{
		Use:   "bounds --data FILE --schema FILE --epsilon E",
		Short: "Propose bounds that nobody knows, by private counts",
		Long: `Bounds estimates the range of numeric columns whose schema says

  {name: income, type: numeric, bounds: unknown}

and writes the schema with min and max in their place. It counts the values of each
column on a public grid (1, 2 and 5 times the powers of ten), adds noise, and takes
the range of the bins that stand out of the noise. A bound leaves about one record in
a thousand outside, or as many as the noise hides.

--epsilon is for all these columns together. It is charged to the dataset's lifetime
budget before the access, and adds to that of every run, also of runs with a holdout.
The first charge of a dataset fixes its relation and unit, as a run would. The noise is
Laplace noise, with --delta Gaussian noise, which is less for several columns.`,
		Example: "  sotto schema bounds --data patients.csv --schema schema.yaml --epsilon 0.05 --adjacency add-or-remove --out bounded.yaml",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.Data == "" || o.Schema == "":
				return usageError("--data FILE and --schema FILE are needed")
			case !c.Flags().Changed("epsilon"):
				return usageError("--epsilon is missing: Sotto has no default for it")
			}
			if outPath != "" && outPath != "-" {
				if err := newfile.Check(outPath, force, o.Data, o.Schema); err != nil {
					return err
				}
			}
			o.AcceptDropped, o.Notice = *accept, warner(c)
			b, err := run.EstimateBounds(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(c.OutOrStdout(), b)
			} else {
				writeBounds(c.ErrOrStderr(), b)
			}
			if err != nil || asJSON && outPath == "" {
				return err
			}
			return newfile.Write(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := w.Write(b.Schema)
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Data, "data", "", "table (required)")
	f.StringVar(&o.Schema, "schema", "", "schema with columns that say bounds: unknown (required)")
	f.StringVar(&o.Ledger, "ledger", "", ledgerUsage)
	f.StringSliceVar(&o.Columns, "columns", nil, "some of these columns (default: all of them)")
	f.Float64Var(&o.Epsilon, "epsilon", 0, "ε of all columns together (required)")
	f.Float64Var(&o.Delta, "delta", 0, "δ of all columns together; above 0 the noise is Gaussian")
	f.StringVar(&o.Adjacency, "adjacency", "", "add-or-remove or replace-one (default: the dataset's in the ledger)")
	accept = addAcceptDropped(f)
	f.StringVar(&outPath, "out", "", "file to write (default: standard output)")
	f.BoolVar(&force, "force", false, "overwrite an existing file")
	f.BoolVar(&asJSON, "json", false, "print one JSON object, and the schema only to --out")
	return c
}

// writeBounds says what was found.
func writeBounds(w io.Writer, b *run.Bounds) {
	cost := fmt.Sprintf("ε = %g", b.Budget.Epsilon)
	if b.Budget.Delta > 0 {
		cost += fmt.Sprintf(", δ = %g", b.Budget.Delta)
	}
	fmt.Fprintf(w, "Charged to dataset %q: %s (run %s). Each count has noise of standard deviation %.3g; a bin stands out from %.0f on.\n", b.Dataset, cost, b.Run, b.Deviation, b.Least)
	for _, c := range b.Columns {
		if c.Bounds == nil {
			fmt.Fprintf(w, "%s: no range stands out of the noise; it still says bounds: unknown\n", c.Name)
			continue
		}
		fmt.Fprintf(w, "%s: %g to %g\n", c.Name, c.Bounds.Min, c.Bounds.Max)
	}
}

// printSchema lists the assumptions of a guarantee.
func printSchema(w io.Writer, s *schema.Schema) {
	fmt.Fprintf(w, "%s encoded features, label %q\n", count(s.Dim()), s.LabelName())
	for _, a := range s.Assumptions() {
		fmt.Fprintln(w, "-", a)
	}
}
