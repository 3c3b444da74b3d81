package schema

import (
	"errors"
	"testing"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/schema/schematest"
)

func FuzzSchema(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(svm))
	f.Add([]byte(schematest.Bank))
	f.Add([]byte(pictures))
	f.Add([]byte(schematest.Visits))
	f.Add([]byte("dataset: &a [*a]\n"))
	f.Add([]byte("columns: [{name: y, type: label, classes: [a, b]}]\n<<: {a: 1}\n? x\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Parse("f", src)
		if err != nil {
			if !errors.As(err, new(*config.Error)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		b, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := FromJSON(b)
		if err != nil || back.Fingerprint() != s.Fingerprint() {
			t.Fatalf("JSON: %v", err)
		}
		if s.Dim() < 1<<16 && len(s.FeatureNames()) != s.Dim() {
			t.Fatal("feature names")
		}
		s.Assumptions()
	})
}
