package runlog

import (
	"strings"
	"testing"
)

// The canonical form of run.json leaves out how it was written, and nothing of what it says.
func TestCanonical(t *testing.T) {
	a, err := Canonical([]byte("{\"b\": [1, 2.50],\n \"a\": {\"y\": null, \"x\": \"é<\"}}"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":{"x":"é\u003c","y":null},"b":[1,2.50]}`; string(a) != want {
		t.Errorf("found %s; want %s", a, want)
	}
	for _, same := range []string{`{"a":{"x":"é\u003c","y":null},"b":[1,2.50]}`, ` {"a":{"y":null,"x":"é<"},"b":[1,2.50]} `} {
		if b, err := Canonical([]byte(same)); err != nil || string(b) != string(a) {
			t.Errorf("%s: found %s, %v", same, b, err)
		}
	}
	for _, other := range []string{`{"a":{"x":"é<"},"b":[1,2.50]}`, `{"a":{"x":"é<","y":null},"b":[1,2.5]}`, `{"a":{"x":"é<","y":null},"b":[2.50,1]}`} {
		if b, err := Canonical([]byte(other)); err != nil || string(b) == string(a) {
			t.Errorf("%s: found the same, %v", other, err)
		}
	}
	for _, bad := range []string{"", "{", "{} {}", "{}x", strings.Repeat("[", 1<<20)} {
		if b, err := Canonical([]byte(bad)); err == nil {
			t.Errorf("%.9q: found %s", bad, b)
		}
	}
}

// C1: a field that stands twice in an object has no canonical form: readers may merge the two.
func TestC1RepeatedFields(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}],"d":"a"}`: true,
		`{"a":["a","a"],"b":"b"}`:                           true,
		`{"result":{"owners":7},"result":{"steps":3}}`:      false,
		`{"a":{"b":1,"c":[],"b":2}}`:                        false,
		`[{"x":1,"x":1}]`:                                   false,
	} {
		if _, err := Canonical([]byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
