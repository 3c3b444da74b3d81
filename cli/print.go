package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/chart"
)

// Numbers in text: as an upper bound, and with commas between thousands.
var atMost, count = chart.AtMost, chart.Integer

// A result prints itself as text.
type result interface{ Text(io.Writer) }

// answer prints a result as JSON or as text.
func answer(c *cobra.Command, asJSON bool, r result, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(c.OutOrStdout(), r)
	}
	r.Text(c.OutOrStdout())
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
