package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/internal/chart"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

func evaluateCommand() *cobra.Command {
	var modelPath, dataPath, labelsPath, ledgerPath string
	var unprotected, void, asJSON bool
	var accept *bool
	var private run.PrivateEvaluation
	var delta float64
	c := &cobra.Command{
		Use:   "evaluate --model DIR|model.json --data FILE",
		Short: "Score a model on labeled rows, with --epsilon privately",
		Long: `Evaluate prints accuracy, log loss, AUC and the confusion matrix of a classifier,
or RMSE and R² of a regression.

With --epsilon the figures are private. They follow from noisy counts, for which the ledger charges ε and δ to the
dataset before any row is used, and each comes with a 95 % interval for the noise and the sampling error. --by splits
them by the levels of a column at the same cost. A directory keeps what was answered; sotto verify checks it.

Without --epsilon the figures are computed from the rows without noise: they are not private. For
rows of a dataset that the ledger knows, --unprotected asserts that these rows need
no protection; --void records the access and ends the guarantee of the dataset.`,
		Example: `  sotto evaluate --model runs/20261120-154800-0a1b2c3d --data test.csv --unprotected
  sotto evaluate --model runs/20261120-154800-0a1b2c3d --data visits.csv --epsilon 0.5 --by ward`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			charged := c.Flags().Changed("epsilon")
			for _, name := range []string{"delta", "by", "dataset", "rows", "out"} {
				if c.Flags().Changed(name) && !charged {
					return usageError("--%s is for private figures; give --epsilon too", name)
				}
			}
			if charged && (unprotected || void) {
				return usageError("--epsilon is for rows that are protected; leave out --unprotected and --void")
			}
			m, err := modelFor(modelPath, dataPath, "score")
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if charged {
				if c.Flags().Changed("delta") {
					private.Delta = &delta
				}
				private.Labels, private.Ledger, private.Version = labelsPath, ledgerPath, runlog.Version()
				private.AcceptDropped, private.Notice = *accept, warner(c)
				e, dir, err := m.EvaluatePrivately(c.Context(), dataPath, private)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(w, evaluated{e.Private, dir, e.ID, e.Dataset})
				}
				page.WritePrivate(w, e.Private)
				fmt.Fprintf(w, "Charged to dataset %s: ε = %s, δ = %s\nRecord     %s\n", e.Dataset,
					chart.Full(e.Budget.Epsilon), chart.Full(e.Budget.Delta), dir)
				return nil
			}
			s, err := m.Evaluate(c.Context(), dataPath, run.Evaluation{Labels: labelsPath, Ledger: ledgerPath,
				Unprotected: unprotected, Void: void, AcceptDropped: *accept, Notice: warner(c)})
			if errors.Is(err, access.ErrWouldEnd) {
				return fmt.Errorf("%w. Give --epsilon for private figures, --unprotected if these rows need no protection, or --void", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(w, s)
			}
			page.WriteScores(w, s)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&modelPath, "model", "", "run directory or model file (required)")
	f.StringVar(&dataPath, "data", "", "labeled table to score (required)")
	f.StringVar(&labelsPath, "labels", "", labelsUsage)
	f.StringVar(&ledgerPath, "ledger", "",
		"ledger of the datasets' budgets (default: that of the model's run, else the user's own)")
	numberVar(f, &private.Epsilon, "epsilon", 0, "private figures, for this ε")
	numberVar(f, &delta, "delta", 0, "with --epsilon: δ (default: that of the model's training)")
	f.StringVar(&private.By, "by", "", "with --epsilon: a categorical column by whose levels figures are split")
	f.StringVar(&private.Dataset, "dataset", "",
		"with --epsilon: the dataset that is charged (default: that of the model's training)")
	f.IntVar(&private.Rows, "rows", 0,
		"with --epsilon: about how many rows or units the table has, a public number (default: as in training)")
	f.StringVar(&private.Out, "out", "", "with --epsilon: directory of the record, new or empty (default: evaluations/ID)")
	accept = addAcceptDropped(f)
	f.BoolVar(&unprotected, "unprotected", false, "these rows need no protection")
	f.BoolVar(&void, "void", false, voids)
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// evaluated is what a private evaluation says to programs.
type evaluated struct {
	Private *runlog.Private `json:"private"`
	Dir     string          `json:"dir"`
	Run     string          `json:"run"`
	Dataset string          `json:"dataset"`
}
