package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/newfile"
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
	c.AddCommand(init, check)
	group(c)
	return c
}

// printSchema lists the assumptions of a guarantee.
func printSchema(w io.Writer, s *schema.Schema) {
	fmt.Fprintf(w, "%s encoded features, label %q\n", count(s.Dim()), s.LabelName())
	for _, a := range s.Assumptions() {
		fmt.Fprintln(w, "-", a)
	}
}
