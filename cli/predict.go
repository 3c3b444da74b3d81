package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
)

func predictCommand() *cobra.Command {
	var modelPath, dataPath, outPath string
	var digits int
	c := &cobra.Command{
		Use:   "predict --model DIR|model.json --data FILE",
		Short: "Predict labels and probabilities for the rows of a table",
		Long: `Predict writes a CSV with one line for each row of a table: the predicted label
and the probability of each class, or the predicted value of a regression. The
model file holds the schema; the table needs no label column. A row that does not
fit the schema stops the command, or, under on_bad_row: drop, gets an empty line.
Rows are read in blocks, so a table may be larger than memory. Nothing is written
before the last row was read.

Predicting is post-processing: the model's guarantee does not change. A prediction
does tell its reader about the row it was made for.`,
		Example: "  sotto predict --model runs/20261120-154800-0a1b2c3d --data new.csv > predictions.csv",
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if digits < 1 || digits > 17 {
				return usageError("--digits: found %d; write a whole number from 1 to 17", digits)
			}
			m, err := modelFor(modelPath, dataPath, "predict")
			if err != nil {
				return err
			}
			return newfile.WriteWhole(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				return m.Predict(c.Context(), dataPath, w, digits, warner(c))
			})
		},
	}
	c.Flags().StringVar(&modelPath, "model", "", "run directory or model file (required)")
	c.Flags().StringVar(&dataPath, "data", "", "table to predict (required)")
	c.Flags().IntVar(&digits, "digits", 6, "significant digits of a number; 17 are all")
	c.Flags().StringVar(&outPath, "out", "", "file to write; its mode follows the umask (default: standard output)")
	return c
}

// modelFor reads a model to apply to rows.
func modelFor(modelPath, dataPath, what string) (*run.Trained, error) {
	m, err := run.LoadModel(modelPath)
	if err == nil && dataPath == "" {
		err = usageError("--data is missing: the rows to %s", what)
	}
	return m, err
}
