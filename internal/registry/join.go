package registry

import (
	"reflect"
	"slices"
)

// Join is a pointer to a struct that encoders take for one with the fields of both, those of own after the field that
// is named. Where both have a field of that name, base's counts. own fields for which skip says so are left out.
func Join(base, own any, after string, skip func(reflect.StructField) bool) any {
	b, o := reflect.Indirect(reflect.ValueOf(base)), reflect.Indirect(reflect.ValueOf(own))
	at, fields := joined(b.Type(), o.Type(), after, skip)
	j := reflect.New(reflect.StructOf(fields)).Elem()
	for i, f := range fields {
		from := b
		if at[i] {
			from = o
		}
		j.Field(i).Set(from.FieldByName(f.Name))
	}
	return j.Addr().Interface()
}

// Part sets base and own, pointers, to what a struct that Join made has been decoded to.
func Part(join, base, own any, after string, skip func(reflect.StructField) bool) {
	b, o, j := reflect.ValueOf(base).Elem(), reflect.ValueOf(own).Elem(), reflect.ValueOf(join).Elem()
	at, fields := joined(b.Type(), o.Type(), after, skip)
	for i, f := range fields {
		to := b
		if at[i] {
			to = o
		}
		to.FieldByName(f.Name).Set(j.Field(i))
	}
}

// joined are the fields, and which are own's.
func joined(base, own reflect.Type, after string,
	skip func(reflect.StructField) bool) (isOwn []bool, fields []reflect.StructField) {
	has := func(name string) bool { _, ok := base.FieldByName(name); return ok }
	for _, f := range reflect.VisibleFields(base) {
		if f.IsExported() && f.Tag.Get("json") != "-" {
			isOwn, fields = append(isOwn, false), append(fields, f)
		}
		if f.Name != after {
			continue
		}
		for _, f := range reflect.VisibleFields(own) {
			if f.IsExported() && !has(f.Name) && (skip == nil || !skip(f)) {
				isOwn, fields = append(isOwn, true), append(fields, f)
			}
		}
	}
	for i := range fields {
		fields[i].Index, fields[i].Offset = nil, 0
	}
	return isOwn, slices.Clip(fields)
}
