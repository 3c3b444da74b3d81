package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"pgregory.net/rapid"
)

// staircase nests n blocks, each indented more.
func staircase(n int, key string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + key + "\n")
	}
	return b.String()
}

// D2: what nests too deep is refused before the parser sees it, wherever that
// stands, and a text of many megabytes after few of its tokens.
func TestD2Nesting(t *testing.T) {
	for name, src := range map[string]string{
		"lists":         strings.Repeat("[", 8000),
		"many lists":    strings.Repeat("[", 200_000),
		"blocks":        strings.Repeat("{a: ", 8000),
		"both":          "a: b\nc:\n  - " + strings.Repeat("[{a: ", 4000),
		"closed":        strings.Repeat("[", 8000) + strings.Repeat("]", 8000),
		"dashes":        strings.Repeat("- ", 8000) + "x",
		"dashes, lines": staircase(500, "-"),
		"keys":          staircase(500, "a:"),
		"keys, line":    strings.Repeat("a: ", 8000),
		"questions":     strings.Repeat("? ", 8000) + "x",
		"tags":          strings.Repeat("!a ", 8000),
		"anchors":       strings.Repeat("&a ", 8000),
		"pairs":         "[" + strings.Repeat("a: ", 8000),
		"after lists":   "a: [[1], [2]]\nb: " + strings.Repeat("[", 101),
		"document":      "---\n" + strings.Repeat("[", 101),
	} {
		_, err := parse([]byte(src))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Found, "more than 100 deep") || e.Line < 1 || e.Column < 1 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	for name, end := range map[string]string{"lines": "\n", "of Windows": "\r\n", "of spaces": "  \n", "of old Macs": "\r"} {
		var e *Error
		_, err := parse([]byte("a: |\n  b" + strings.Repeat(end, 100_000)))
		if !errors.As(err, &e) || !strings.Contains(e.Found, "empty lines") || e.Line < maxEmpty {
			t.Errorf("empty %s: %.200v", name, err)
		}
		if e := checkEmpty([]byte(strings.Repeat("a: 1"+strings.Repeat(end, maxEmpty), 3))); e != nil {
			t.Errorf("empty %s: %v", name, e)
		}
	}
	for name, src := range map[string]string{
		"commas": "[" + strings.Repeat(",", 300_000),
		"words":  "[" + strings.Repeat("1,", 300_000) + "1]",
	} {
		var e *Error
		if _, err := parse([]byte(src)); !errors.As(err, &e) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// What looks like nesting and is none is left alone.
func TestD2Allowed(t *testing.T) {
	brackets := strings.Repeat("[", 300)
	for _, src := range []string{
		"", "a: 1", "# " + brackets, "a: '" + brackets + "'", `a: "` + brackets + `"`, "a: x # " + brackets,
		"a: |\n  " + brackets + "\n  - - - -\n", "a: >\n  " + brackets + "\n",
		strings.Repeat("[", 100) + strings.Repeat("]", 100),
		strings.Repeat("{a: ", 99) + "1" + strings.Repeat("}", 99),
		staircase(99, "a:"), strings.Repeat("- ", 99) + "x",
		"a:\n" + strings.Repeat("- b: [1, {c: 2}]\n  d:\n  - 3\n", 1000),
		"a: [" + strings.Repeat("{name: x, levels: [a, b]}, ", 1000) + "]",
		strings.Repeat("k:\n  l:\n    m: 1\n", 1), "a: &x 1\nb: *x\n", "[a, b, ]", "{a: 1, }",
	} {
		if e := check([]byte(src)); e != nil {
			t.Errorf("%.60q: %v", src, e)
		}
	}
}

// depth is how deep collections nest in a tree.
func depth(n ast.Node) int {
	deepest := 0
	add := func(m ast.Node) {
		if m != nil {
			deepest = max(deepest, depth(m))
		}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			add(v.Key)
			add(v.Value)
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.MappingValueNode:
		add(n.Key)
		add(n.Value)
	case *ast.AnchorNode:
		return depth(n.Value)
	case *ast.TagNode:
		return depth(n.Value)
	default:
		return 0
	}
	return deepest + 1
}

// Random files: those that nest less than half the limit pass, and the parser then
// sees none that nests deeper than the limit.
func TestD2Property(t *testing.T) {
	scalars := rapid.SampledFrom([]string{"1", "x", "'[[{'", `"- {: ["`, "true", "a b", "''"})
	var flow func(t *rapid.T, left int) string
	flow = func(t *rapid.T, left int) string {
		if left == 0 {
			return scalars.Draw(t, "scalar")
		}
		var parts []string
		list := rapid.Bool().Draw(t, "list")
		for i := range rapid.IntRange(0, 3).Draw(t, "n") {
			inner := scalars.Draw(t, "value")
			if i == 0 {
				inner = flow(t, left-1)
			}
			if !list {
				inner = fmt.Sprintf("k%d: %s", i, inner)
			}
			parts = append(parts, inner)
		}
		if list {
			return "[" + strings.Join(parts, ", ") + "]"
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	var write func(t *rapid.T, left, indent int) string
	write = func(t *rapid.T, left, indent int) string {
		if left == 0 || rapid.IntRange(0, 3).Draw(t, "flow") == 0 {
			return " " + flow(t, min(left, rapid.IntRange(0, 20).Draw(t, "deep"))) + "\n"
		}
		var b strings.Builder
		b.WriteString("\n")
		list := rapid.Bool().Draw(t, "list")
		for i := range rapid.IntRange(1, 3).Draw(t, "n") {
			inner := " " + scalars.Draw(t, "value") + " # [[[{\n"
			if i == 0 {
				inner = write(t, left-1, indent+rapid.IntRange(1, 3).Draw(t, "indent"))
			}
			head := fmt.Sprintf("k%d:", i)
			if list {
				head = "-"
			}
			b.WriteString(strings.Repeat(" ", indent) + head + inner)
		}
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		src := strings.TrimLeft(write(t, rapid.IntRange(1, 45).Draw(t, "depth"), 0), "\n")
		holds(t, src)
	})
}

// holds: a file whose tree nests less than half the limit is not refused; of one that
// is not, the tree nests no deeper than the limit.
func holds(t interface {
	Helper()
	Fatalf(string, ...any)
}, src string) {
	t.Helper()
	e := check([]byte(src))
	if e != nil && len(src) > 20_000 {
		return // the parser may take long
	}
	f, err := parser.ParseBytes([]byte(src), 0)
	if err != nil {
		return
	}
	deepest := 0
	for _, d := range f.Docs {
		deepest = max(deepest, depth(d.Body))
	}
	switch {
	case e != nil && deepest < maxDepth/2 && strings.Contains(e.Found, "deep"):
		t.Fatalf("%q nests %d deep and is refused: %v", src, deepest, e)
	case e == nil && deepest > maxDepth:
		t.Fatalf("%q nests %d deep and is not refused", src, deepest)
	}
}

func FuzzNesting(f *testing.F) {
	for _, src := range []string{"a: [1, {b: 2}]", "- - x\n- y", "? a\n: b", "!t &a [*b]", "a: |\n  [[[", "<<: *a", "'[': \"{\"", strings.Repeat("[", 120), "a:\n- b:\n  - c\n"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 2000 {
			return
		}
		holds(t, src)
	})
}
