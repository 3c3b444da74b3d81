package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/onnx"
	"github.com/sottodp/sotto/run"
)

func exportCommand() *cobra.Command {
	var form, outPath string
	c := &cobra.Command{
		Use:   "export DIR|model.json --to onnx",
		Short: "Export a model to another format",
		Long: `Export writes the model of a run as an ONNX file. Its inputs are the columns of the schema by name, or one input named
image or features: numbers are float64, NaN if missing; categories are strings without spaces around them. Its outputs are
label and probabilities, as of predict; a row that does not fit the schema gets NaN. The file also states the guarantee.`,
		Example: "  sotto export runs/20261120-154800-0a1b2c3d --to onnx --out model.onnx",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if form != "onnx" {
				return usageError("--to: found %q; allowed is onnx", form)
			}
			if st, err := os.Stat(outPath); err == nil && st.Mode().IsRegular() {
				return usageError("--out: %s exists; allowed is a new file", outPath)
			}
			m, err := run.LoadModel(args[0])
			if err != nil {
				return err
			}
			err = newfile.Write(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				if err := onnx.Write(w, m.File, m.Model, m.Schema, m.Promised()); err != nil {
					return usageError("%s: %v", args[0], err)
				}
				return nil
			})
			if err == nil && outPath != "" && outPath != "-" {
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s: the %s model of %s, with its encoding\n", outPath, m.File.Model, args[0])
			}
			return err
		},
	}
	c.Flags().StringVar(&form, "to", "", "form to write: onnx (required)")
	c.Flags().StringVar(&outPath, "out", "model.onnx", "file to write, a new one")
	return c
}
