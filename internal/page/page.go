// Package page fills pages of HTML. Its language is that of text/template, read by the
// parser of the standard library, with less in it: a value is a field, an entry of a map
// or the result of a function, never of a method. html/template looks methods up by name,
// and a program that does so keeps every exported method of every type it has, which made
// the command a fifth larger (ADR 23).
//
// What is filled in is escaped for its place, which is found when the page is read: text, the
// value of an attribute, an address. A page with something to fill in at any other place is
// an error. The types HTML and CSS of html/template stand for what needs no escaping.
package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"reflect"
	"strings"
	"text/template/parse"
)

// Funcs are the functions that a page may call, by name, beside and, or, not, eq, ne, gt,
// len, index and printf. Each returns one value.
type Funcs map[string]any

// A Template is a page that was read. It may be filled by several goroutines at once.
type Template struct {
	trees map[string]*parse.Tree
	funcs map[string]reflect.Value
	spots map[*parse.ActionNode]spot
}

// Parse reads texts, which may define templates for each other; what stands outside of
// definitions is the template "". Two of one name are an error.
func Parse(funcs Funcs, texts ...string) (*Template, error) {
	t := &Template{map[string]*parse.Tree{}, map[string]reflect.Value{}, map[*parse.ActionNode]spot{}}
	for name, f := range funcs {
		t.funcs[name] = reflect.ValueOf(f)
	}
	for _, text := range texts {
		trees, err := parse.Parse("", text, "", "", builtins, funcs)
		if err != nil {
			return nil, err
		}
		for name, tree := range trees {
			if parse.IsEmptyTree(tree.Root) {
				continue
			}
			if t.trees[name] != nil {
				return nil, fmt.Errorf("template %q is defined twice", name)
			}
			t.trees[name] = tree
		}
	}
	for name, tree := range t.trees {
		if err := t.find(tree.Root); err != nil {
			return nil, fmt.Errorf("template %q: %w", name, err)
		}
	}
	return t, nil
}

// Read is Parse of files.
func Read(files fs.FS, funcs Funcs, names ...string) (*Template, error) {
	texts := make([]string, len(names))
	for i, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(b)
	}
	return Parse(funcs, texts...)
}

// Must is for pages that are part of the program.
func Must(t *Template, err error) *Template {
	if err != nil {
		panic(err)
	}
	return t
}

// Fill is a template of the page with what it says of data.
func (t *Template) Fill(name string, data any) (filled []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			bad, ours := r.(problem)
			if !ours {
				panic(r)
			}
			err = bad
		}
	}()
	var out bytes.Buffer
	t.call(&out, name, reflect.ValueOf(data))
	return out.Bytes(), nil
}

// A problem ends a filling.
type problem struct{ error }

func fail(format string, args ...any) reflect.Value {
	panic(problem{fmt.Errorf("page: "+format, args...)})
}

var escaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// put writes a value as its spot has it.
func put(out *bytes.Buffer, v reflect.Value, at spot) {
	value := plain(v)
	text := fmt.Sprint(value)
	switch safe := value.(type) {
	case template.HTML:
		if at == inText {
			out.WriteString(string(safe))
			return
		}
	case template.CSS:
		if at == inStyle {
			out.WriteString(string(safe))
			return
		}
	}
	switch at {
	case inStyle:
		fail("a style sheet is to hold a %v", v.Type())
	case inPart: // only a part of an address: nothing in it is a mark between parts
		text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	case inAddress:
		if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.Contains(text, `\`) {
			fail("a whole address is not one of this site")
		}
	}
	escaper.WriteString(out, text)
}

// plain is a value to be printed: what pointers point to, unless it prints itself.
func plain(v reflect.Value) any {
	for v.IsValid() {
		if v.CanInterface() {
			switch x := v.Interface().(type) {
			case error, fmt.Stringer:
				return x
			}
		}
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			return v.Interface()
		}
		v = v.Elem()
	}
	return ""
}
