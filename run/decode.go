package run

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decode reads a value of a spec into the variable that dst points to: text, a
// number, true or false, or a struct whose fields have yaml tags. The YAML
// library's own decoder takes 10.5 for the whole number 10 and speaks of Go's
// types; a spec is small enough to be read by hand.
func (r *specReader) decode(n ast.Node, dst any, path string) error {
	return r.value(n, reflect.ValueOf(dst).Elem(), path)
}

func (r *specReader) value(n ast.Node, v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	wrong := func(allowed string) error {
		at := n.GetToken().Position
		return inputError(r.place(at.Line, at.Column), "%s: found %s; allowed is %s", path, found(n), allowed)
	}
	text, plain := scalar(n)
	if o, ok := v.Addr().Interface().(*Settings); ok {
		return r.settings(n, o, path)
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			at := n.GetToken().Position
			block, _, _ := strings.Cut(path, ".")
			return &InputError{r.place(at.Line, at.Column), fmt.Errorf("%s.%w", block, err)}
		}
		return nil
	}
	number, isNumber := math.NaN(), false
	if plain && strings.Trim(text, "+-.eE0123456789") == "" {
		var err error
		number, err = strconv.ParseFloat(text, 64)
		isNumber = err == nil
	}
	switch v.Kind() {
	case reflect.Struct:
		m, ok := n.(*ast.MappingNode)
		if !ok {
			return wrong("a block of fields")
		}
		return r.fields(m, v, path)
	case reflect.Slice:
		list := []ast.Node{n} // one stands for a list of one
		if s, ok := n.(*ast.SequenceNode); ok {
			list = s.Values
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, e := range list {
			if err := r.value(e, v.Index(i), path); err != nil {
				return err
			}
		}
	case reflect.String:
		if _, ok := n.(*ast.StringNode); !ok && !plain {
			return wrong("text")
		}
		v.SetString(text)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return wrong("true or false")
		}
		v.SetBool(b.Value)
	case reflect.Float64:
		if !isNumber {
			return wrong("a number")
		}
		v.SetFloat(number)
	case reflect.Int:
		if !isNumber || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
			return wrong("a whole number")
		}
		v.SetInt(int64(number))
	case reflect.Uint64:
		u, err := strconv.ParseUint(text, 10, 64)
		if err != nil || !plain {
			return wrong("a whole number from 0 to 18446744073709551615")
		}
		v.SetUint(u)
	default:
		return fmt.Errorf("run: a field of type %v cannot stand in a spec", v.Type())
	}
	return nil
}

// fields reads a block into a struct.
func (r *specReader) fields(m *ast.MappingNode, v reflect.Value, path string) error {
	var names []string
	at := map[string][]int{}
	for _, f := range reflect.VisibleFields(v.Type()) { // those of embedded structs, too
		if name := f.Tag.Get("yaml"); name != "" && name != "-" {
			names = append(names, name)
			at[name] = f.Index
		}
	}
	for _, f := range m.Values {
		name := fieldName(f)
		i, ok := at[name]
		if !ok {
			p := f.Key.GetToken().Position
			return inputError(r.place(p.Line, p.Column), "unknown field %q; the fields of %s are %s", name, path, strings.Join(names, ", "))
		}
		if err := r.value(f.Value, v.FieldByIndex(i), path+"."+name); err != nil {
			return err
		}
	}
	return nil
}

// fieldName is the name of a field, which may stand in quotes.
func fieldName(f *ast.MappingValueNode) string {
	text, _ := scalar(f.Key)
	return text
}

// scalar is the text of n, and whether it stands there without quotes, so that it
// may be a number.
func scalar(n ast.Node) (text string, plain bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, !slices.Contains([]token.Type{token.SingleQuoteType, token.DoubleQuoteType}, n.GetToken().Type)
	case *ast.LiteralNode:
		if n.Value != nil {
			return n.Value.Value, false
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// found says in words what n is.
func found(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a block"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		text := n.Value
		if len(text) > 60 {
			text = strings.ToValidUTF8(text[:60], "") + "…"
		}
		return strconv.Quote(text)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "a YAML anchor, alias or tag"
	}
	return "something else"
}
