package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/internal/chart"
)

// Numbers in text: with all digits, as an upper bound, and with commas between thousands.
var exact, atMost, count = chart.Exact, chart.AtMost, chart.Integer

// stepsOf is a number of steps in words.
func stepsOf(n int) string {
	if n == 1 {
		return "1 step"
	}
	return count(n) + " steps"
}

// answer prints what a command found, as JSON or as text.
func answer[T any](c *cobra.Command, asJSON bool, v T, err error, print func(io.Writer, T)) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(c.OutOrStdout(), v)
	}
	print(c.OutOrStdout(), v)
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// wrap breaks text into lines of at most that many characters, at spaces.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// row prints a named line of a summary; text goes on below itself.
func row(w io.Writer, name, format string, args ...any) {
	text := wrap(fmt.Sprintf(format, args...), 98)
	fmt.Fprintf(w, "%-18s%s\n", name, strings.ReplaceAll(text, "\n", "\n                  "))
}
