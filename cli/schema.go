package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/describe"
	"github.com/sottodp/sotto/schema"
)

func schemaCommand() *cobra.Command {
	c := &cobra.Command{Use: "schema", Short: "Public descriptions of tables"}
	var delimiter, outPath string
	var asks, resume bool
	init := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a schema skeleton from a table's header",
		Long: `Init reads only the header of a table and writes a schema in which a person fills
in every type, bound and level. They must come from knowledge of the world, not
from the table: a bound that is read off the data reveals something about it.

With --ask it asks for the label, and for each column's type, bounds or levels, and
writes a schema that is complete. Answers may come from a file or a pipe, too.`,
		Example: "  sotto schema init patients.csv > schema.yaml\n  sotto schema init patients.csv --ask --out schema.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if st, err := os.Stat(outPath); outPath != "" && err == nil && st.Mode().IsRegular() && st.Size() > 0 {
				return usageError("--out: %s exists; give a new file, as a schema that somebody filled in is not overwritten",
					outPath)
			}
			if resume && !asks {
				return usageError("--continue goes on with answers; give --ask, too")
			}
			var b []byte
			var err error
			if asks {
				b, err = askSchema(c.Context(), newQuestions(c), args[0], delimiter, resume, "sotto schema init --ask")
			} else {
				b, err = access.Skeleton(c.Context(), args[0], delimiter)
			}
			if err != nil {
				return err
			}
			if err := newfile.Write(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := w.Write(b)
				return err
			}); err != nil || !asks {
				return err
			}
			return removeDraft(args[0])
		},
	}
	init.Flags().BoolVar(&resume, "continue", false, continueUsage)
	init.Flags().StringVar(&delimiter, "delimiter", "",
		"delimiter of the file (default: the most frequent of , ; tab | in the header)")
	init.Flags().StringVar(&outPath, "out", "", "file to write (default: standard output)")
	init.Flags().BoolVar(&asks, "ask", false, "ask for the label, types, bounds and levels")
	c.AddCommand(init, schemaCheckCommand(), boundsCommand())
	group(c)
	return c
}

func schemaCheckCommand() *cobra.Command {
	var o run.CheckOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "check SCHEMA [--data FILE]",
		Short: "Check a schema and list the assumptions of a guarantee; or count what a table holds",
		Long: `Check lists what a guarantee rests on. It reads no table.

With --data it counts, without noise, what the columns of a table hold: bad cells by
kind, missing values, and values at the bounds and beyond. Such counts steer what a
person writes into the schema, so they are an access without a guarantee: the ledger
records it, and the dataset's lifetime statement ends. It asks first; --void says yes.
Where the counts are not worth that, use ` + "`sotto synth`" + ` for a table to try things on,
and ` + "`sotto schema bounds`" + ` for bounds at a cost. Reading a table for a run shows the line
and column of the first bad row for free.`,
		Example: "  sotto schema check schema.yaml\n  sotto schema check schema.yaml --data trial.csv --unprotected",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := data.LoadSchema(args[0])
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if o.Data == "" {
				for _, name := range []string{"labels", "ledger", "unprotected", "void"} {
					if c.Flags().Changed(name) {
						return usageError("--%s is for a table; --data FILE is missing", name)
					}
				}
				return writeSchema(w, args[0], s, asJSON)
			}
			if err := agree(c, s.Dataset, &o); err != nil {
				return err
			}
			o.Notice = warner(c)
			counts, err := run.CheckTable(c.Context(), s, o)
			if errors.Is(err, access.ErrWouldEnd) {
				return fmt.Errorf("%w. Give --void to do it all the same", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(w, counts)
			}
			return writeCounts(w, counts)
		},
	}
	c.Flags().StringVar(&o.Data, "data", "", "table to count (not private)")
	c.Flags().StringVar(&o.Labels, "labels", "", labelsUsage)
	c.Flags().StringVar(&o.Ledger, "ledger", "", ledgerUsage)
	c.Flags().BoolVar(&o.Unprotected, "unprotected", false, "these rows need no protection")
	c.Flags().BoolVar(&o.Void, "void", false, voids)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// agree asks the owner whether the counts are worth the guarantee, unless a flag says so.
func agree(c *cobra.Command, dataset string, o *run.CheckOptions) error {
	if o.Void || o.Unprotected {
		return nil
	}
	what := fmt.Sprintf("exact counts of %s end the lifetime guarantee of dataset %q forever, and the ledger records it. `sotto synth` makes a table to try the schema on; `sotto schema bounds` estimates bounds at a cost", data.Public(o.Data), dataset)
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usageError("%s. Give --void to count all the same, or --unprotected if these rows need no protection", what)
	}
	fmt.Fprintf(c.ErrOrStderr(), "sotto: %s.\nType yes to count all the same: ", what)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return usageError("nothing was read or recorded")
	}
	o.Void = true
	return nil
}

// writeCounts prints the exact counts of a table.
func writeCounts(w io.Writer, counts *run.TableCounts) error {
	fmt.Fprintf(w, "%s rows, %s of them bad. These counts are exact: they are not private.\n\n", count(counts.Rows),
		count(counts.Bad))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COLUMN\tTYPE\tMISSING\tBELOW\tAT MIN\tAT MAX\tABOVE\tUNKNOWN\tBAD CELLS")
	for _, c := range counts.Columns {
		bounds := "-\t-\t-\t-"
		if c.Type != schema.TypeLabel && schema.HasField(c.Type, "min") || c.Below+c.AtLeast+c.AtMost+c.Above > 0 {
			bounds = fmt.Sprintf("%d\t%d\t%d\t%d", c.Below, c.AtLeast, c.AtMost, c.Above)
		}
		unknown := "-"
		if schema.HasField(c.Type, "unknown") {
			unknown = fmt.Sprint(c.Unknown)
		}
		var bad []string
		for _, kind := range slices.Sorted(maps.Keys(c.Bad)) {
			bad = append(bad, fmt.Sprintf("%d: %s", c.Bad[kind], kind))
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", cmp.Or(c.Name, "(whole rows)"), c.Type, c.Missing, bounds, unknown,
			strings.Join(bad, "; "))
	}
	return t.Flush()
}

// writeSchema prints what a guarantee rests on.
func writeSchema(w io.Writer, name string, s *schema.Schema, asJSON bool) error {
	if asJSON {
		said := map[string]any{
			"dataset": s.Dataset, "unit": s.Unit, "rows": s.Rows, "features": s.Dim(), "label": s.LabelName(),
			"classes": s.ClassNames(), "assumptions": s.Assumptions(),
		}
		if s.UnitRows > 0 {
			delete(said, "rows")
			said["units"], said["unit_rows"], said["unit_column"] = s.Rows, s.UnitRows, s.UnitColumn()
		}
		return json.NewEncoder(w).Encode(said)
	}
	fmt.Fprintf(w, "%s: ", name)
	printSchema(w, s)
	if s.Rows == 0 {
		fmt.Fprintf(w,
			"There is no field %s; training needs it: a public number that a person writes, about as many as the table has.\n",
			s.Counted())
	}
	return nil
}

func boundsCommand() *cobra.Command {
	var o describe.BoundsOptions
	var outPath string
	var force, asJSON bool
	var accept *bool
	c := &cobra.Command{
		Use:   "bounds --data FILE --schema FILE --epsilon E",
		Short: "Estimate unknown bounds by private counts",
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
			b, err := describe.EstimateBounds(c.Context(), o)
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
	numberVar(f, &o.Epsilon, "epsilon", 0, "ε of all columns together (required)")
	numberVar(f, &o.Delta, "delta", 0, "δ of all columns together; above 0 the noise is Gaussian")
	f.StringVar(&o.Adjacency, "adjacency", "", "add-or-remove or replace-one (default: the dataset's in the ledger)")
	accept = addAcceptDropped(f)
	f.StringVar(&outPath, "out", "", "file to write (default: standard output)")
	f.BoolVar(&force, "force", false, "overwrite an existing file")
	f.BoolVar(&asJSON, "json", false, "print one JSON object, and the schema only to --out")
	return c
}

// writeBounds says what was found.
func writeBounds(w io.Writer, b *describe.Bounds) {
	cost := "ε = " + chart.Full(b.Budget.Epsilon)
	if b.Budget.Delta > 0 {
		cost += ", δ = " + chart.Full(b.Budget.Delta)
	}
	fmt.Fprintf(w,
		"Charged to dataset %q: %s (run %s). Each count has noise of standard deviation %.3g; a bin stands out from %.0f on. The sampler's distance from the ideal adds at most %.1e to δ.\n", b.Dataset, cost, b.Run, b.Deviation, b.Least, b.Sampler)
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
