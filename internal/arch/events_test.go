package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// recursions lists the functions that take a privacy.Event and mention themselves, outside privacy and its accountants: recursions
// over events by hand, which leave out an event that comes later. They are privacy.Walk, Map and Fold. A type switch that does not
// recur stays allowed: it asks for the form of a plan.
func recursions(files []source) (found []string) {
	for _, f := range files {
		if strings.HasSuffix(f.name, "_test.go") || within(path.Dir(f.name), "privacy") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.SkipObjectResolution)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		check := func(receiver, name *ast.Ident, t *ast.FuncType, body *ast.BlockStmt) {
			if body != nil && takesEvent(t) && mentions(body, receiver, name.Name) {
				found = append(found, fmt.Sprintf("%s: %s recurs over an event: use privacy.Walk, Map or Fold", f.name, name.Name))
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				var receiver *ast.Ident
				if n.Recv != nil {
					receiver = &ast.Ident{Name: "_"}
					if names := n.Recv.List[0].Names; len(names) == 1 {
						receiver = names[0]
					}
				}
				check(receiver, n.Name, n.Type, n.Body)
			case *ast.AssignStmt:
				for i, right := range n.Rhs {
					lit, isFunc := right.(*ast.FuncLit)
					if name, ok := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); ok && isFunc {
						check(nil, name, lit.Type, lit.Body)
					}
				}
			}
			return true
		})
	}
	return found
}

// takesEvent says whether a parameter is an event, or a list or composition of events.
func takesEvent(t *ast.FuncType) bool {
	for _, p := range t.Params.List {
		of := p.Type
		if list, ok := of.(*ast.ArrayType); ok {
			of = list.Elt
		}
		if sel, ok := of.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "privacy" {
				switch sel.Sel.Name {
				case "Event", "Composed", "Repeated", "Tuned", "PoissonSampled", "FixedSampled":
					return true
				}
			}
		}
	}
	return false
}

// mentions says whether a body names the function or, of a method, selects it from the receiver.
func mentions(body *ast.BlockStmt, receiver *ast.Ident, name string) bool {
	found := false
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr: // of another value, a field or method may have the same name
			x, plain := n.X.(*ast.Ident)
			found = found || plain && receiver != nil && x.Name == receiver.Name && n.Sel.Name == name
			ast.Inspect(n.X, look)
			return false
		case *ast.Ident:
			found = found || receiver == nil && n.Name == name
		}
		return !found
	}
	ast.Inspect(body, look)
	return found
}

func TestEventRecursion(t *testing.T) {
	files, err := readTree(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range recursions(files) {
		t.Error(v)
	}
	for text, want := range map[string]int{
		"func fixed(e privacy.Event) bool { return slices.ContainsFunc(e.(privacy.Composed), fixed) }":                                   1,
		"func count(all []privacy.Event) int { return count(all[1:]) }":                                                                  1,
		"func f() { var walk func(e privacy.Event); walk = func(e privacy.Event) { walk(e.(privacy.Repeated).Of) } }":                    1,
		"func form(e privacy.Event) bool { _, ok := e.(privacy.Repeated); return ok }":                                                   0,
		"func (j *Journal) Charge(e privacy.Event) error { return j.Charge(e.(privacy.Repeated).Of) }":                                   1,
		"func (j *Journal) Charge(e privacy.Event) error { return j.next.Charge(e) }":                                                    0,
		"func words(e privacy.Event) string { return privacy.Fold(e, func(e privacy.Event, in []string) string { return e.String() }) }": 0,
	} {
		if got := recursions([]source{{"run/x.go", "package run\n" + text}}); len(got) != want {
			t.Errorf("%s: found %v", text, got)
		}
		if got := recursions([]source{{"privacy/account/x.go", "package account\n" + text}}); len(got) != 0 {
			t.Errorf("an accountant may recur: found %v", got)
		}
	}
}
