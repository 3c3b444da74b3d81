// Package config reads what a person wrote: specs, schemas and other YAML. Its errors say
// where something stands, what was found there and what to write.
package config

import (
	"errors"
	"math"
	"math/bits"
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
	if v, _, ok := Decimal(s); ok {
		return v, ""
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

// Decimal is [ParseNumber] for the text of most numbers: up to 18 digits, perhaps with a sign and a point. ok is false
// for any other text. The quotient of the digits and a power of ten, both exact in a float64, is the number correctly
// rounded: the bits are those of [strconv.ParseFloat].
func Decimal(s string) (v float64, digits int, ok bool) {
	if len(s) >= 4 && len(s) <= 8 {
		return decimal8(s)
	}
	if s == "" {
		return 0, 0, false
	}
	i, negative := 0, false
	if c := s[0]; c == '-' || c == '+' {
		i, negative = 1, c == '-'
	}
	digits = len(s) - i
	point := len(s)
	var m uint64
	for ; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			if s[i] != '.' || point < len(s) {
				return 0, 0, false
			}
			point = i + 1
			digits--
			continue
		}
		m = 10*m + uint64(c)
	}
	if digits == 0 || digits > 18 || m > 1<<53 { // up to 18 digits m has not overflowed
		return 0, 0, false
	}
	v = float64(m) / powers[len(s)-point]
	if negative {
		v = -v
	}
	return v, digits, true
}

// decimal8 is Decimal for text of 4 to 8 bytes, which it takes as the bytes of one word: the last in the highest byte,
// and zeros before the first.
func decimal8(s string) (v float64, digits int, ok bool) {
	const ones = 0x0101010101010101
	n, end := len(s), s[len(s)-4:]
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
	x |= (uint64(end[0]) | uint64(end[1])<<8 | uint64(end[2])<<16 | uint64(end[3])<<24) << (8 * (n - 4))
	x = x<<(8*(8-n)) | '0'*ones>>(8*n)
	digits, places := n, 0
	if c := s[0]; c == '-' || c == '+' {
		x ^= uint64(c^'0') << (8 * (8 - n))
		digits--
	}
	y := x ^ '.'*ones
	if y = (y - ones) &^ y & (0x80 * ones); y != 0 { // its lowest bit is that of the first point, which goes out
		at := bits.TrailingZeros64(y) - 7
		before := uint64(1)<<at - 1
		x = x&^(before<<8|0xff) | x&before<<8 | '0'
		digits, places = digits-1, 7-at/8
	}
	x -= '0' * ones
	if (x|(x+(0x80-10)*ones))&(0x80*ones) != 0 || digits == 0 {
		return 0, 0, false // a byte is not a digit
	}
	x = 10*x + x>>8 // numbers of two digits in every second byte
	x = (x&0xff000000ff*(100+1000000<<32) + x>>16&0xff000000ff*(1+10000<<32)) >> 32
	v = float64(x) / powers[places]
	if s[0] == '-' {
		v = -v
	}
	return v, digits, true
}

// powers are those of ten that Decimal needs.
var powers = [19]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
	1e18}

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

// OutOfRange says that text is a number which is too large for a float64, or one other than 0 that is too small; "" for
// others.
func OutOfRange(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	digits, _, _ := strings.Cut(strings.ToLower(text), "e")
	switch {
	case errors.Is(err, strconv.ErrRange):
		return Quote(text) + " is beyond the range of numbers, which ends at 1.8e308"
	case err == nil && v == 0 && strings.ContainsAny(digits, "123456789"):
		return Quote(text) + " is nearer to 0 than 5e-324, the least number above it; write 0 if you mean 0"
	}
	return ""
}

// WholeOutOfRange says that text is a whole number of more than most; "" for others.
func WholeOutOfRange(text string, most uint64) string {
	digits := strings.TrimLeft(text, "+-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n <= most {
		return ""
	}
	return Quote(text) + " is beyond the range of whole numbers here, which ends at " + strconv.FormatUint(most, 10)
}
