package data

import "testing"

// Tables that are summed in the same way have the same order, whatever their files look like; any other has another. The hash of a raw row
// takes 02139 and 2139 for one number, and a row that cannot be split has none.
func TestOrder(t *testing.T) {
	s := mustParse(t, `
dataset: places
units: 10
unit: {name: person, rows: 2}
on_bad_row: drop
columns:
  - {name: id, type: unit}
  - {name: zip, type: categorical, levels: ["02139", "10001"], unknown: "10001"}
  - {name: age, type: numeric, min: 0, max: 100}
  - {name: sick, type: label, classes: [no, yes]}
`)
	const whole = "id,zip,age,sick\n7,02139,30,yes\n8,10001,40,no\n7,10001,50,no\n"
	order := func(content string, keep bool) [32]byte {
		table, _ := mustRead(t, s, content, Options{KeepBad: keep, IDKey: []byte("a key")})
		defer table.Close()
		return Order(table)
	}
	want := order(whole, false)
	for name, c := range map[string]struct {
		content string
		same    bool
	}{
		"numbers in another form":  {"id,zip,age,sick\n7,02139,30.0,yes\n8,10001,4e1,no\n7,10001,50,no\n", true},
		"columns in another order": {"sick,age,zip,id\nyes,30,02139,7\nno,40,10001,8\nno,50,10001,7\n", true},
		"without a zero":           {"id,zip,age,sick\n7,2139,30,yes\n8,10001,40,no\n7,10001,50,no\n", false},
		"another's id":             {"id,zip,age,sick\n7,02139,30,yes\n8,10001,40,no\n07,10001,50,no\n", false},
		"another label":            {"id,zip,age,sick\n7,02139,30,yes\n8,10001,40,no\n7,10001,50,yes\n", false},
		"another order":            {"id,zip,age,sick\n8,10001,40,no\n7,02139,30,yes\n7,10001,50,no\n", false},
		"a row less":               {"id,zip,age,sick\n7,02139,30,yes\n8,10001,40,no\n", false},
	} {
		if got := order(c.content, false); (got == want) != c.same {
			t.Errorf("%s: the same order: %v; want %v", name, !c.same, c.same)
		}
	}
	if order(whole+"9,02139\n", true) == order("id,zip,age,sick\n9,02139\n7,02139,30,yes\n8,10001,40,no\n7,10001,50,no\n", true) {
		t.Error("a bad row that keeps its place at another place: the same order")
	}
}
