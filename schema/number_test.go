package schema

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema/schematest"
)

// TestNotation: cells in a notation are the numbers that they are without its marks, and others are none.
func TestNotation(t *testing.T) {
	for _, c := range []struct {
		format Format
		cells  map[string]string // "": no number
	}{
		{Format{Decimal: ","}, map[string]string{
			"1,5": "1.5", "-0,25": "-0.25", "+7": "+7", ",5": ".5", "5,": "5.", "1,5e-3": "1.5e-3", "2E6": "2E6", "12": "12",
			"": "", "-": "", ",": "", "1.5": "", "1,2,3": "", "1.234,5": "", "1e": "", "1e+": "", "1e+-2": "", "1ee2": "", "1,5 ": "", " 1,5": "", "x": "", "NaN": "", "--1": "",
		}},
		{Format{Decimal: ",", Thousands: "."}, map[string]string{
			"1.234,5": "1234.5", "1.234.567": "1234567", "-12.345": "-12345", "12.34.567,8": "1234567.8", "1234,5": "1234.5", "999": "999",
			"1.5": "", "1.23": "", "1234.567": "", "1.234.56": "", "1.234.5678": "", ".234": "", "1..234": "", "31.12.2024": "", "1,234.5": "", "1.234,": "1234.",
		}},
		{Format{Thousands: ","}, map[string]string{"1,234.5": "1234.5", "1,23,456": "123456", "1,5": "", "12,34": "", "1.5": "1.5", "1,234,": ""}},
		{Format{Thousands: " "}, map[string]string{"1 234.5": "1234.5", "1\u00a0234\u00a0567": "1234567", "1\u202f234": "1234", "1 234\u00a0567": "", "1 2": ""}},
		{Format{Decimal: ",", Thousands: "'"}, map[string]string{"1'234,5": "1234.5", "1’234": "1234", "1.5": ""}},
		{Format{Thousands: "_"}, map[string]string{"1_234": "1234", "_234": "", "1__234": ""}},
	} {
		n := c.format.Notation()
		for cell, want := range c.cells {
			plain, ok := n.Plain([]byte("x"), cell)
			if string(plain) != "x"+want || ok != (want != "") {
				t.Errorf("%+v: %q is %q, %t; want %q", c.format, cell, plain, ok, want)
			}
			v, fault := n.Parse(cell)
			if right, _ := config.ParseNumber(want); (fault == "") != ok || v != right {
				t.Errorf("%+v: %q is the number %v (%s), want %v", c.format, cell, v, fault, right)
			}
		}
	}
	if (&Format{}).Notation() != nil {
		t.Error("the usual notation is not nil")
	}
}

// FuzzNotation: what is a number in a notation is one without its marks, of the same digits, and a number that package strconv writes is
// read back.
func FuzzNotation(f *testing.F) {
	f.Add("1.234,5e-7", 1.5)
	f.Add("12 345", -1e300)
	f.Add("1’234", 0.0)
	f.Fuzz(func(t *testing.T, cell string, v float64) {
		for _, format := range []Format{{Decimal: ","}, {Thousands: ","}, {Decimal: ",", Thousands: "."}, {Decimal: ",", Thousands: " "}, {Thousands: "'"}} {
			n := format.Notation()
			plain, ok := n.Plain(nil, cell)
			if !ok {
				if _, fault := n.Parse(cell); fault == "" || strings.Contains(fault, cell) && len(cell) > 30 {
					t.Fatalf("%q is no number, and its fault is %q", cell, fault)
				}
				continue
			}
			if _, fault := config.ParseNumber(string(plain)); fault != "" && fault != "a number too large to hold" {
				t.Fatalf("%q is %q: %s", cell, plain, fault)
			}
			only := func(s string) string {
				return strings.Map(func(r rune) rune {
					if r < '0' || r > '9' {
						return -1
					}
					return r
				}, s)
			}
			if only(cell) != only(string(plain)) {
				t.Fatalf("%q has other digits than %q", plain, cell)
			}
			if v-v == 0 {
				if got, fault := n.Parse(n.Write(strconv.FormatFloat(v, 'g', -1, 64))); fault != "" || got != v {
					t.Fatalf("%v is read back as %v: %s", v, got, fault)
				}
			}
		}
	})
}

// TestNotationFields: marks that are none, or one for two things, are refused where they stand.
func TestNotationFields(t *testing.T) {
	for fields, want := range map[string]string{
		`decimal: ";"`:                  `s:3:19: format.decimal: found ";"; write "." or ","`,
		`thousands: x`:                  `s:3:21: format.thousands: found "x"; write ",", ".", " ", "'" or "_"`,
		`thousands: ""`:                 `s:3:21: format.thousands: found ""; write`,
		`thousands: "."`:                `s:3:21: format.thousands: found ".", the decimal mark; `,
		`decimal: ",", thousands: ","`:  `s:3:35: format.thousands: found ",", the decimal mark; `,
		`decimal: ".", thousands: "."`:  `s:3:35: format.thousands: found ".", the decimal mark; `,
		`kind: libsvm, decimal: ","`:    `s:3:33: format.decimal: found a field for csv; expected no decimal, since kind is libsvm`,
		`decimal: ",", thousands: "."`:  "",
		`decimal: ".", thousands: "'"`:  "",
		`decimal: ",", delimiter: ";"`:  "",
		`thousands: ",", delimiter: ""`: `s:3:37: format.delimiter: found ""`,
	} {
		_, err := Parse("s", []byte(strings.Replace(schematest.Small, `format: {missing: ["", "?"]}`, "format: {"+fields+"}", 1)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %s", fields, err, want)
		}
	}
	s, err := Parse("s", []byte(strings.Replace(schematest.Small, "{", `{decimal: ".", `, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := s.Marshal(); strings.Contains(string(b), "decimal") || strings.Contains(string(b), "thousands") {
		t.Errorf("the usual notation is in the JSON, which changes hashes of earlier schemas: %s", b)
	}
}
