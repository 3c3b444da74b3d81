package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema"
)

// fuzzRead puts the marker into a file at some place, reads it, and wants no
// panic and no marker in an error.
func fuzzRead(t *testing.T, dir string, s *schema.Schema, content []byte, at uint, drop bool) {
	const marker = "Zq7Zq"
	i := int(at % uint(len(content)+1))
	text := string(content[:i]) + marker + string(content[i:])
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := *s
	if drop {
		c.OnBadRow = schema.BadRowDrop
	}
	for _, opt := range []Options{{}, {Unlabeled: true, KeepBad: true}, {ByRow: true}} {
		tab, _, err := readTable(context.Background(), admit(), &c, path, opt)
		if err != nil {
			if !errors.As(err, new(*config.Error)) || strings.Contains(err.Error(), marker) {
				t.Fatalf("%v", err)
			}
			continue
		}
		checkTable(t, tab)
		if tab.units != nil && (groupRows(tab, tab.units.of) == nil || tab.MostUnitRows() > s.UnitRows) {
			t.Fatal("units that do not fit the rows")
		}
	}
}

func FuzzCSV(f *testing.F) {
	s := mustParse(f, small)
	noHeader := mustParse(f, strings.Replace(small, "{", `{header: false, trim: true, comment: "|",`, 1))
	marked := mustParse(f, strings.Replace(small, "{", `{delimiter: ";", decimal: ",", thousands: ".",`, 1))
	dir := f.TempDir()
	for _, c := range badFiles {
		if len(c.content) < 1000 && c.schema != svm {
			f.Add([]byte(c.content), uint(len(c.content)-1), false, true, false)
			f.Add([]byte(c.content), uint(30), true, false, false)
		}
	}
	f.Add([]byte("age;colour;id;gain;sick\n1,5;1,0;1.234.567;1.234,5e-1;no\n-,5;red;x;+1.234;yes.\n"), uint(70), false, true, true)
	f.Add([]byte("age;colour;id;gain;sick\n1.5;red;;12.34;no\n1,2,3;red;;1.234.56;no\n"), uint(24), true, true, true)
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop, header, marks bool) {
		sch := noHeader
		switch {
		case marks:
			sch = marked
		case header:
			sch = s
		}
		fuzzRead(t, dir, sch, content, at, drop)
	})
}

// FuzzUnits: the same of a table with units, whose rows are never another's.
func FuzzUnits(f *testing.F) {
	s := mustParse(f, visits)
	dir := f.TempDir()
	f.Add([]byte(visitsFile(visitRows(30))), uint(40), false)
	f.Add([]byte("patient_id,who,age,sick\n,1,2,no\n\"a\",1,2,no\na,1,2\n"), uint(26), true)
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop bool) { fuzzRead(t, dir, s, content, at, drop) })
}

func FuzzLIBSVM(f *testing.F) {
	s := mustParse(f, svm)
	dir := f.TempDir()
	for _, c := range badFiles {
		if c.schema == svm {
			f.Add([]byte(c.content), uint(len(c.content)), false)
		}
	}
	f.Add([]byte("+1 1:1 3:-2 5:0\n\n-1.0\t2:9e0 \r\n1\n"), uint(2), true)
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop bool) { fuzzRead(t, dir, s, content, at, drop) })
}
