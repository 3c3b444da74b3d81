package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The forms that rows have, as bytes or sparse ones, have a file each in package data; rows.go has what all other code asks
// of them (ADR 93). A new form is a file there, so that this limit need not grow.
var (
	formFiles = []string{"data/rows.go", "data/dense.go", "data/sparse.go", "data/pixels.go", "data/short.go", "data/curves.go"}
	formUsers = []string{"data", "model", "oracle", "oracle/private", "oracle/remote", "run", "run/job", "run/score",
		"run/shards", "run/size", "access", "plan", "study/audit", "study/compare", "study/tune", "gossip/party", "gossip/simulate",
		"paper/p3"}
)

const mostAsking = 15

// asking lists the statements outside formFiles that ask in which form rows are. What an option asks for, as opt.Short, says
// what is wanted, and not what rows are; schemas are sparse, too.
func asking(files []source) (found []string) {
	wrong := written(files, func(f source, set *token.FileSet, tree *ast.File) {
		if !slices.Contains(formUsers, path.Dir(f.name)) || slices.Contains(formFiles, f.name) {
			return
		}
		imports := map[string]bool{}
		for _, spec := range tree.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			imports[path.Base(p)] = true
		}
		places := map[token.Pos]bool{}
		var stack []ast.Node
		ast.Inspect(tree, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			if stack = append(stack, n); asksForm(stack, imports) {
				if at := statement(stack); !places[at] {
					places[at] = true
					found = append(found, fmt.Sprintf("%s:%d", f.name, set.Position(at).Line))
				}
			}
			return true
		})
	})
	return append(wrong, found...)
}

// statement is where the innermost statement begins that the last node is part of, a switch for its cases.
func statement(stack []ast.Node) token.Pos {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.CaseClause: // the switch around it is the next but one
			return stack[i-2].Pos()
		case ast.Stmt:
			return n.Pos()
		}
	}
	return stack[0].Pos()
}

// asksForm says whether the last node asks for a form.
func asksForm(stack []ast.Node, imports map[string]bool) bool {
	sel, ok := stack[len(stack)-1].(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, of, parent := sel.Sel.Name, "", stack[len(stack)-2]
	switch x := sel.X.(type) {
	case *ast.Ident:
		of = x.Name
	case *ast.SelectorExpr:
		of = x.Sel.Name
	}
	if imports[of] || of == "opt" || strings.HasSuffix(strings.ToLower(of), "schema") {
		return false
	}
	call, called := parent.(*ast.CallExpr)
	called = called && call.Fun == sel
	switch name {
	case "Coded", "Narrow", "Sparse": // of Facts of a model, of Options and of a schema s they are no methods of rows
		return called && len(call.Args) == 0 && (name != "Sparse" || of != "s")
	case "Coding":
		if called {
			parent = stack[len(stack)-3]
			if call, ok := parent.(*ast.CallExpr); ok && len(call.Args) == 1 { // a conversion
				parent = stack[len(stack)-4]
			}
		}
		return compares(parent, token.NoPos)
	case "Bytes", "Short":
		if a, ok := parent.(*ast.AssignStmt); ok && slices.Contains(a.Lhs, ast.Expr(sel)) {
			return false
		}
		return !called
	case "Pixels", "Shorts", "Curves", "Start", "Lines", "Factor", "Factors", "X":
		if a, ok := parent.(*ast.AssignStmt); ok { // if px := t.Pixels; px != nil
			branch, ok := stack[len(stack)-3].(*ast.IfStmt)
			return ok && branch.Init == a && slices.Contains(a.Rhs, ast.Expr(sel))
		}
		return !called && compares(parent, sel.Pos())
	}
	return false
}

// compares says whether the node compares two values, one of them nil if it has an operand at the position of.
func compares(n ast.Node, of token.Pos) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		other := n.Y
		if n.Y.Pos() == of {
			other = n.X
		}
		id, ok := other.(*ast.Ident)
		return (n.Op == token.EQL || n.Op == token.NEQ) && (of == token.NoPos || ok && id.Name == "nil")
	case *ast.SwitchStmt:
		return of == token.NoPos
	}
	return false
}

func TestFormsOfRows(t *testing.T) {
	files, err := readTree(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range formFiles {
		if !slices.ContainsFunc(files, func(f source) bool { return f.name == name }) {
			t.Errorf("%s is not there", name)
		}
	}
	found := asking(files)
	t.Logf("%d places ask in which form rows are:\n%s", len(found), strings.Join(found, "\n"))
	if len(found) > mostAsking {
		t.Errorf("%d places ask in which form rows are, above %d: let the form answer (data/rows.go)\n%s", len(found), mostAsking,
			strings.Join(found, "\n"))
	}
	for _, c := range []struct {
		file, code string
		want       int
	}{
		{"model/x.go", "if b.Pixels != nil || b.Short != nil { f(b.Bytes[0]) }", 2}, // the use of b.Bytes is one, too
		{"model/x.go", "if v.Start == nil { return }", 1},
		{"model/x.go", "if nil != t.Curves {}", 1},
		{"model/x.go", "if px := t.Pixels; px != nil {}", 1},
		{"model/x.go", "switch { case b.Narrow(): f(); case b.Coding() != none: g() }", 1},
		{"model/x.go", "switch { case a: if v.Coded() { f() }; case b.Sparse(): }", 2},
		{"run/x.go", "return facts.Coding == oracle.Coding(t.Coding())", 1},
		{"run/x.go", "switch t.Coding() { case x: }", 1},
		{"run/x.go", "facts.Coding = t.Coding(); facts.Bytes = false; n := len(buf.Bytes()); f(facts.Start != 0)", 0},
		{"run/x.go", "if j.Facts.Short || opt.Short || s.Sparse() || in.Schema.Sparse() {}", 1},
		{"run/x.go", "size(j.Coding().Bytes)", 1},
		{"data/sparse.go", "if b.Start == nil { return }", 0},
		{"web/x.go", "if v.Start == nil { return }", 0},
		{"model/x_test.go", "if v.Start == nil { return }", 0},
	} {
		if got := asking([]source{{c.file, "package x\n\nfunc f() { " + c.code + " }\n"}}); len(got) != c.want {
			t.Errorf("%s, %s: found %q, want %d", c.file, c.code, got, c.want)
		}
	}
}
