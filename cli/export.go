package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/onnx"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run"
)

func exportCommand() *cobra.Command {
	var form, outPath string
	c := &cobra.Command{
		Use:   "export DIR|model.json --to onnx|csv",
		Short: "Export a model, or what each column does in it",
		Long: `With --to onnx, export writes the model of a run as an ONNX file. Its inputs are the columns of the schema by name, or one input named
image or features: numbers are float64, NaN if missing; categories are strings without spaces around them. Its outputs are
label and probabilities, as of predict; a row that does not fit the schema gets NaN. The file also states the guarantee.

With --to csv, it writes what each column adds to the margin of a row of middle size: the slope of a number, the points of its
curve, or a line for each level, with a band of the training's noise and the odds ratio. It is for models of two classes or of a
number over the columns of a table, and follows from the model alone.`,
		Example: "  sotto export runs/20261120-154800-0a1b2c3d --to onnx --out model.onnx\n  sotto export runs/20261120-154800-0a1b2c3d --to csv --out effects.csv",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if form != "onnx" && form != "csv" {
				return usageError("--to: found %q; choose onnx or csv", form)
			}
			outPath = cmp.Or(outPath, map[string]string{"onnx": "model.onnx", "csv": "effects.csv"}[form])
			if st, err := os.Stat(outPath); err == nil && st.Mode().IsRegular() {
				return outExists(outPath)
			}
			m, err := run.LoadModel(args[0])
			if err != nil {
				return err
			}
			var file bytes.Buffer
			if form == "csv" {
				var text []byte
				if text, err = json.Marshal(m.File); err == nil {
					err = page.WriteEffects(&file, text)
				}
			} else {
				err = onnx.Write(&file, m.File, m.Model, m.Schema, m.Promised())
			}
			if err != nil {
				return usageError("%s: %v", args[0], err)
			}
			err = newfile.Write(c.OutOrStdout(), "out", outPath, func(w io.Writer) error {
				_, err := file.WriteTo(w)
				return err
			})
			if err == nil && outPath != "-" {
				what := "with its encoding"
				if form == "csv" {
					what = "what each column adds to its margins"
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s: the %s model of %s, %s\n", outPath, m.File.Model, args[0], what)
			}
			return err
		},
	}
	c.Flags().StringVar(&form, "to", "", "form to write: onnx or csv (required)")
	c.Flags().StringVar(&outPath, "out", "", "file to write, a new one, or - (default model.onnx or effects.csv)")
	return c
}
