package cli

import (
	"encoding/csv"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/page/description"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run/describe"
	"github.com/sottodp/sotto/run/runlog"
)

func describeCommand() *cobra.Command {
	var o describe.Options
	var pairs []string
	var accept *bool
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "describe FILE --schema SCHEMA --epsilon E --delta D",
		Short: "Private statistics of a table, before a model: histograms, means, quantiles",
		Long: `Describe releases the histograms of all columns of a table, with noise, once. From
these noisy counts follow the number of records, of missing values and of values that
the schema does not allow, the classes of the label, and means and quantiles of
numbers, each with a 95 % interval for the noise. --pair adds a table of two columns.

Bins and levels come from the schema alone. The ledger charges ε and δ to the dataset
before the table is used. The directory of the run holds a page (report.html), all
figures (description.csv) and the record (description.json), which sotto verify checks.

More columns and pairs mean more noise: it grows with the root of their number. Columns
of type ignore are not counted.`,
		Example: "  sotto describe patients.csv --schema schema.yaml --epsilon 0.5 --delta 1e-6 --adjacency add-or-remove --pair ward,readmitted",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case o.Schema == "":
				return usageError("--schema FILE is missing: the public description of the table; `sotto schema init` makes a skeleton")
			case !c.Flags().Changed("epsilon"):
				return usageError("--epsilon is missing: Sotto has no default for it")
			case !c.Flags().Changed("delta"):
				return usageError("--delta is missing: Sotto has no default for it; write one well below one over the number of rows, as 1e-6")
			case c.Flags().Changed("bins") && o.Bins == 0:
				return usageError("--bins: found 0; choose a number from 2 on, or leave it out")
			}
			var err error
			if o.Pairs, err = pairsOf(pairs); err != nil {
				return err
			}
			o.Data, o.AcceptDropped, o.Version, o.Notice = args[0], *accept, runlog.Version(), warner(c)
			e, dir, err := describe.Run(c.Context(), o)
			if unsupported := (*account.UnsupportedError)(nil); errors.As(err, &unsupported) {
				return usageError("%v", err)
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(c.OutOrStdout(), described{dir, e})
			case quiet:
				return nil
			}
			return description.Text(c.OutOrStdout(), e, dir)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Schema, "schema", "", "public description of the table (required)")
	numberVar(f, &o.Epsilon, "epsilon", 0, "privacy budget ε of all figures together (required)")
	numberVar(f, &o.Delta, "delta", 0, "privacy budget δ (required)")
	f.StringVar(&o.Adjacency, "adjacency", "",
		"neighboring tables: add-or-remove or replace-one (default: the dataset's, if the ledger knows it)")
	f.IntVar(&o.Bins, "bins", 0, "bins of a column of numbers (default: chosen by the number of rows in the schema and the noise)")
	f.StringArrayVar(&pairs, "pair", nil, "two columns to count together, as age,ward; may be given several times")
	f.StringVar(&o.Ledger, "ledger", "", ledgerUsage)
	f.StringVar(&o.Out, "out", "", "run directory, new or empty (default runs/<time>-<id>)")
	accept = addAcceptDropped(f)
	addOutput(f, &asJSON, &quiet, "")
	return c
}

// pairsOf reads pairs of columns. A name with a comma stands in quotes, as in a CSV file.
func pairsOf(texts []string) (pairs [][2]string, err error) {
	for _, text := range texts {
		names, err := csv.NewReader(strings.NewReader(text)).Read()
		if err != nil || len(names) != 2 || names[0] == "" || names[1] == "" {
			return nil, usageError("--pair: found %q; write two columns, as age,ward; a name with a comma stands in double quotes", text)
		}
		pairs = append(pairs, [2]string{strings.TrimSpace(names[0]), strings.TrimSpace(names[1])})
	}
	return pairs, nil
}

// described is what a description says to programs.
type described struct {
	Dir string `json:"dir"`
	*runlog.Description
}
