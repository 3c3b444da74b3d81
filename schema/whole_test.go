package schema

import "testing"

// TestFindText: a cell is the same text, or else the same whole number; of two texts that are one number, only the same text counts.
func TestFindText(t *testing.T) {
	for _, c := range []struct {
		texts []string
		cells map[string]int // -1: not found
	}{
		{[]string{"1", "20", "-3", "0", "1000000"}, map[string]int{
			"1": 0, "1.": 0, "1.0": 0, "1.00": 0, "1e0": 0, "10e-1": 0, "20.0": 1, "2e1": 1, "-3.0": 2, "0.0": 3, "-0": 3, "-0.0": 3, "1e+06": 4, "1000000.0": 4,
			"01": -1, "+1": -1, "1.5": -1, " 1": -1, "1,0": -1, "00": -1, "": -1, "x": -1, "1x": -1, "0x1": -1, "--3": -1, "3": -1, ".0": -1, "NaN": -1, "1e999": -1,
		}},
		{[]string{"1.0", "007", "2.5", "1e3", "+4"}, map[string]int{
			"1": 0, "1.00": 0, "007": 1, "7": -1, "7.0": -1, "2.5": 2, "2.50": -1, "1000": 3, "1000.0": 3, "+4": 4, "4": -1,
		}},
		{[]string{"1", "1.0"}, map[string]int{"1": 0, "1.0": 1, "1.00": -1}},
		{[]string{"123456789012345", "1234567890123456"}, map[string]int{
			"123456789012345.0": 0, "1.23456789012345e+14": 0, "1234567890123456": 1, "1234567890123456.0": -1, "1.234567890123456e+15": -1,
		}},
		{[]string{"a", ""}, map[string]int{"a": 0, "": 1, "1": -1}},
	} {
		find := FindText(c.texts)
		for cell, want := range c.cells {
			if at, ok := find(cell); ok != (want >= 0) || ok && at != want {
				t.Errorf("%q: %q is %d, %t; want %d", c.texts, cell, at, ok, want)
			}
		}
	}
}

// TestWholeRules: what stands in for a cell may be written as cells are.
func TestWholeRules(t *testing.T) {
	s, err := Parse("", []byte(`dataset: d
columns:
  - {name: a, type: ordinal, levels: ["1", "2", "3"], unknown: "2.0", missing: "3.00"}
  - {name: b, type: boolean, missing: "1.0"}
  - {name: y, type: label, classes: ["0", "1", other]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.Columns[0].Form(), s.Columns[1].Form(); a.Unknown.Value != 1 || a.Missing.Value != 2 || b.Missing.Value != 1 {
		t.Errorf("%+v, %+v", a, b)
	}
}
