package config

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

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

// TestParseNumberBits: the bits of a number are those of strconv.
func TestParseNumberBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+-]?[0-9]{0,20}\.?[0-9]{0,20}(e-?[0-9]{1,2})?`).Draw(t, "s")
		if rapid.Bool().Draw(t, "float") {
			s = strconv.FormatFloat(rapid.Float64().Draw(t, "v"), 'g', rapid.IntRange(-1, 18).Draw(t, "digits"), 64)
		}
		got, bad := ParseNumber(s)
		want, err := strconv.ParseFloat(s, 64)
		if (bad == "") != (err == nil) || err == nil && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q gives %v %s, want %v %v", s, got, bad, want, err)
		}
		checkDecimal(t, s)
		checkDecimal(t, rapid.StringMatching(`[+-]?[0-9]{0,7}\.?[0-9]{0,7}.?`).Draw(t, "short"))
	})
}

// TestDecimal: all texts of up to five of these bytes.
func TestDecimal(t *testing.T) {
	const some = "-+.019e/:"
	for n, all := 1, len(some); n <= 5; n, all = n+1, all*len(some) {
		text := make([]byte, n)
		for k := range all {
			for i := range text {
				text[i], k = some[k%len(some)], k/len(some)
			}
			checkDecimal(t, string(text))
		}
	}
}

func checkDecimal(t interface{ Fatalf(string, ...any) }, s string) {
	v, n, ok := Decimal(s)
	want, err := strconv.ParseFloat(s, 64)
	digits := len(strings.TrimLeft(s, "+-")) - strings.Count(s, ".")
	if plain := err == nil && strings.Trim(s, "+-.0123456789") == "" && digits <= 15; plain && !ok || ok && (err != nil || math.Float64bits(v) != math.Float64bits(want)) {
		t.Fatalf("%q gives %v %t as a decimal, want %v %v", s, v, ok, want, err)
	}
	if ok && n != digits {
		t.Fatalf("%q has %d digits, want %d", s, n, digits)
	}
}

// TestEncodings: a document may begin with the mark of UTF-8; one in UTF-16 is refused by name.
func TestEncodings(t *testing.T) {
	wide := func(order binary.AppendByteOrder, mark string) []byte {
		var b []byte
		for _, c := range mark + "a: 1\n" {
			b = order.AppendUint16(b, uint16(c))
		}
		return b
	}
	d, err := Parse("f", "a spec", []byte("\ufeffa: 1\n"))
	if err != nil || !d.Has("a") || d.Place("a") != "f:1:1" {
		t.Error(err)
	}
	for _, b := range [][]byte{wide(binary.LittleEndian, "\ufeff"), wide(binary.BigEndian, "\ufeff"), wide(binary.LittleEndian, ""), wide(binary.BigEndian, "")} {
		if _, err := Parse("f", "a spec", b); err == nil || err.Error() != "f: the file is in UTF-16; save it as UTF-8" {
			t.Error(err)
		}
	}
}

// TestDataFiles: a file of data that reads as YAML is not quoted.
func TestDataFiles(t *testing.T) {
	for file, quoted := range map[string]bool{"people.csv": false, "people.txt": false, "spec.yaml": true} {
		d, err := Parse(file, "a spec", []byte("SECRET: 1\nname: SECRET\n"))
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Epsilon float64 `yaml:"epsilon"`
		}
		if err := d.Root().Decode(&v); err == nil || strings.Contains(err.Error(), "SECRET") != quoted {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestOutOfRange: a number that a float64 or a whole number cannot hold is told from a text that is no number.
func TestOutOfRange(t *testing.T) {
	for text, want := range map[string]string{
		"1e400": "is beyond", "-1e400": "is beyond", "1e-400": "is nearer to 0", "-1e-400": "is nearer to 0", "0.0001e-330": "is nearer to 0", "1E-400": "is nearer to 0",
		"0": "", "0.0": "", "-0e5": "", "0e-400": "", "1e-300": "", "5e-324": "", "1e308": "", "1x": "", "": "", "nan": "", "inf": "",
	} {
		if got := OutOfRange(text); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for text, want := range map[string]string{"99999999999999999999": "is beyond", "-99999999999999999999": "is beyond", "101": "is beyond", "100": "", "1x": "", "1.5": "", "": "", "-": ""} {
		if got := WholeOutOfRange(text, 100); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"number: 1e400":               `1:9: number: "1e400" is beyond the range of numbers, which ends at 1.8e308`,
		"number: 1e-400":              `1:9: number: "1e-400" is nearer to 0 than 5e-324, the least number above it; write 0 if you mean 0`,
		"numbers: [1, 1e400]":         `numbers[1]: "1e400" is beyond the range of numbers`,
		"whole: 99999999999999999999": `1:8: whole: "99999999999999999999" is beyond the range of whole numbers here, which ends at 9007199254740992`,
		"seed: 99999999999999999999":  `1:7: seed: "99999999999999999999" is beyond the range of whole numbers here, which ends at 18446744073709551615`,
	} {
		var f struct {
			Number  float64   `yaml:"number"`
			Numbers []float64 `yaml:"numbers"`
			Whole   int       `yaml:"whole"`
			Seed    uint64    `yaml:"seed"`
		}
		doc, err := Parse("s.yaml", "a spec", []byte(text))
		if err == nil {
			err = doc.Root().Decode(&f)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
