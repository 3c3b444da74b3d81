// Package config reads what a person wrote: specs, schemas and other YAML. Its errors say
// where something stands, what was found there and what is allowed.
package config

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseNumber is s as a finite number in decimal or scientific notation, or what
// kind of text it is instead.
func ParseNumber(s string) (float64, string) {
	if s == "" {
		return 0, "an empty cell"
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			switch strings.ToLower(strings.TrimLeft(s, "+-.")) {
			case "nan":
				return 0, "NaN"
			case "inf", "infinity":
				return 0, "an infinite number"
			}
			return 0, "text that is not a number"
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case math.IsInf(v, 0):
		return 0, "a number too large to hold"
	case err != nil:
		return 0, "text that is not a number"
	}
	return v, ""
}

// PlainText says whether s is valid UTF-8 without control characters other than
// the tab.
func PlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' })
}

// Quote is s for an error text about a schema, cut where it is long.
func Quote(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return strconv.Quote(s)
}
