package method

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// A slot is one field of a method's configuration as files write it: where the method's struct
// holds it, and the field itself.
type slot struct {
	index []int
	field reflect.StructField
}

var gradientType = reflect.TypeFor[Gradient]()

// slots lists the fields of a method's struct in the order in which files write them. Those of an
// embedded struct and of a Gradient stand in its place. The tag of a Gradient names the fields of it
// that can be set, each with its description; without a tag all of them can be set. What Configure
// notes in a Gradient (fields that no spec names) stands behind a schedule, where files have it.
func slots(t reflect.Type) []slot {
	var all, derived []slot
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Type == gradientType:
			for _, s := range slots(gradientType) {
				doc, named := f.Tag.Lookup(s.field.Tag.Get("yaml"))
				s.index = append([]int{i}, s.index...)
				switch {
				case s.field.Tag.Get("yaml") == "-":
					derived = append(derived, s)
				case named:
					s.field.Tag = reflect.StructTag(fmt.Sprintf("yaml:%q json:%q doc:%q", s.field.Tag.Get("yaml"), s.field.Tag.Get("json"), doc))
					all = append(all, s)
				case f.Tag == "":
					all = append(all, s)
				}
			}
		case f.Anonymous:
			for _, s := range slots(f.Type) {
				s.index = append([]int{i}, s.index...)
				all = append(all, s)
			}
		case f.IsExported():
			all = append(all, slot{[]int{i}, f})
		}
		if next := i + 1; next == t.NumField() || t.Field(next).Name != "Schedule" {
			all, derived = append(all, derived...), nil
		}
	}
	return all
}

// flat is a struct whose fields are those slots: encoders and decoders of files see this one.
func flat(all []slot) reflect.Value {
	fields := make([]reflect.StructField, len(all))
	for i, s := range all {
		fields[i] = reflect.StructField{Name: s.field.Name, Type: s.field.Type, Tag: s.field.Tag}
	}
	return reflect.New(reflect.StructOf(fields))
}

// value is the field of that name in files, nil where there is none.
func value(m Method, name string) any {
	for _, s := range slots(reflect.TypeOf(m)) {
		if s.field.Tag.Get("yaml") == name {
			return reflect.ValueOf(m).FieldByIndex(s.index).Interface()
		}
	}
	return nil
}

// Encode writes a method's configuration as JSON: the form in run.json and model.json.
func Encode(m Method) ([]byte, error) {
	from := reflect.ValueOf(m)
	all := slots(from.Type())
	to := flat(all)
	for i, s := range all {
		to.Elem().Field(i).Set(from.FieldByIndex(s.index))
	}
	return json.Marshal(to.Interface())
}

// DecodeBy reads a method of e's type with a strict decoder of another form, which gets a pointer to a
// struct with yaml and json tags.
func (e Entry) DecodeBy(decode func(any) error) (Method, error) {
	to := reflect.New(reflect.TypeOf(e.Method)).Elem()
	all := slots(to.Type())
	from := flat(all)
	if err := decode(from.Interface()); err != nil {
		return nil, err
	}
	for i, s := range all {
		to.FieldByIndex(s.index).Set(from.Elem().Field(i))
	}
	return to.Interface().(Method), nil
}

// Decode reads a method of e's type from its JSON, strictly.
func (e Entry) Decode(config []byte) (Method, error) {
	m, err := e.DecodeBy(func(v any) error {
		dec := json.NewDecoder(bytes.NewReader(config))
		dec.DisallowUnknownFields()
		return dec.Decode(v)
	})
	if err != nil {
		return nil, fmt.Errorf("method %s: %w", e.Name, err)
	}
	return m, nil
}

// A Field is one configuration field of a method, for help texts.
type Field struct {
	Name, Type, Doc string
	Free            bool // a number whose 0 means that the method chooses it, so that nobody writes 0
}

// Fields lists what can be set in e's method.
func (e Entry) Fields() []Field {
	var out []Field
	for _, s := range slots(reflect.TypeOf(e.Method)) {
		f := s.field
		if f.Tag.Get("yaml") == "-" {
			continue
		}
		doc := f.Tag.Get("doc")
		number := f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Float64
		out = append(out, Field{f.Tag.Get("yaml"), f.Type.String(), doc, number && chosen.MatchString(doc) && !strings.Contains(doc, "0 means")})
	}
	return out
}

// An interval holds the values that a number may have, beside 0 for one that is left free.
type interval struct {
	least, most float64
	open        bool // below most, not up to it
}

// What Sotto computes with is far inside the range of its numbers.
const (
	minClip, maxClip = 1e-100, 1e100
	maxNoise         = 1e6
)

var (
	positive = interval{0, math.Inf(1), true}
	fraction = interval{0, 1, true}
	clipping = interval{minClip, maxClip, false}
	noises   = interval{0, maxNoise, false}
)

func (in interval) String() string {
	switch {
	case in.least > 0:
		return fmt.Sprintf("any number from %g to %g", in.least, in.most)
	case math.IsInf(in.most, 1):
		return "any number above 0"
	case in.open:
		return fmt.Sprintf("any number above 0 and below %v", in.most)
	}
	return fmt.Sprintf("any number above 0 and up to %v", in.most)
}

// A number is one field of a configuration: what it may be, and what it becomes where it is left free.
type number struct {
	name  string
	value *float64
	in    interval
	free  float64 // 0 leaves it; NaN and Inf say that the model has no bound from which it would follow
}

// A count is the same for a whole number; 0 as most is no limit.
type count struct {
	name  string
	value *int
	most  int
	free  int
}

// check says what is wrong with a field that a person set.
func (n number) check() error {
	v := *n.value
	if v == 0 || v >= n.in.least && v > 0 && (v < n.in.most || v == n.in.most && !n.in.open) {
		return nil
	}
	return fmt.Errorf("%s: found %v; allowed is %v", n.name, v, n.in)
}

func (c count) check() error {
	switch {
	case c.most > 0 && (*c.value < 0 || *c.value > c.most):
		return fmt.Errorf("%s: found %d; allowed is 1 to %d", c.name, *c.value, c.most)
	case *c.value < 0:
		return fmt.Errorf("%s: found %d; allowed is 1 or more", c.name, *c.value)
	}
	return nil
}

// fill sets a field that was left free.
func (n number) fill() error {
	if *n.value != 0 || n.free == 0 {
		return nil
	}
	if !(n.free > 0) || math.IsInf(n.free, 1) {
		return fmt.Errorf("%s: found none, and the model has no bound on its gradient or curvature from which it would follow; set method.%s", n.name, n.name)
	}
	*n.value = n.free
	return nil
}

func (c count) fill() error {
	if *c.value == 0 {
		*c.value = c.free
	}
	return nil
}

// A field is one of a configuration that can be checked and, where it is free, set.
type field interface {
	check() error
	fill() error
}

// configure checks all fields, and then sets those that were left free.
func configure(fields ...field) error {
	for _, f := range fields {
		if err := f.check(); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if err := f.fill(); err != nil {
			return err
		}
	}
	return nil
}

// over is c divided by a public bound, NaN where there is none.
func over(c, bound float64) float64 {
	if !(bound > 0) || math.IsInf(bound, 1) {
		return math.NaN()
	}
	return c / bound
}

// times is c times a public bound, NaN where there is none.
func times(c, bound float64) float64 {
	if !(bound > 0) || math.IsInf(bound, 1) {
		return math.NaN()
	}
	return c * bound
}
