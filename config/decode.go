package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A Node is a value of a document. A variable of this type takes any value, to be decoded later.
type Node struct {
	doc  *Document
	n    ast.Node
	path string
}

// A Decoder decodes a value by itself.
type Decoder interface{ DecodeConfig(n Node) error }

// Given says whether there is a value.
func (n Node) Given() bool { return n.n != nil }

// IsBlock says whether the value is a block of fields.
func (n Node) IsBlock() bool {
	_, ok := n.n.(*ast.MappingNode)
	return ok
}

// Text is the value as text; "" where it is a block, a list or nothing.
func (n Node) Text() string {
	text, _ := scalar(n.n)
	return text
}

// String is the value in YAML.
func (n Node) String() string { return n.n.String() }

// Fields are the fields of a block, in their order.
func (n Node) Fields() (names []string, values []Node) {
	if m, ok := n.n.(*ast.MappingNode); ok {
		for _, v := range m.Values {
			name, _ := scalar(v.Key)
			names = append(names, name)
			values = append(values, Node{n.doc, v.Value, join(n.path, name)})
		}
	}
	return names, values
}

// Field is the field of a block; not Given where it is not there.
func (n Node) Field(name string) Node {
	if m, ok := n.n.(*ast.MappingNode); ok {
		if v := field(m, name); v != nil {
			return Node{n.doc, v.Value, join(n.path, name)}
		}
	}
	return Node{}
}

// FieldAt is where the name of a field of the block stands, by its line and its character there, both from 1, and
// whether the block stands in braces.
func (n Node) FieldAt(name string) (line, column int, braces bool) {
	m, ok := n.n.(*ast.MappingNode)
	p, there := n.doc.at[join(n.path, name)]
	if !ok || !there || p.key == nil {
		return 0, 0, false
	}
	return p.key.Line, p.key.Column, m.IsFlowStyle
}

// Place is the position of the value.
func (n Node) Place() string { return n.doc.located(n.n.GetToken().Position).Place() }

// Wrong is the error of a value that is not allowed.
func (n Node) Wrong(allowed string) error {
	return n.doc.Fail(n.path, found(n.n), allowed)
}

// Decode reads the value into the variable that dst points to: text, a number, true or false, a
// [Decoder], a [Node], or a struct whose fields have yaml tags. Unknown fields of a block are
// errors, unless except names them. A single value decodes into a slice as a list of one, unless
// the field's tag says list. A field that is not written keeps its zero value: [Document.Has] tells
// the two apart.
func (n Node) Decode(dst any, except ...string) error {
	return n.decode(reflect.ValueOf(dst).Elem(), false, except...)
}

func (n Node) decode(v reflect.Value, list bool, except ...string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	text, _ := scalar(n.n)
	switch dst := v.Addr().Interface().(type) {
	case *Node:
		*dst = n
		return nil
	case Decoder:
		return dst.DecodeConfig(n)
	case encoding.TextUnmarshaler:
		if err := dst.UnmarshalText([]byte(text)); err != nil {
			block, _, _ := strings.Cut(n.path, ".")
			return n.doc.Locate(&Error{Field: n.path, Err: fmt.Errorf("%s.%w", block, err)})
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		if !n.IsBlock() {
			return n.Wrong("a block of fields")
		}
		return n.fields(v, except)
	case reflect.Slice:
		return n.elements(v, list)
	case reflect.String:
		if !isText(n.n) {
			return n.Wrong("text")
		}
		v.SetString(text)
	case reflect.Bool:
		b, ok := n.n.(*ast.BoolNode)
		if !ok {
			return n.Wrong("true or false")
		}
		v.SetBool(b.Value)
	case reflect.Float64, reflect.Int, reflect.Uint64:
		return n.number(v)
	default:
		return fmt.Errorf("config: a field of type %v cannot be decoded", v.Type())
	}
	return nil
}

// elements reads a list into a slice, or a single value as a list of one unless the field must be a list.
func (n Node) elements(v reflect.Value, list bool) error {
	nodes := []Node{n}
	if s, ok := n.n.(*ast.SequenceNode); ok {
		nodes = nodes[:0]
		for i, e := range s.Values {
			nodes = append(nodes, Node{n.doc, e, fmt.Sprintf("%s[%d]", n.path, i)})
		}
	} else if list {
		return n.Wrong("a list")
	}
	v.Set(reflect.MakeSlice(v.Type(), len(nodes), len(nodes)))
	for i, e := range nodes {
		if err := e.decode(v.Index(i), false); err != nil {
			return err
		}
	}
	return nil
}

// number reads a number into a field, whose kind says its range.
func (n Node) number(v reflect.Value) error {
	text, plain := scalar(n.n)
	beyond := "" // the range of the field
	switch v.Kind() {
	case reflect.Float64:
		beyond = OutOfRange(text)
	case reflect.Int:
		beyond = WholeOutOfRange(text, 1<<53)
	case reflect.Uint64:
		beyond = WholeOutOfRange(text, math.MaxUint64)
	}
	if plain && beyond != "" {
		return n.doc.Locate(&Error{Field: n.path, Err: errors.New(n.path + ": " + beyond)})
	}
	number, fault := ParseNumber(strings.ReplaceAll(text, "_", ""))
	isNumber := plain && fault == ""
	switch v.Kind() {
	case reflect.Float64:
		if !isNumber {
			return n.Wrong("a number")
		}
		v.SetFloat(number)
	case reflect.Int:
		if !isNumber || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
			return n.Wrong("a whole number")
		}
		v.SetInt(int64(number))
	case reflect.Uint64:
		u, err := strconv.ParseUint(text, 10, 64)
		if err != nil || !plain {
			return n.Wrong("a whole number from 0 to 18446744073709551615")
		}
		v.SetUint(u)
	}
	return nil
}

// fields reads a block into a struct.
func (n Node) fields(v reflect.Value, except []string) error {
	var names []string
	at := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(v.Type()) { // those of embedded structs, too
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
			at[name] = f
		}
	}
	skip := map[string]bool{}
	for _, name := range except {
		skip[name] = true
	}
	if n.path == n.doc.base {
		if err := n.doc.otherKind(); err != nil {
			return err
		}
	}
	given, values := n.Fields()
	for i, name := range given {
		if skip[name] {
			continue
		}
		f, ok := at[name]
		if !ok {
			return n.doc.Unknown(n.path, name, names)
		}
		if err := values[i].decode(v.FieldByIndex(f.Index), strings.HasSuffix(f.Tag.Get("yaml"), ",list")); err != nil {
			return err
		}
	}
	return nil
}

// Unknown says that a block has a field which is none of those names.
func (d *Document) Unknown(block, name string, names []string) error {
	of := ""
	if block != "" {
		of = " of " + block
	}
	e := d.located(d.at[join(block, name)].key)
	if block == d.base && d.file != "" && !slices.ContainsFunc(names, func(f string) bool {
		path := join(block, f)
		return d.Has(path) && !d.Given(path)
	}) {
		switch { // what looks like a field may be of a row
		case d.object:
			return d.notTable("a JSON object")
		case !slices.Contains([]string{".yaml", ".yml", ".json", ""}, filepath.Ext(d.file)):
			return d.notTable("")
		}
	}
	e.Err = fmt.Errorf("unknown field %q; the fields%s are %s", name, of, strings.Join(names, ", "))
	return e
}

// Names are the yaml names of a struct's fields.
func Names(of any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) { // those of embedded structs, too
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// FieldPlace is the position of the name of a field of the block.
func (n Node) FieldPlace(name string) string { return n.doc.Place(join(n.path, name)) }
