package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// maxSize limits a document, in bytes.
const maxSize = 4 << 20

// A Document is a YAML file that is a block of fields: a spec or a schema.
type Document struct {
	file, what string
	base       string // path of the root, for errors
	root       *ast.MappingNode
	from       []string            // where the k-th setting comes from; its tokens stand on line −(k+1)
	at         map[string]position // of each value, by its path
	object     bool                // it is written in JSON
}

// A position is where a field's name and its value stand.
type position struct{ key, value *token.Position }

// Parse parses a document; what it is, as "a spec", is for errors. An empty one is a block
// without fields. Repeated fields are errors here, unknown ones at [Node.Decode].
func Parse(file, what string, src []byte) (*Document, error) {
	d := &Document{file: file, what: what}
	bad := func(line, column int, found, allowed string) error {
		e := d.located(&token.Position{Line: line, Column: column})
		e.Found, e.Allowed = found, allowed
		return e
	}
	if len(src) > maxSize {
		return nil, bad(0, 0, "a file above 4 MiB", what)
	}
	if isUTF16(src) {
		e := d.located(&token.Position{})
		e.Err = errors.New("the file is in UTF-16; save it as UTF-8")
		return nil, e
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	inner, braces := bytes.CutPrefix(bytes.TrimSpace(src), []byte("{"))
	d.object = braces && bytes.HasPrefix(bytes.TrimSpace(inner), []byte(`"`))
	if form, _ := Form(src); form != "" && file != "" {
		return nil, d.otherForm(src)
	}
	if !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 {
		return nil, d.notText(src)
	}
	tree, err := parse(src)
	var refused *Error
	var y yaml.Error
	if err != nil || len(tree.Docs) > 1 {
		if e := d.otherForm(src); e != nil {
			return nil, e
		}
	}
	switch {
	case errors.As(err, &refused):
		refused.File = file
		return nil, refused
	case errors.As(err, &y) && y.GetToken() != nil && y.GetToken().Position != nil:
		p := y.GetToken().Position
		return nil, bad(p.Line, p.Column, "text that is not YAML ("+y.GetMessage()+")", what+" in YAML")
	case err != nil:
		return nil, bad(0, 0, "text that is not YAML", what+" in YAML")
	}
	var bodies []ast.Node
	for _, doc := range tree.Docs {
		if doc != nil && doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) > 1 || len(tree.Docs) > 1 {
		return nil, bad(0, 0, "more than one document", "one, "+what)
	}
	d.root = &ast.MappingNode{}
	if len(bodies) == 1 {
		switch n := bodies[0].(type) {
		case *ast.MappingNode:
			d.root = n
		case *ast.MappingValueNode:
			d.root.Values = []*ast.MappingValueNode{n}
		default: // perhaps a data file: its content is not for a message
			_, list := n.(*ast.SequenceNode)
			switch e := d.otherForm(src); {
			case e != nil:
				return nil, e
			case file != "" && !list:
				return nil, d.notTable("")
			}
			return nil, bad(0, 0, found(n), what+" in YAML: a block of fields")
		}
	}
	return d, d.index()
}

// isUTF16 says whether a text is in UTF-16, or UTF-32, of either byte order: by its mark, or by its first letter, which
// is ASCII in any document.
func isUTF16(src []byte) bool {
	return len(src) >= 2 &&
		(src[0] == 0xff && src[1] == 0xfe || src[0] == 0xfe && src[1] == 0xff || (src[0] == 0) != (src[1] == 0))
}

// Root is the whole document.
func (d *Document) Root() Node { return Node{d, d.root, d.base} }

// RootAs is the whole document under that path, for errors.
func (d *Document) RootAs(path string) (Node, error) {
	d.base = path
	return d.Root(), d.index()
}

// Set puts a field into the root or into one of its blocks, as in method.steps; from says where it
// was given, for errors. A block that is not there, or is a word, becomes one. Setting another name
// of a block first removes its fields, which belonged to the old name.
func (d *Document) Set(path, value, from string) error {
	d.from = append(d.from, from)
	target := d.root
	block, key, inner := strings.Cut(path, ".")
	if inner {
		v := field(d.root, block)
		if v == nil {
			empty, err := d.setting(block, "{}", from)
			if err != nil {
				return err
			}
			d.root.Values = append(d.root.Values, empty)
			v = empty
		}
		if _, ok := v.Value.(*ast.MappingNode); !ok {
			empty, err := d.setting(block, "{}", from)
			if err != nil {
				return err
			}
			v.Value = empty.Value
		}
		target = v.Value.(*ast.MappingNode)
	} else {
		key = block
	}
	v, err := d.setting(key, value, from)
	if err != nil {
		return err
	}
	if inner && key == "name" {
		if old := field(target, "name"); old != nil {
			before, _ := scalar(old.Value)
			if after, _ := scalar(v.Value); before != "" && before != after {
				target.Values = nil
			}
		}
	}
	if old := field(target, key); old != nil {
		*old = *v
	} else {
		target.Values = append(target.Values, v)
	}
	return d.index()
}

// setting is the last setting as a field of that name.
func (d *Document) setting(key, value, from string) (*ast.MappingValueNode, error) {
	s, err := Parse("", "a value", []byte(key+": "+value))
	if err != nil || len(s.root.Values) != 1 {
		return nil, &Error{File: from, Found: "a value that is not YAML"}
	}
	v := s.root.Values[0]
	for t := v.GetToken(); t != nil; t = t.Next {
		t.Position.Line = -len(d.from)
	}
	for t := v.GetToken(); t != nil; t = t.Prev {
		t.Position.Line = -len(d.from)
	}
	return v, nil
}

func field(m *ast.MappingNode, key string) *ast.MappingValueNode {
	for _, v := range m.Values {
		if name, _ := scalar(v.Key); name == key {
			return v
		}
	}
	return nil
}

// Has says whether the document has a field, as in method.steps or columns[3].min.
func (d *Document) Has(path string) bool {
	_, ok := d.at[path]
	return ok
}

// Place says where the field's name stands, as file:line:column or as the flag that gave it;
// "" where it is not in the document.
func (d *Document) Place(path string) string {
	if p, ok := d.at[path]; ok && p.key != nil {
		return d.located(p.key).Place()
	}
	return ""
}

// Given says whether the field comes from [Document.Set], not from the file.
func (d *Document) Given(path string) bool {
	p, ok := d.at[path]
	return ok && p.key.Line < 0
}

// Locate sets file, line and column of an error by its Field: those of the field's value, or
// of the nearest block around it.
func (d *Document) Locate(e *Error) *Error {
	for path := e.Field; ; {
		if p, ok := d.at[path]; ok && p.value != nil {
			l := d.located(p.value)
			e.File, e.Line, e.Column = l.File, l.Line, l.Column
			return e
		}
		if path == "" {
			e.File = d.file
			return e
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Fail is an error at a field.
func (d *Document) Fail(path, found, allowed string) *Error {
	return d.Locate(&Error{Field: path, Found: found, Allowed: allowed})
}

// located returns an error with only its place set.
func (d *Document) located(p *token.Position) *Error {
	if p.Line < 0 {
		return &Error{File: d.from[-p.Line-1]}
	}
	return &Error{File: d.file, Line: p.Line, Column: p.Column}
}

// index notes where each value stands. A block of lines stands where its name does.
func (d *Document) index() error {
	d.at = map[string]position{}
	return d.indexValue(d.root, d.base, nil)
}

func (d *Document) indexValue(n ast.Node, path string, key *token.Position) error {
	p := position{key: key, value: key}
	switch n := n.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		if n.IsFlowStyle {
			p.value = n.GetToken().Position
		} else if key == nil && len(n.Values) > 0 {
			p.value = n.Values[0].Key.GetToken().Position
		}
	case *ast.SequenceNode:
		if n.IsFlowStyle || key == nil {
			p.value = n.GetToken().Position
		}
	default:
		p.value = n.GetToken().Position
	}
	d.at[path] = p
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			name, ok := scalar(v.Key)
			at := v.Key.GetToken().Position
			if !ok && name == "" {
				if _, text := v.Key.(*ast.StringNode); !text {
					e := d.located(at)
					e.Field, e.Found, e.Allowed = path, found(v.Key)+" as the name of a field", "a field name"
					return e
				}
			}
			name = join(path, name)
			if d.Has(name) {
				e := d.located(at)
				e.Field, e.Found, e.Allowed = name, "the field a second time", "each field once"
				return e
			}
			if err := d.indexValue(v.Value, name, at); err != nil {
				return err
			}
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			if err := d.indexValue(v, fmt.Sprintf("%s[%d]", path, i), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// scalar returns the text of n as written (1.0 stays 1.0), and whether it is unquoted, so that it may be a number.
func scalar(n ast.Node) (text string, plain bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, !slices.Contains([]token.Type{token.SingleQuoteType, token.DoubleQuoteType}, n.GetToken().Type)
	case *ast.LiteralNode:
		if n.Value != nil {
			return n.Value.Value, false
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// isText says whether n is text, a number or a truth value.
func isText(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return true
	}
	_, plain := scalar(n)
	return plain
}

// found says in words what n is.
func found(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a block"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return Quote(n.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "a YAML anchor, alias or tag"
	}
	return "something else"
}
