package config

import "testing"

func TestParseNumber(t *testing.T) {
	for s, want := range map[string]string{
		"1": "", "-1.5e3": "", "+.5": "", "1.": "", "1e-400": "",
		"": "an empty cell", "nan": "NaN", "-NaN": "NaN", "inf": "an infinite number", "+Infinity": "an infinite number",
		"1e999": "a number too large to hold", "0x1p3": "text that is not a number", "1_000": "text that is not a number",
		"1,5": "text that is not a number", "--1": "text that is not a number", "e": "text that is not a number", " 1": "text that is not a number",
	} {
		if _, got := ParseNumber(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
