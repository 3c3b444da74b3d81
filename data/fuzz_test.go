package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzSchema(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(svm))
	f.Add([]byte(bankSchema))
	f.Add([]byte(pictures))
	f.Add([]byte(visits))
	f.Add([]byte("dataset: &a [*a]\n"))
	f.Add([]byte("columns: [{name: y, type: label, classes: [a, b]}]\n<<: {a: 1}\n? x\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := ParseSchema("f", src)
		if err != nil {
			if !errors.As(err, new(*Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		b, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := SchemaFromJSON(b)
		if err != nil || back.Fingerprint() != s.Fingerprint() {
			t.Fatalf("JSON: %v", err)
		}
		if s.Dim() < 1<<16 && len(s.FeatureNames()) != s.Dim() {
			t.Fatal("feature names")
		}
		s.Assumptions()
	})
}

// fuzzRead puts the marker into a file at some place, reads it, and wants no
// panic and no marker in an error.
func fuzzRead(t *testing.T, dir string, s *Schema, content []byte, at uint, drop bool) {
	const marker = "Zq7Zq"
	i := int(at % uint(len(content)+1))
	text := string(content[:i]) + marker + string(content[i:])
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := *s
	if drop {
		c.OnBadRow = BadRowDrop
	}
	for _, opt := range []Options{{}, {Unlabelled: true, KeepBad: true}, {ByRow: true}} {
		tab, _, err := Read(context.Background(), admit(), &c, path, opt)
		if err != nil {
			header := c.Format.Header && strings.Contains(err.Error(), "a column that the schema does not name")
			if !errors.As(err, new(*Error)) || !header && strings.Contains(err.Error(), marker) {
				t.Fatalf("%v", err)
			}
			continue
		}
		checkTable(t, tab)
		if tab.units != nil && (groupRows(tab, tab.units.of) == nil || tab.units.most() > s.UnitRows) {
			t.Fatal("units that do not fit the rows")
		}
	}
}

func FuzzCSV(f *testing.F) {
	s := mustParse(f, small)
	noHeader := mustParse(f, strings.Replace(small, "{", `{header: false, trim: true, comment: "|",`, 1))
	dir := f.TempDir()
	for _, c := range badFiles {
		if len(c.content) < 1000 && c.schema != svm {
			f.Add([]byte(c.content), uint(len(c.content)-1), false, true)
			f.Add([]byte(c.content), uint(30), true, false)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, at uint, drop, header bool) {
		schema := noHeader
		if header {
			schema = s
		}
		fuzzRead(t, dir, schema, content, at, drop)
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
