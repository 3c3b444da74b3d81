package page

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
)

// A filler is at work on one template.
type filler struct {
	*Template
	out  *bytes.Buffer
	vars []variable
}

type variable struct {
	name  string
	value reflect.Value
}

// call fills a template, for which data is the dot and $.
func (t *Template) call(out *bytes.Buffer, name string, data reflect.Value) {
	tree := t.trees[name]
	if tree == nil {
		fail("there is no template %q", name)
	}
	f := &filler{t, out, []variable{{"$", data}}}
	f.list(data, tree.Root)
}

// list fills some nodes; variables that they set end with them.
func (f *filler) list(dot reflect.Value, l *parse.ListNode) {
	if l == nil {
		return
	}
	defer func(n int) { f.vars = f.vars[:n] }(len(f.vars))
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			f.out.Write(n.Text)
		case *parse.ActionNode:
			v := f.pipe(dot, n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				put(f.out, v, f.spots[n])
			}
		case *parse.IfNode:
			f.branch(dot, &n.BranchNode, func(reflect.Value) reflect.Value { return dot })
		case *parse.WithNode:
			f.branch(dot, &n.BranchNode, func(v reflect.Value) reflect.Value { return v })
		case *parse.RangeNode:
			f.loop(dot, n)
		case *parse.TemplateNode:
			var data reflect.Value
			if n.Pipe != nil {
				data = f.pipe(dot, n.Pipe)
			}
			f.call(f.out, n.Name, data)
		}
	}
}

func (f *filler) branch(dot reflect.Value, b *parse.BranchNode, inner func(reflect.Value) reflect.Value) {
	defer func(n int) { f.vars = f.vars[:n] }(len(f.vars))
	if v := f.pipe(dot, b.Pipe); truth(v) {
		f.list(inner(v), b.List)
	} else {
		f.list(dot, b.ElseList)
	}
}

// loop is over a slice, or over 0, 1, … below a whole number.
func (f *filler) loop(dot reflect.Value, r *parse.RangeNode) {
	defer func(n int) { f.vars = f.vars[:n] }(len(f.vars))
	decl := r.Pipe.Decl
	v := indirect(f.pipe(dot, &parse.PipeNode{NodeType: parse.NodePipe, Cmds: r.Pipe.Cmds}))
	var n int
	at := func(i int) reflect.Value { return reflect.ValueOf(i) }
	switch {
	case !v.IsValid():
	case v.CanInt():
		n = int(v.Int())
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		n, at = v.Len(), v.Index
	default:
		fail("%v: a %v cannot be gone through", r.Pipe, v.Type())
	}
	if n <= 0 {
		f.list(dot, r.ElseList)
		return
	}
	for i := range n {
		mark := len(f.vars)
		if len(decl) == 2 {
			f.vars = append(f.vars, variable{decl[0].Ident[0], reflect.ValueOf(i)})
		}
		if len(decl) > 0 {
			f.vars = append(f.vars, variable{decl[len(decl)-1].Ident[0], at(i)})
		}
		f.list(at(i), r.List)
		f.vars = f.vars[:mark]
	}
}

// pipe is the value of the last of its commands, each of which takes that of the one before.
func (f *filler) pipe(dot reflect.Value, p *parse.PipeNode) (v reflect.Value) {
	for i, c := range p.Cmds {
		word, isCall := c.Args[0].(*parse.IdentifierNode)
		if !isCall {
			if len(c.Args) > 1 || i > 0 {
				fail("%v: only a function takes arguments", c)
			}
			v = f.value(dot, c.Args[0])
			continue
		}
		args := make([]func() reflect.Value, 0, len(c.Args))
		for _, n := range c.Args[1:] {
			args = append(args, func() reflect.Value { return f.value(dot, n) })
		}
		if i > 0 {
			before := v
			args = append(args, func() reflect.Value { return before })
		}
		v = f.apply(word.Ident, args)
	}
	for _, d := range p.Decl {
		f.vars = append(f.vars, variable{d.Ident[0], v})
	}
	return v
}

func (f *filler) value(dot reflect.Value, n parse.Node) reflect.Value {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.ChainNode:
		return fields(f.value(dot, n.Node), n.Field)
	case *parse.VariableNode:
		for _, v := range slices.Backward(f.vars) {
			if v.name == n.Ident[0] {
				return fields(v.value, n.Ident[1:])
			}
		}
	case *parse.PipeNode:
		return f.pipe(dot, n)
	case *parse.IdentifierNode:
		return f.apply(n.Ident, nil)
	case *parse.StringNode:
		return reflect.ValueOf(n.Text)
	case *parse.BoolNode:
		return reflect.ValueOf(n.True)
	case *parse.NumberNode:
		if n.IsInt {
			return reflect.ValueOf(int(n.Int64))
		}
		return reflect.ValueOf(n.Float64)
	}
	return fail("%v is not part of the language here", n)
}

// fields goes from a value to one of its fields, or entries by name, and so on.
func fields(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		v = indirect(v)
		var found reflect.Value
		switch v.Kind() {
		case reflect.Struct:
			if sf, ok := v.Type().FieldByName(name); ok && sf.IsExported() {
				var err error
				if found, err = v.FieldByIndexErr(sf.Index); err != nil {
					fail("%w", err)
				}
			}
		case reflect.Map:
			found = v.MapIndex(reflect.ValueOf(name))
		}
		if !found.IsValid() {
			fail("there is no field %s in %v", name, v.Kind())
		}
		v = found
	}
	return v
}

func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// truth is false of the zero of a type, and of what is empty.
func truth(v reflect.Value) bool {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		return true
	}
	return !v.IsZero()
}

// builtins are known to every page. The parser asks for their names, apply for the number of
// their arguments, where it is fixed.
var builtins = map[string]any{"and": -1, "or": -1, "not": 1, "eq": 2, "ne": 2, "gt": 2, "len": 1, "index": 2, "printf": -1}

// apply calls a function. What and, or need not know is not computed.
func (f *filler) apply(name string, args []func() reflect.Value) reflect.Value {
	if name == "and" || name == "or" {
		var v reflect.Value
		for _, arg := range args {
			if v = arg(); truth(v) == (name == "or") {
				break
			}
		}
		return v
	}
	in := make([]reflect.Value, len(args))
	for i, arg := range args {
		in[i] = arg()
	}
	if own, ok := f.funcs[name]; ok {
		return invoke(name, own, in)
	}
	if need := builtins[name]; len(in) != need && need != -1 {
		fail("%s takes %d arguments, not %d", name, need, len(in))
	}
	switch name {
	case "not":
		return reflect.ValueOf(!truth(in[0]))
	case "len":
		return reflect.ValueOf(indirect(in[0]).Len())
	case "eq", "ne":
		return reflect.ValueOf(equal(indirect(in[0]), indirect(in[1])) == (name == "eq"))
	case "gt":
		return reflect.ValueOf(indirect(in[0]).Int() > indirect(in[1]).Int())
	case "index":
		return indirect(in[0]).Index(int(indirect(in[1]).Int()))
	}
	values := make([]any, len(in)-1)
	for i, v := range in[1:] {
		values[i] = plain(v)
	}
	return reflect.ValueOf(fmt.Sprintf(in[0].String(), values...))
}

// equal compares words, or whole numbers.
func equal(a, b reflect.Value) bool {
	switch {
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return a.String() == b.String()
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int()
	}
	fail("a %v and a %v cannot be compared", a.Kind(), b.Kind())
	return false
}

// invoke calls a function of the page's own.
func invoke(name string, own reflect.Value, in []reflect.Value) reflect.Value {
	of := own.Type()
	if of.NumIn() != len(in) {
		fail("%s takes %d arguments, not %d", name, of.NumIn(), len(in))
	}
	for i, v := range in {
		want := of.In(i)
		for v.IsValid() && !v.Type().AssignableTo(want) && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
			v = v.Elem()
		}
		if !v.IsValid() || !v.Type().AssignableTo(want) {
			fail("argument %d of %s is not a %v", i+1, name, want)
		}
		in[i] = v
	}
	return own.Call(in)[0]
}
