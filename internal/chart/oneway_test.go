package chart

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A given ε or δ reads the same wherever it stands, a sum of floats included, and bounds are never rounded down.
func TestWays(t *testing.T) {
	for v, want := range map[float64]string{1: "1", 1e-5: "0.00001", 1e-7: "10⁻⁷", 2.5e-8: "2.5 × 10⁻⁸", 0.1 + 0.2: "0.3", 0.123456789012: "0.123456789012", 0.12345678901234: "0.123456789013"} {
		if got := Full(v); got != want {
			t.Errorf("Full(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.731058: "73.2 %", 0.5536: "55.4 %", 0.01977: "1.98 %", 0.001: "0.1 %", 0.99966: "99.97 %", 1: "100 %"} {
		if got := PercentUp(v); got != want {
			t.Errorf("PercentUp(%v) = %s, want %s", v, got, want)
		}
	}
}

// verbatim are packages whose texts are not for people who read about a run: they describe events, papers and theorems.
var verbatim = regexp.MustCompile(`^(paper|privacy|oracle|method|internal|model|data)/`)

// Texts for people write ε and δ by a function of this package, and no format by a verb of its own. Errors may say more digits.
func TestOneWay(t *testing.T) {
	own := regexp.MustCompile(`[εδ](?: =)? %[-+# 0]*[0-9.]*[efgvEFG]`)
	if !own.MatchString("at δ = %v") || !own.MatchString("(ε %.4g") || own.MatchString("ε = %s") {
		t.Fatal("the pattern does not find a verb")
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || verbatim.MatchString(name) {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Errorf" {
					return false
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && own.MatchString(text) {
					t.Errorf("%s: %q writes ε or δ in a way of its own; write %%s, and chart.Full of what a person chose or chart.Upper of a bound", set.Position(n.Pos()), own.FindString(text))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
