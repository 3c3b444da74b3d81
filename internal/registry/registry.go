// Package registry holds what programs of other modules can add to: named values that a spec chooses from, and
// formats that are tried in turn.
package registry

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Registry lists entries by name, in the order of the documentation. It is for registration before
// main and for reading afterward.
type Registry[E any] struct {
	kind   string // the package, for what a programmer reads
	of     func(E) (name string, method any)
	inTurn bool

	mu   sync.Mutex
	all  []E
	used bool // was read, so that nothing can be added any more
}

// New makes a registry of entries that a spec names. of names an entry and gives its method.
func New[E any](kind string, of func(E) (name string, method any), all ...E) *Registry[E] {
	return &Registry[E]{kind: kind, of: of, all: all}
}

// InTurn makes a registry of entries that are tried one after the other. Their names are phrases for messages, and
// entries can be added at any time.
func InTurn[E any](kind string, name func(E) string, all ...E) *Registry[E] {
	r := New(kind, func(e E) (string, any) { return name(e), e }, all...)
	r.inTurn = true
	return r
}

var allowed = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Register adds an entry. It panics if the name is taken or not in lower case, if the method is not a
// struct, and once the registry was read: what came later would be missing from help texts and checks.
func (r *Registry[E]) Register(e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, method := r.of(e)
	_, taken := r.find(name)
	switch {
	case r.used && !r.inTurn:
		panic(r.kind + ": Register(" + name + ") after the registry was read; register before anything else")
	case !allowed.MatchString(name) && !r.inTurn:
		panic(fmt.Sprintf("%s: Register(%q): a name has lower-case letters, digits and hyphens", r.kind, name))
	case taken:
		panic(r.kind + ": Register(" + name + "): the name is taken")
	case method == nil || reflect.TypeOf(method).Kind() != reflect.Struct:
		panic(r.kind + ": Register(" + name + "): the method is not a struct")
	}
	r.all = append(r.all, e)
}

// All lists the entries.
func (r *Registry[E]) All() []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = true
	return slices.Clone(r.all)
}

// Added are the entries so far; more can be added.
func (r *Registry[E]) Added() []E { return slices.Clone(r.all) }

// Lookup finds an entry by its name.
func (r *Registry[E]) Lookup(name string) (E, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = true
	e, ok := r.find(name)
	if ok {
		return e, nil
	}
	names := make([]string, len(r.all))
	for i, e := range r.all {
		names[i], _ = r.of(e)
	}
	return e, fmt.Errorf("unknown %s %q; choose %s", r.kind, name, strings.Join(names, ", "))
}

func (r *Registry[E]) find(name string) (found E, ok bool) {
	for _, e := range r.all {
		if n, _ := r.of(e); n == name {
			return e, true
		}
	}
	return found, false
}
