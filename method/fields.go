package method

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
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
					s.field.Tag = reflect.StructTag(fmt.Sprintf("yaml:%q json:%q doc:%q", s.field.Tag.Get("yaml"),
						s.field.Tag.Get("json"), doc))
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
	Free            bool // a number whose 0 means that the method chooses it, so 0 is never written
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
		out = append(out,
			Field{f.Tag.Get("yaml"), f.Type.String(), doc,
				number && chosen.MatchString(doc) && !strings.Contains(doc, "0 means")})
	}
	return out
}

// An Interval holds the values that a number may have, beside 0 for one that is left free.
type Interval struct {
	Least, Most float64
	Open        bool // below Most, not up to it
}

// What Sotto computes with is far inside the range of its numbers.
const (
	minClip, maxClip = 1e-100, 1e100
	maxNoise         = 1e6
)

// Usual intervals.
var (
	Positive = Interval{0, math.Inf(1), true}
	Fraction = Interval{0, 1, true}
	clipping = Interval{minClip, maxClip, false}
	noises   = Interval{0, maxNoise, false}
)

func (in Interval) String() string {
	switch {
	case in.Least > 0:
		return fmt.Sprintf("a number from %g to %g", in.Least, in.Most)
	case math.IsInf(in.Most, 1):
		return "a number above 0"
	case in.Open:
		return fmt.Sprintf("a number above 0 and below %v", in.Most)
	}
	return fmt.Sprintf("a number above 0 and up to %v", in.Most)
}

// A Setting is one field of a configuration: what it may be, and its default where it is left free.
// Gradient.ConfigureSteps takes them. They are Number, Count and Word.
type Setting interface {
	check() error // says what is wrong with a value that a person set
	fill() error  // sets the default
}

// A Number is a Setting of a number.
type Number struct {
	Name  string
	Value *float64
	In    Interval
	Free  float64 // the default. 0: none; NaN and Inf: the model has no bound from which it would follow
}

// A Count is a Setting of a whole number.
type Count struct {
	Name  string
	Value *int
	Most  int // 0: no limit
	Free  int
}

// A Word is a Setting of one of several words, of which the first is the default.
type Word struct {
	Name    string
	Value   *string
	Allowed []string
}

func (n Number) check() error {
	v := *n.Value
	if v == 0 || v >= n.In.Least && v > 0 && (v < n.In.Most || v == n.In.Most && !n.In.Open) {
		return nil
	}
	return fmt.Errorf("%s: found %v; choose %v", n.Name, v, n.In)
}

func (c Count) check() error {
	switch {
	case c.Most > 0 && (*c.Value < 0 || *c.Value > c.Most):
		return fmt.Errorf("%s: found %d; write a whole number from 1 to %d", c.Name, *c.Value, c.Most)
	case *c.Value < 0:
		return fmt.Errorf("%s: found %d; write a whole number of 1 or more", c.Name, *c.Value)
	}
	return nil
}

func (w Word) check() error {
	if *w.Value == "" || slices.Contains(w.Allowed, *w.Value) {
		return nil
	}
	return fmt.Errorf("%s: found %q; choose %s", w.Name, *w.Value, strings.Join(w.Allowed, ", "))
}

func (n Number) fill() error {
	if *n.Value != 0 || n.Free == 0 {
		return nil
	}
	if !(n.Free > 0) || math.IsInf(n.Free, 1) {
		return fmt.Errorf("%s: found none, and the model has no bound on its gradient or curvature from which it would follow; set method.%s", n.Name, n.Name)
	}
	*n.Value = n.Free
	return nil
}

func (c Count) fill() error {
	*c.Value = cmp.Or(*c.Value, c.Free)
	return nil
}

func (w Word) fill() error {
	*w.Value = cmp.Or(*w.Value, w.Allowed[0])
	return nil
}

// check checks all settings.
func check(settings ...Setting) error {
	for _, s := range settings {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

// configure checks all settings, and then sets those that were left free.
func configure(settings ...Setting) error {
	if err := check(settings...); err != nil {
		return err
	}
	for _, s := range settings {
		if err := s.fill(); err != nil {
			return err
		}
	}
	return nil
}

// unused refuses a field of m's Gradient that m's type does not list: the method does not read it.
func unused(m any) error {
	v := reflect.ValueOf(m)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type != gradientType || f.Tag == "" {
			continue
		}
		for j := range gradientType.NumField() {
			name, value := gradientType.Field(j).Tag.Get("yaml"), v.Field(i).Field(j)
			if _, listed := f.Tag.Lookup(name); !listed && name != "-" && !value.IsZero() {
				return fmt.Errorf("%s: found %v; this method does not use it: leave it out", name, value)
			}
		}
	}
	return nil
}

// known is a public bound, NaN where there is none.
func known(bound float64) float64 {
	if !(bound > 0) || math.IsInf(bound, 1) {
		return math.NaN()
	}
	return bound
}
