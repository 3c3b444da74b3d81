package runlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differing returns the paths at which two JSON objects differ. Only fields of different bytes are
// decoded: a plan can hold a hundred thousand events, which take thirty times their size when decoded.
func Differing(a, b []byte) ([]string, error) {
	var fields [2]map[string]json.RawMessage
	var rest [2]any
	for i, text := range [][]byte{a, b} {
		if err := json.Unmarshal(text, &fields[i]); err != nil {
			return nil, err
		}
	}
	for key, x := range fields[0] {
		if y, ok := fields[1][key]; ok && bytes.Equal(Compact(x), Compact(y)) {
			delete(fields[0], key)
			delete(fields[1], key)
		}
	}
	for i := range fields {
		tree := map[string]any{}
		for key, text := range fields[i] {
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.UseNumber()
			var value any
			if err := dec.Decode(&value); err != nil {
				return nil, err
			}
			tree[key] = value
		}
		rest[i] = tree
	}
	return differences(nil, "", rest[0], rest[1]), nil
}

// Compact is a JSON text without spaces; what is no JSON stays as it is.
func Compact(b []byte) []byte {
	var c bytes.Buffer
	if json.Compact(&c, b) != nil {
		return b
	}
	return c.Bytes()
}

// Some names the first of some differences, sorted, and counts the others.
func Some(list []string) string {
	const most = 8
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if more := len(list) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), more)
	}
	return strings.Join(list, ", ")
}

// differences are the paths at which two decoded JSON values differ.
func differences(list []string, path string, a, b any) []string {
	x, object := a.(map[string]any)
	y, also := b.(map[string]any)
	if object && also {
		all := maps.Clone(x)
		maps.Copy(all, y)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			_, left := x[key]
			if _, right := y[key]; left != right {
				list = append(list, at)
				continue
			}
			list = differences(list, at, x[key], y[key])
		}
		return list
	}
	v, array := a.([]any)
	w, also := b.([]any)
	if array && also && len(v) == len(w) {
		for i := range v {
			list = differences(list, fmt.Sprintf("%s[%d]", path, i), v[i], w[i])
		}
		return list
	}
	if !reflect.DeepEqual(a, b) {
		list = append(list, path)
	}
	return list
}
