package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/report"
)

func evaluateCommand() *cobra.Command {
	var modelPath, dataPath, labelsPath, ledgerPath string
	var unprotected, void, asJSON bool
	var accept *bool
	c := &cobra.Command{
		Use:   "evaluate --model DIR|model.json --data FILE",
		Short: "Score a model on labeled rows (not private)",
		Long: `Evaluate prints accuracy, log loss, AUC and the confusion matrix of a classifier,
or RMSE and R² of a regression.

The figures are computed from the rows without noise: they are not private. For
rows of a dataset that the ledger knows, --unprotected asserts that these rows need
no protection; --void records the access and ends the guarantee of the dataset.`,
		Example: "  sotto evaluate --model runs/20261120-154800-0a1b2c3d --data test.csv --unprotected",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := modelFor(modelPath, dataPath, "score")
			if err != nil {
				return err
			}
			s, err := m.Evaluate(c.Context(), dataPath, run.Evaluation{Labels: labelsPath, Ledger: ledgerPath,
				Unprotected: unprotected, Void: void, AcceptDropped: *accept, Notice: warner(c)})
			if errors.Is(err, access.ErrWouldEnd) {
				return fmt.Errorf("%w. Give --unprotected if these rows need no protection, or --void", err)
			}
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				return writeJSON(w, s)
			}
			report.WriteScores(w, s)
			return nil
		},
	}
	c.Flags().StringVar(&modelPath, "model", "", "run directory or model file (required)")
	c.Flags().StringVar(&dataPath, "data", "", "labeled table to score (required)")
	c.Flags().StringVar(&labelsPath, "labels", "", labelsUsage)
	c.Flags().StringVar(&ledgerPath, "ledger", "", "ledger of the datasets' budgets (default: that of the model's run, else the user's own)")
	accept = addAcceptDropped(c.Flags())
	c.Flags().BoolVar(&unprotected, "unprotected", false, "these rows need no protection")
	c.Flags().BoolVar(&void, "void", false, voids)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
