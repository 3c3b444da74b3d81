// Package leaves edits a JSON file at every position in turn, so that a test sees which edits a check finds.
package leaves

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leaf is a position in a JSON value: keys of objects and numbers of elements.
type leaf []any

func (l leaf) String() string {
	text := ""
	for _, k := range l {
		if key, ok := k.(string); ok {
			text += "." + key
		} else {
			text += "[]"
		}
	}
	return strings.TrimPrefix(text, ".")
}

// places lists every position in a JSON value, also objects and lists.
func places(v any, at leaf) (all []leaf) {
	if len(at) > 0 {
		all = append(all, slices.Clone(at))
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, places(v[k], append(at, k))...)
		}
	case []any:
		for i := range v {
			all = append(all, places(v[i], append(at, i))...)
		}
	}
	return all
}

// edit puts another value at a position, or deletes it. It returns false for an object or a list, whose elements are
// edited instead.
func edit(v any, at leaf, remove bool) (any, bool) {
	if len(at) == 0 {
		switch v := v.(type) {
		case string:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				return at.Add(time.Millisecond), true
			}
			return v + "x", true
		case bool:
			return !v, true
		case json.Number:
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return n + 1, true
			}
			x, _ := v.Float64()
			return x * 1.0001, true
		case nil:
			return 1, true
		}
		return v, false
	}
	changed := true
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		key := at[0].(string)
		if remove && len(at) == 1 {
			delete(v, key)
		} else {
			v[key], changed = edit(v[key], at[1:], remove)
		}
		return v, changed
	case []any:
		v = slices.Clone(v)
		i := at[0].(int)
		if remove && len(at) == 1 {
			return slices.Delete(v, i, i+1), true
		}
		v[i], changed = edit(v[i], at[1:], remove)
		return v, changed
	}
	panic("no such place")
}

// EditAll edits the JSON file at path at every place in turn: it changes each leaf, and deletes each place. check says
// whether all findings hold, with a ledger or without one. Each edit must break a finding with a ledger, unless none
// has settled the run; without one only the places of free may pass, each with its reason, and each of them must.
func EditAll(t *testing.T, path string, settled bool, check func(ledger bool) bool, free map[string]string) {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(path, before, 0o600)
	if !check(false) || settled && !check(true) {
		t.Fatal("the file does not hold before it is edited")
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(before))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	used, edits, passed := map[string]bool{}, 0, 0
	for _, at := range places(tree, nil) {
		for _, remove := range []bool{false, true} {
			other, changed := edit(tree, at, remove)
			if !changed {
				continue
			}
			b, err := json.Marshal(other)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			edits++
			if !check(false) {
				continue // with a ledger there are only more findings
			}
			passed++
			if settled && check(true) {
				t.Errorf("%v (deleted: %v): passes with a ledger", at, remove)
			}
			name := at.String()
			if free[name] == "" {
				t.Errorf("%v (deleted: %v): passes without a ledger", name, remove)
			}
			used[name] = true
		}
	}
	t.Logf("%d edits, %d pass without a ledger, at %v", edits, passed, slices.Sorted(maps.Keys(used)))
	for name := range free {
		if !used[name] {
			t.Errorf("%s: follows from a file; take it off the list", name)
		}
	}
}
