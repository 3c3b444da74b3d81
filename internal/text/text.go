// Package text lays out words for a terminal.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Wrap breaks text into lines of at most that many characters, at spaces.
func Wrap(text string, width int) string {
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

// Row prints a named line of a summary; further lines are indented.
func Row(w io.Writer, name, format string, args ...any) {
	fmt.Fprintf(w, "%-18s%s\n", name, Indented(fmt.Sprintf(format, args...), 98, 18))
}

// Indented wraps text, and indents each line but the first.
func Indented(text string, width, indent int) string {
	return strings.ReplaceAll(Wrap(text, width), "\n", "\n"+strings.Repeat(" ", indent))
}

// Whom names whose privacy a guarantee is of: a record is a row, or at most that many rows of one unit.
func Whom(unit string, rows int) string {
	switch rows {
	case 0:
		return unit
	case 1:
		return unit + " (one row)"
	}
	return fmt.Sprintf("%s (all of its rows, at most %d)", unit, rows)
}

// Against names those against whom a guarantee holds that owners of a network share, of whom so many may collude.
func Against(colluders int) string {
	switch colluders {
	case 0:
		return "the hub and everybody who is no owner"
	case 1:
		return "the hub and any one other owner"
	}
	return fmt.Sprintf("the hub and any %d other owners", colluders)
}

// Trust says whom a guarantee asks to trust that so many owners share, of whom so many others may collude.
func Trust(owners, colluders int) string {
	who := fmt.Sprintf("At least %d of the %d owners have to be honest, the owner of these records among them",
		owners-colluders, owners)
	if colluders == 0 {
		who = fmt.Sprintf("All %d owners have to be honest", owners)
	}
	return who +
		": each of them adds its share of the noise, and tells nobody its share, its sums or its keys. The masks have to hold: " +
		"they rest on X25519, HKDF and AES, and on fingerprints of keys that people compared. The hub need not be trusted."
}

// AgainstAll names those against whom an owner's own share of the noise has to do.
const AgainstAll = "all other owners together, or if masks were broken"
