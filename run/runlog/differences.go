package runlog

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences are the paths at which two decoded JSON values differ.
func Differences(a, b any) []string { return differences(nil, "", a, b) }

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
