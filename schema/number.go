package schema

import (
	"slices"
	"strings"

	"github.com/sottodp/sotto/config"
)

// A Notation is how a text file writes numbers. nil is the usual one: a point, and nothing between thousands.
type Notation struct {
	decimal   string   // the mark before decimals
	thousands []string // marks between thousands, one of them in a number; none: numbers have no such marks
}

// Marks of Format.Thousands. A space stands for no-break spaces too, an apostrophe for the typographic one.
var thousandsMarks = map[string][]string{
	",": {","}, ".": {"."}, "_": {"_"}, " ": {" ", "\u00a0", "\u202f"}, "'": {"'", "’"},
}

const thousandsAllowed = `",", ".", " ", "'" or "_"`

// Notation is how the file writes numbers.
func (f *Format) Notation() *Notation {
	if f.Decimal == "" && f.Thousands == "" {
		return nil
	}
	n := &Notation{".", thousandsMarks[f.Thousands]}
	if f.Decimal != "" {
		n.decimal = f.Decimal
	}
	return n
}

// Plain appends a cell to dst as [config.ParseNumber] reads it. ok is false for a cell that is no number in the
// notation; then dst is as before.
func (n *Notation) Plain(dst []byte, cell string) (plain []byte, ok bool) {
	from, rest := len(dst), cell
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		dst, rest = append(dst, rest[0]), rest[1:]
	}
	whole := digits(rest)
	dst, rest = append(dst, rest[:whole]...), rest[whole:]
	for _, mark := range n.thousands {
		if whole < 1 || whole > 3 || !strings.HasPrefix(rest, mark) {
			continue
		}
		for strings.HasPrefix(rest, mark) {
			k := digits(rest[len(mark):])
			last := !strings.HasPrefix(rest[len(mark)+k:], mark)
			if k != 3 && (k != 2 || last) { // 12,34,567 too
				return dst[:from], false
			}
			dst, rest = append(dst, rest[len(mark):len(mark)+k]...), rest[len(mark)+k:]
		}
		break
	}
	if strings.HasPrefix(rest, n.decimal) {
		k := digits(rest[len(n.decimal):])
		if whole+k == 0 {
			return dst[:from], false
		}
		dst = append(append(dst, '.'), rest[len(n.decimal):len(n.decimal)+k]...)
		rest = rest[len(n.decimal)+k:]
	} else if whole == 0 {
		return dst[:from], false
	}
	if rest != "" {
		exponent := strings.TrimLeft(rest, "eE")
		size := strings.TrimLeft(exponent, "+-")
		if len(rest)-len(exponent) != 1 || len(exponent)-len(size) > 1 || size == "" || digits(size) < len(size) {
			return dst[:from], false
		}
		dst = append(dst, rest...)
	}
	return dst, true
}

// digits is the number of digits that s begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// Parse is [config.ParseNumber] for a cell in the notation.
func (n *Notation) Parse(cell string) (v float64, fault string) {
	if n == nil {
		return config.ParseNumber(cell)
	}
	var text [32]byte
	if plain, ok := n.Plain(text[:0], cell); ok {
		return config.ParseNumber(string(plain))
	}
	if _, fault = config.ParseNumber(cell); fault == "" {
		fault = otherNotation
	}
	return 0, fault
}

// Write is the text of a number, as package strconv writes it, in the notation, without marks between thousands.
func (n *Notation) Write(number string) string {
	if n == nil {
		return number
	}
	return strings.Replace(number, ".", n.decimal, 1)
}

// Reader reads cells in the notation for a form whose [Form.Reader] is read.
func (n *Notation) Reader(f *Form, read func(string) (float64, string)) func(string) (float64, string) {
	switch {
	case n == nil:
		return read
	case read == nil && f.Words == 0:
		return n.Parse
	case f.Levels == nil:
		return read // dates and words are what they are
	}
	return func(cell string) (v float64, fault string) {
		if v, fault = read(cell); fault == "" {
			return v, ""
		}
		var text [32]byte // of this call: rows are encoded by several goroutines
		plain, ok := n.Plain(text[:0], cell)
		if !ok {
			return v, fault
		}
		return read(string(plain))
	}
}

const (
	notNumber     = "text that is not a number" // of config.ParseNumber
	otherNotation = "a number in another notation"
	missingText   = "text that often marks a missing value"
)

// otherNotations are those that errors suggest, likely ones first.
var otherNotations = []Format{{}, {Decimal: ","}, {Thousands: ","}, {Decimal: ",", Thousands: "."},
	{Decimal: ",", Thousands: " "}, {Thousands: " "}, {Decimal: ",", Thousands: "'"}, {Thousands: "'"}, {Thousands: "_"}}

// missingMarks are texts that files often have where a value is missing, in lower case.
var missingMarks = []string{"na", "n/a", "#n/a", "n.a.", "<na>", "nat", "nan", "null", "(null)", "none", "nil",
	"missing", "unknown", `\n`, "?", "-", "--", "—", ".", "..", "#null!", "#value!", "#div/0!"}

// NumberFault says of a cell that is no number in the notation what it is, never its text, and what to do. fault is
// what [Notation.Parse] says, and missing what to do about a missing value; text says that the cell is one of a text
// file, whose format says how numbers are written.
func (n *Notation) NumberFault(cell, fault, allowed, missing string, text bool) (found, advice string) {
	cell = strings.TrimSpace(cell)
	if fault == "NaN" || slices.Contains(missingMarks, strings.ToLower(cell)) {
		if fault != "NaN" {
			fault = missingText
		}
		return fault, allowed +
			"; if a value is missing there, list the mark in format.missing of the schema, and " + missing
	}
	if !text || fault != otherNotation && fault != notNumber {
		return fault, allowed
	}
	var write []string
	for _, other := range otherNotations {
		m := other.Notation()
		if m == nil && fault == notNumber {
			continue // it is no number in the usual notation
		} else if m == nil {
			m = &Notation{decimal: "."}
		}
		used := m.thousands == nil ||
			slices.ContainsFunc(m.thousands, func(mark string) bool { return strings.Contains(cell, mark) })
		if _, ok := m.Plain(nil, cell); ok && used {
			write = append(write, other.notation())
		}
	}
	if len(write) == 0 && fault == notNumber {
		return fault, allowed + "; a mark of a missing value belongs in format.missing of the schema"
	} else if len(write) == 0 {
		return fault, allowed
	}
	if len(write) > 2 {
		write = write[:2]
	}
	return otherNotation, allowed + "; if the file writes numbers so, write " + strings.Join(write, " or ") +
		" in the block format of the schema"
}

// notation is the fields decimal and thousands as the block format has them, with an example.
func (f *Format) notation() string {
	switch {
	case f.Decimal == "" && f.Thousands == "":
		return "no decimal and no thousands (for 1.5)"
	case f.Thousands == "":
		return `decimal: "," (for 1,5)`
	case f.Decimal == "":
		return `thousands: "` + f.Thousands + `" (for 1` + f.Thousands + "234.5)"
	}
	return `decimal: ",", thousands: "` + f.Thousands + `" (for 1` + f.Thousands + "234,5)"
}

// checkNotation checks the fields decimal and thousands.
func (f *Format) checkNotation() *config.Error {
	switch {
	case f.Decimal != "" && f.Decimal != ",":
		return f.bad("decimal", config.Quote(f.Decimal), `"." or ","`)
	case f.Thousands != "" && thousandsMarks[f.Thousands] == nil:
		return f.bad("thousands", config.Quote(f.Thousands), thousandsAllowed)
	case f.Thousands == "." && f.Decimal == "", f.Thousands == "," && f.Decimal == ",":
		return f.bad("thousands", config.Quote(f.Thousands)+", the decimal mark",
			`another mark, or the other decimal mark as in decimal: ",", thousands: "."`)
	}
	return nil
}
