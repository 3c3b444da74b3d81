package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
	"github.com/sottodp/sotto/paper"
	"github.com/sottodp/sotto/paper/p0"
	"github.com/sottodp/sotto/paper/p1"
	"github.com/sottodp/sotto/paper/p2"
	"github.com/sottodp/sotto/paper/p3"
	"github.com/sottodp/sotto/paper/p4"
)

var update = flag.Bool("update", false, "write again what the tests here make of runs and of the code")

var experiments = []paper.Experiment{p0.Experiment, p1.Experiment, p2.Experiment, p3.Experiment, p4.Experiment}

// TestPapers: but for its notes, measurements/papers.md is what the records of the full runs in paper/p0 to paper/p4 give.
func TestPapers(t *testing.T) {
	files, err := filepath.Glob("../paper/p*/record.json")
	if err != nil {
		t.Fatal(err)
	}
	var records []*paper.Record
	for _, f := range files {
		r := &paper.Record{}
		if err := json.Unmarshal([]byte(read(t, f)), r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if !r.Full || filepath.Base(filepath.Dir(f)) != r.Paper {
			t.Errorf("%s: found a record of %s, full %v", f, r.Paper, r.Full)
		}
		records = append(records, r)
	}
	const page = "measurements/papers.md"
	before := read(t, page)
	_, notes, _ := strings.Cut(before, "\n## Notes\n")
	notes, _, _ = strings.Cut(notes, "\n## Claims that fail\n")
	of := map[string]paper.Publication{}
	for _, e := range experiments {
		of[e.Name] = e.Of
	}
	want := paper.Summary(records, of, notes)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if before != want {
		t.Errorf("%s is not what the records give: go test ./docs -run Papers -update", page)
	}
}

// TestContents: each place that the contents of a paper name is in the repository: the file, the declaration, the section.
func TestContents(t *testing.T) {
	for _, e := range experiments {
		if len(e.Contents) < 15 || e.Recorded() == nil || len(e.Of.Authors) == 0 || len(e.Of.Links()) == 0 {
			t.Errorf("%s: %d items, record %v, %+v", e.Name, len(e.Contents), e.Recorded() != nil, e.Of)
		}
		for _, i := range e.Contents {
			for _, w := range i.Where {
				if err := placed(w); err != nil {
					t.Errorf("%s, %s: %v", e.Name, i.Name, err)
				}
			}
		}
	}
	for _, w := range []string{"method/none.go", "method/sgd.go#None", "method/sgd.go#None.Run", "docs/methods/sgd.md#none", "privacy/account/PROOFS.md#none"} {
		if placed(w) == nil {
			t.Errorf("%s passed", w)
		}
	}
}

// placed says what is wrong with a place of an item; parts of a page of results are looked up on the page.
func placed(place string) error {
	file, at, _ := strings.Cut(place, "#")
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil || at == "" {
		return err
	}
	if filepath.Ext(file) == ".md" {
		for _, m := range slices.Concat(anchors.FindAllStringSubmatch(string(text), -1), headings.FindAllStringSubmatch(string(text), -1)) {
			if at == strings.ReplaceAll(strings.ToLower(m[1]), " ", "-") {
				return nil
			}
		}
		return fmt.Errorf("%s has no section %s", file, at)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range tree.Decls {
		if slices.Contains(declared(d), at) {
			return nil
		}
	}
	return fmt.Errorf("%s does not declare %s", file, at)
}

// Sections of a page have an anchor of their own, or their heading is one.
var anchors, headings = regexp.MustCompile(`<a id="([^"]+)">`), regexp.MustCompile(`(?m)^#+ (.*)$`)

// declared are the names that a declaration declares, methods behind their type.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			of := d.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			name = of.(*ast.Ident).Name + "." + name
		}
		names = append(names, name)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// others are numbers that the texts of the papers take from other works.
var others = map[string]string{
	"p0": "Theorem 1, Theorem 2.1, Theorem 3.2, Proposition 2.5.2, Proposition 4.1",
	"p1": "Algorithm 2, Theorem 1, Theorem 2.3, Theorem 9, Theorem 12, Corollary 3.15, Corollary 4.7, Proposition 4.6",
	"p4": "Theorem D.5, Corollary D.4", // other statements of Appendix D
}

var (
	stated = regexp.MustCompile(`(?i)\b(Algorithm|Theorem|Proposition|Corollary|Figure|Fig\.|Table) ?([A-E]\.\d+|\d+(?:\.\d+)*)`)
	listed = regexp.MustCompile(`(Algorithm|Theorem|Proposition|Corollar|Figure|Table)(?:s|ies|y)?|(to )?\b((?:[A-E]\.)?(?:\d+\.)*)(\d+)\b`)
)

// TestContentsAreWhole: each algorithm, theorem, figure and table that the text of a paper names is among its contents.
func TestContentsAreWhole(t *testing.T) {
	texts := filepath.Join(needs.Data(t), "..", "papers")
	if _, err := os.Stat(texts); err != nil {
		t.Skip("the texts of the papers are not beside the data")
	}
	for _, e := range experiments {
		has := map[string]bool{}
		for _, name := range strings.Split(others[e.Name], ", ") {
			has[name] = true
		}
		for _, i := range e.Contents {
			for _, name := range items(i.Name) {
				has[name] = true
			}
		}
		for _, m := range stated.FindAllStringSubmatch(read(t, filepath.Join(texts, strings.ToUpper(e.Name)+".txt")), -1) {
			kind := strings.ToUpper(m[1][:1]) + strings.ToLower(m[1][1:])
			name := strings.Replace(kind, "Fig.", "Figure", 1) + " " + m[2]
			if !has[name] {
				t.Errorf("%s: %s is not among the contents", e.Name, name)
				has[name] = true
			}
		}
	}
	if got, want := items("Corollaries 3.2 and 3.4, Theorems B.3 to B.5, Table 2"), []string{"Corollary 3.2", "Corollary 3.4", "Theorem B.3", "Theorem B.4", "Theorem B.5", "Table 2"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// items are the numbered things that the name of an item names.
func items(name string) (list []string) {
	kind, last := "", 0
	for _, m := range listed.FindAllStringSubmatch(name, -1) {
		if m[1] != "" {
			kind = strings.Replace(m[1], "Corollar", "Corollary", 1)
			continue
		}
		n, _ := strconv.Atoi(m[4])
		from := n
		if m[2] != "" {
			from = last + 1
		}
		for k := from; k <= n && kind != ""; k++ {
			list = append(list, fmt.Sprintf("%s %s%d", kind, m[3], k))
		}
		last = n
	}
	return list
}
