package schema

import (
	"math"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/config"
)

// FindText returns the function that finds a cell among levels or classes: the position of the same text, or else of
// the one that is the same whole number, as 1 for 1.0. Where several are that number, as 1 and 1.0, only the same text
// counts.
func FindText(texts []string) func(cell string) (at int, ok bool) {
	same, whole := make(map[string]int, len(texts)), map[string]int{}
	for i, text := range texts {
		same[text] = i
		if w, ok := wholeText(text); ok {
			if _, twice := whole[w]; twice {
				i = -1
			}
			whole[w] = i
		}
	}
	return func(cell string) (int, bool) {
		if i, ok := same[cell]; ok {
			return i, true
		}
		if len(whole) > 0 {
			if w, ok := wholeText(cell); ok {
				i, ok := whole[w]
				return i, ok && i >= 0
			}
		}
		return 0, false
	}
}

// wholeText is the shortest text of a whole number of up to 15 digits: 7 for 7, 7.0, 7.00 and 7e0. ok is false for
// other text, also for a whole number with a plus sign or zeros before it, as codes have them: 07.
func wholeText(s string) (whole string, ok bool) {
	text := strings.TrimPrefix(s, "-")
	n := digits(text)
	if n == 0 || n > 1 && text[0] == '0' {
		return "", false
	}
	if n < len(text) {
		v, fault := config.ParseNumber(s)
		if fault != "" || v != math.Trunc(v) || math.Abs(v) >= 1e15 {
			return "", false
		}
		s = strconv.FormatInt(int64(v), 10)
	}
	if s == "-0" {
		s = "0"
	}
	return s, n <= 15
}
