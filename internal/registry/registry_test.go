package registry

import (
	"fmt"
	"strings"
	"testing"
)

type entry struct {
	name   string
	method any
}

func of(e entry) (string, any) { return e.name, e.method }

// registered adds e and returns what Register panics with.
func registered(r *Registry[entry], e entry) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(p)
		}
	}()
	r.Register(e)
	return ""
}

// TestRegister: what each kind of registry takes, and the words in which it refuses others.
func TestRegister(t *testing.T) {
	first := entry{"first", struct{}{}}
	for _, c := range []struct {
		e             entry
		read          bool // before
		named, inTurn string
	}{
		{entry{"a-2", struct{}{}}, false, "", ""},
		{entry{"a file of Numbers", struct{}{}}, false, `Register("a file of Numbers"): a name has lower-case letters`, ""},
		{entry{"", struct{}{}}, false, `Register(""): a name has lower-case letters`, ""},
		{first, false, "Register(first): the name is taken", "Register(first): the name is taken"},
		{entry{"late", struct{}{}}, true, "Register(late) after the registry was read", ""},
		{entry{"none", nil}, false, "Register(none): the method is not a struct", ""}, // the entry itself is one
	} {
		for _, r := range []*Registry[entry]{
			New("thing", of, first), InTurn("thing", func(e entry) string { return e.name }, first),
		} {
			if c.read {
				r.All()
			}
			want := c.named
			if r.inTurn {
				want = c.inTurn
			}
			said, n := registered(r, c.e), len(r.All())
			if ok := want == "" && said == "" && n == 2 || want != "" && n == 1 && strings.HasPrefix(said, "thing: "+want); !ok {
				t.Errorf("%+v, in turn %v: %q, %d entries; want %q", c.e, r.inTurn, said, n, want)
			}
		}
	}
	r := New("thing", of, first)
	if _, err := r.Lookup("other"); err == nil || err.Error() != `unknown thing "other"; choose first` {
		t.Error(err)
	}
	if said := registered(r, entry{"late", struct{}{}}); said == "" {
		t.Error("an entry is added after a lookup")
	}
}
