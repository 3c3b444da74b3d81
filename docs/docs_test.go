// Package docs checks that what the documentation says is true of the code: the
// commands run and print what stands there, the tables name what exists, the
// tests named are there, and no link is dead.
//
// A comment before a fenced block says what is done with it:
//
//	<!-- test -->                 run it with sh; every command must end with 0
//	<!-- test exit 3 -->          the last command must end with this code
//	<!-- output -->               what the block before printed, exactly
//	<!-- output numbers vary -->  likewise, with any numbers, paths and run names
//	<!-- file NAME -->            write it to this file
//	<!-- go -->                   build it as a program against this module, and run it
//	<!-- python -->               run by python/tests/test_tasks.py
//
// The blocks of a page run one after the other in an empty directory that holds a
// copy of examples/, with a ledger of their own.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/privacy/account"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
)

const root = ".."

// pages lists the project's pages, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md", "examples/*/*.md", "*/*/PROOFS.md", "python/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	if len(found) < 15 {
		t.Fatalf("found only %d pages: %q", len(found), found)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A block is a fenced block that a comment speaks of.
type block struct {
	line int    // of its first line
	what string // the comment
	text string
}

// blocks finds the blocks of a page. A comment that no block follows, or one
// that means nothing, is an error.
func blocks(page string) ([]block, error) {
	var found []block
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		what, ok := strings.CutPrefix(lines[i], "<!-- ")
		if !ok {
			continue
		}
		what = strings.TrimSuffix(what, " -->")
		if i+1 >= len(lines) || !strings.HasPrefix(lines[i+1], "```") {
			return nil, fmt.Errorf("line %d: no block follows %q", i+1, lines[i])
		}
		b := block{line: i + 3, what: what}
		for i += 2; i < len(lines) && lines[i] != "```"; i++ {
			b.text += lines[i] + "\n"
		}
		found = append(found, b)
	}
	return found, nil
}

// TestCommands runs the commands of every page.
func TestCommands(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("skipped: there is no sh on this machine to run the documented commands")
	}
	ran := 0
	for _, name := range pages(t) {
		list, err := blocks(read(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(list) == 0 {
			continue
		}
		ran += len(list)
		t.Run(strings.TrimPrefix(filepath.ToSlash(name), "../"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
				t.Fatal(err)
			}
			env := environment(t, dir)
			printed := ""
			for _, b := range list {
				at := fmt.Sprintf("%s:%d", name, b.line)
				kind, rest, _ := strings.Cut(b.what, " ")
				switch {
				case kind == "test":
					code := 0
					if rest != "" {
						if _, err := fmt.Sscanf(rest, "exit %d", &code); err != nil {
							t.Fatalf("%s: %q is not understood", at, b.what)
						}
					}
					cmd := exec.Command(sh, "-e", "-c", strings.ReplaceAll(b.text, "go run ./cmd/sotto ", "sotto "))
					cmd.Dir, cmd.Env = dir, env
					out, err := cmd.CombinedOutput()
					var exit *exec.ExitError
					if err != nil && !errors.As(err, &exit) {
						t.Fatalf("%s: %v", at, err)
					}
					if cmd.ProcessState.ExitCode() != code {
						t.Fatalf("%s: exit code %d, want %d\n%s", at, cmd.ProcessState.ExitCode(), code, out)
					}
					printed = string(out)
				case b.what == "python": // python/tests/test_tasks.py runs it
				case b.what == "go":
					printed = goRun(t, at, dir, env, b.text)
				case b.what == "output":
					if printed != b.text {
						t.Errorf("%s: the command prints\n%s\nthe page says\n%s", at, printed, b.text)
					}
				case b.what == "output numbers vary":
					if got, want := masked(printed), masked(b.text); got != want {
						t.Errorf("%s: the command prints, numbers aside,\n%s\nthe page says\n%s", at, got, want)
					}
				case kind == "file":
					if err := os.WriteFile(filepath.Join(dir, rest), []byte(b.text), 0o600); err != nil {
						t.Fatal(err)
					}
				default:
					t.Fatalf("%s: %q is not understood", at, b.what)
				}
			}
		})
	}
	if ran < 20 {
		t.Errorf("only %d blocks ran", ran)
	}
}

// command builds sotto once, and returns the directory that holds it.
var command = sync.OnceValues(func() (string, error) {
	bin, err := os.MkdirTemp(filepath.Dir(os.Getenv("XDG_DATA_HOME")), "bin-") // TestMain removes it
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", bin, "./cmd/sotto")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// environment is that of the commands of a page: sotto, and a ledger of their own below dir.
func environment(t *testing.T, dir string) []string {
	t.Helper()
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"XDG_DATA_HOME="+filepath.Join(dir, "share"), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
}

// goRun builds a program that stands on a page, and returns what it prints.
func goRun(t *testing.T, at, dir string, env []string, text string) string {
	t.Helper()
	program := t.TempDir()
	source := filepath.Join(program, "main.go")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(program, "main"), source)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: go build: %v\n%s", at, err, out)
	}
	cmd := exec.Command(filepath.Join(program, "main"))
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", at, err, out)
	}
	return string(out)
}

var (
	runName = regexp.MustCompile(`\d{8}-\d{6}-[0-9a-f]{8}`)
	ledgers = regexp.MustCompile(`/\S*/ledger\.db`)
	answers = regexp.MustCompile(`(?m)^(yes|no),`)
	figure  = regexp.MustCompile(`\d[\d.,]*(e-?\d+)?`)
)

// masked is text with its run names, places of ledgers, predicted classes and
// numbers taken out.
func masked(s string) string {
	s = runName.ReplaceAllString(s, "RUN")
	s = ledgers.ReplaceAllString(s, "LEDGER")
	s = answers.ReplaceAllString(s, "CLASS,")
	return figure.ReplaceAllString(s, "N")
}

// section is the part of a page under a heading, up to the next heading of its
// level or above.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	level := len(heading) - len(strings.TrimLeft(heading, "#"))
	end := regexp.MustCompile(fmt.Sprintf(`(?m)^#{1,%d} `, level)).FindStringIndex(rest)
	if end == nil {
		return rest
	}
	return rest[:end[0]]
}

// table is the cells of the first table of a section, without its head.
func table(t *testing.T, text string) [][]string {
	t.Helper()
	var rows [][]string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(c), "\x00", `\|`))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("there is no table in\n%s", text)
	}
	return rows[2:]
}

// names is the first column of a table, without its backquotes.
func names(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.Trim(r[0], "`"))
	}
	return out
}

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: the page has %q, the code %q", what, got, want)
	}
}

// prose is text without its line breaks.
func prose(text string) string { return strings.Join(strings.Fields(text), " ") }

// filled is a paragraph or an item of a list in lines of at most 100 characters.
func filled(text string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		if n := utf8.RuneCountInString(word); i > 0 && column+1+n > 100 {
			b.WriteString("\n")
			if column = n; strings.HasPrefix(text, "- ") {
				b.WriteString("  ")
				column += 2
			}
		} else if column += n; i > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
	}
	return b.String()
}

// sharedFields are the fields of a method that stand on the page of one before it in the registry, by that method: with
// the same description, and three or more of them.
func sharedFields(e method.Entry) map[string][]method.Field {
	first := map[method.Field]string{}
	shared := map[string][]method.Field{}
	for _, other := range method.Registry() {
		for _, f := range other.Fields() {
			if by, ok := first[f]; !ok {
				first[f] = other.Name
			} else if other.Name == e.Name {
				shared[by] = append(shared[by], f)
			}
		}
		if other.Name == e.Name {
			break
		}
	}
	maps.DeleteFunc(shared, func(_ string, fields []method.Field) bool { return len(fields) < 3 })
	return shared
}

// methodHead is how the page of a method begins, paragraph by paragraph.
func methodHead(e method.Entry) []string {
	about, size := utf8.DecodeRuneInString(e.About)
	head := []string{"# `" + e.Name + "`", string(unicode.ToUpper(about)) + e.About[size:] + ".", "**When to use it:** " + e.Use + ".", "## Fields"}
	kinds := map[string]string{"int": "whole number", "float64": "number", "bool": "true or false", "string": "text"}
	none, shared := len(head), sharedFields(e)
	for _, f := range e.Fields() {
		item := fmt.Sprintf("- `%s` (%s): %s", f.Name, kinds[f.Type], f.Doc)
		for by, fields := range shared {
			if i := slices.Index(fields, f); i == 0 {
				var names []string
				for _, f := range fields {
					names = append(names, "`"+f.Name+"`")
				}
				item = fmt.Sprintf("- %s: as in [`%s`](%s.md#fields)", strings.Join(names, ", "), by, by)
			} else if i > 0 {
				item = ""
			}
		}
		if item != "" {
			head = append(head, item)
		}
	}
	if len(head) == none {
		head = append(head, "There is nothing to set.")
	}
	return head
}

// TestMethodPages compares docs/methods with the registry, and prints the lines that are missing.
func TestMethodPages(t *testing.T) {
	index := prose(read(t, "methods/README.md"))
	known := []string{"methods/README.md"}
	for _, e := range method.Registry() {
		if item := fmt.Sprintf("- [`%s`](%s.md): %s", e.Name, e.Name, e.About); !strings.Contains(index, prose(item)) {
			t.Errorf("docs/methods/README.md: the list has no line for %s; add\n%s", e.Name, filled(item))
		}
		name := "methods/" + e.Name + ".md"
		known = append(known, name)
		head := methodHead(e)
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			begin := ""
			for i := range head {
				if begin += "\n"; i > 0 && strings.HasPrefix(head[i], "- ") && strings.HasPrefix(head[i-1], "- ") {
					begin += filled(head[i])
				} else {
					begin += "\n" + filled(head[i])
				}
			}
			t.Errorf("docs/%s is missing. It begins as follows, and goes on with the sections \"## The method\" and \"## Deviations from the paper\":%s", name, begin)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		rest, whole := prose(string(b)), true
		for _, want := range head {
			_, after, ok := strings.Cut(rest, prose(want))
			if !ok {
				t.Errorf("docs/%s does not have, in this place,\n%s", name, filled(want))
				whole = false
				continue
			}
			rest = after
		}
		fields, _, _ := strings.Cut(section(t, string(b), "## Fields"), "\n#")
		if n, want := strings.Count("\n"+fields, "\n- "), len(head)-4; whole && strings.HasPrefix(head[4], "- ") && n != want {
			t.Errorf("docs/%s has %d items under \"## Fields\"; by the method's fields it has these %d:\n%s", name, n, want,
				strings.Join(head[4:], "\n"))
		}
	}
	if found, err := filepath.Glob("methods/*.md"); err != nil {
		t.Fatal(err)
	} else {
		for _, name := range found {
			if !slices.Contains(known, filepath.ToSlash(name)) {
				t.Errorf("docs/%s is the page of no method", filepath.ToSlash(name))
			}
		}
	}
}

// TestModelsPage compares the pages of models, of owners' methods and of outputs with the code.
func TestModelsPage(t *testing.T) {
	page := read(t, "reference/models.md")
	models := section(t, page, "## Losses")
	listed := names(table(t, models))
	for i, name := range model.Names() {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/reference/models.md: the table under \"## Losses\" has no model %s; write, as row %d,\n| `%s` | "+
				"its label | the loss of one row | bound on its gradient | bound on its curvature |\nand below a section \"### "+
				"…\" if there is more to say: fields of its own, what it predicts, when to use it", name, i+1, name)
		}
	}
	if !t.Failed() {
		compare(t, "models", listed, model.Names())
	}
	_, regularizers, _ := strings.Cut(models, "| field | penalty |")
	compare(t, "regularizers", names(table(t, "| field | penalty |"+regularizers)), []string{"l2", "l1", "nonconvex"})
	var outputs []string
	for _, o := range method.Outputs {
		outputs = append(outputs, string(o))
	}
	for _, e := range gossip.Registry() {
		names, docs := e.Fields()
		var want [][]string
		for i := range names {
			want = append(want, []string{"`" + names[i] + "`", docs[i]})
		}
		heading, network := "### `"+e.Name+"`: "+e.About, read(t, "how-to/network.md")
		if !strings.Contains(network, "\n"+heading+"\n") {
			t.Errorf("docs/how-to/network.md has no section of the method %s; write under \"## Methods\" one that "+
				"begins\n%s\n\nwith a table of its fields, each with its meaning: %q", e.Name, heading, want)
		} else if got := table(t, section(t, network, heading)); !reflect.DeepEqual(got, want) {
			t.Errorf("docs/how-to/network.md, %s: the page has the fields\n%q\nthe method\n%q", heading, got, want)
		}
	}
	compare(t, "outputs", names(table(t, section(t, read(t, "methods/README.md"), "## Outputs"))), outputs)
}

// fields are the yaml names of a struct.
func fields(v any) []string {
	var out []string
	typ := reflect.TypeOf(v)
	for i := range typ.NumField() {
		if tag := typ.Field(i).Tag.Get("yaml"); tag != "" && tag != "-" {
			out = append(out, tag)
		}
	}
	return out
}

// TestFormatsHaveSections: each format of tables has a section in the reference, to which the list of formats links.
func TestFormatsHaveSections(t *testing.T) {
	const page, above = "reference/spec.md", "## Formats of tables"
	text := section(t, read(t, page), above)
	list, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	for _, f := range source.Formats() {
		name := regexp.MustCompile(`^(an?|images) \(?|\)$| file$`).ReplaceAllString(f.Name, "")
		name = strings.TrimPrefix(name, "table of a ")
		found := regexp.MustCompile(`(?m)^### (.*` + regexp.QuoteMeta(name) + `.*)$`).FindStringSubmatch(text)
		if found == nil {
			t.Errorf("docs/%s has no section of the format %q, which data/source reads; write under %q\n\n### %s files\n\nHow "+
				"such a file is told from others, how it names rows and columns, which values it may hold, what is refused.", page,
				f.Name, above, name)
		} else if anchor := "(#" + slug(found[1]) + ")"; !strings.Contains(list, anchor) {
			t.Errorf("docs/%s: the first paragraph under %q lists the formats, without a link to the section %q; add [%s]%s",
				page, above, found[1], name, anchor)
		}
	}
}

// TestSpecPage compares the fields that the code accepts with job.Fields and schema.Fields, of which TestFields makes the tables of
// docs/reference/spec.md, and with the tables of other pages.
func TestSpecPage(t *testing.T) {
	blocks := map[string]config.Block{}
	for _, b := range slices.Concat(job.Fields(), schema.Fields()) {
		blocks[b.Title] = b
	}
	names := func(title string) (all []string) {
		for _, f := range blocks[title].Fields {
			all = append(all, f.Name)
		}
		return slices.Sorted(slices.Values(all))
	}
	_, err := run.LoadSpec("", []run.Override{{Path: "no-such-field", Value: "1"}})
	if err == nil {
		t.Fatal("an unknown field is accepted")
	}
	_, list, ok1 := strings.Cut(err.Error(), "the fields are ")
	list, _, ok2 := strings.Cut(list, ", and those")
	if !ok1 || !ok2 {
		t.Fatalf("the error of an unknown field does not list the fields: %v", err)
	}
	sorted := func(all []string) []string { return slices.Sorted(slices.Values(all)) }
	compare(t, "top level", names("Top level"), sorted(strings.Split(list, ", ")))
	own := fields(run.ModelSpec{})
	for _, e := range model.Registry() {
		own = append(own, config.Names(e.Config)...)
	}
	compare(t, "block model", names("Block `model`"), slices.Compact(sorted(own)))
	compare(t, "block privacy", names("Block `privacy`"), sorted(fields(run.PrivacySpec{})))
	for _, name := range model.Names() {
		if !strings.Contains(blocks["Block `model`"].Fields[0].Doc, "`"+name+"`") {
			t.Errorf("the field model.name does not tell of %s", name)
		}
	}
	of := func(page, heading string) (all []string) {
		for _, r := range table(t, section(t, read(t, page), heading)) {
			all = append(all, strings.Trim(r[0], "`"))
		}
		return all
	}
	compare(t, "block disclosure", of("how-to/disclosure.md", "## Block `disclosure`"), fields(runlog.Statements{}))
	compare(t, "block network", of("how-to/network.md", "## The block `network` of a spec"), fields(netplan.Network{}))
	compare(t, "block compare", of("how-to/compare.md", "## The block `compare` of a spec"), fields(job.Comparison{}))

	// The schema's reader says which fields it knows when it meets another one.
	sources := map[string]string{
		"Top level of the schema": "no-such-field: 1\n",
		"Block `format`":          "format: {no-such-field: 1}\n",
		"Block `image`":           "dataset: d\nformat: {kind: idx}\nimage: {no-such-field: 1}\n",
		"Block `unit`":            "dataset: d\nunit: {no-such-field: 1}\n",
	}
	for _, c := range schema.ColumnTypes() {
		sources["Columns of type `"+c.Name+"`"] = "dataset: d\ncolumns: [{name: a, type: " + c.Name + ", no-such-field: 1}]\n"
	}
	compare(t, "blocks of a schema", slices.Sorted(maps.Keys(sources)), sorted(slices.Collect(func(yield func(string) bool) {
		for _, b := range schema.Fields() {
			if !yield(b.Title) {
				return
			}
		}
	})))
	for title, src := range sources {
		_, err := schema.Parse("s", []byte(src))
		var bad *config.Error
		_, list, ok := strings.Cut(fmt.Sprint(err), " are ")
		if !errors.As(err, &bad) || !ok || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: an unknown field gives %v", title, err)
			continue
		}
		compare(t, title, names(title), sorted(strings.Split(list, ", ")))
	}
}

// TestReportPage: docs/how-to/report.md explains every section of a report, in their order.
func TestReportPage(t *testing.T) {
	var sections []string
	for _, m := range regexp.MustCompile(`<h2>([^<]+)</h2>`).FindAllStringSubmatch(read(t, "../page/page.html"), -1) {
		sections = append(sections, m[1])
	}
	compare(t, "sections of a report", names(table(t, section(t, read(t, "how-to/report.md"), "## Section by section"))), sections)
}

// tests lists the test functions of each test file of the module.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				found[filepath.ToSlash(rel)] = append(found[filepath.ToSlash(rel)], f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	testFile = regexp.MustCompile("`([\\w/.]+_test\\.go)`: ((?:`\\w+`(?:, )?)+)")
	testName = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Z]\\w*)`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	anchor   = regexp.MustCompile(`<a id="([^"]+)">`)
)

// TestNamedTestsExist: every test that a page names is there; docs/explanation/pitfalls.md
// names file and test in each row.
func TestNamedTestsExist(t *testing.T) {
	all := tests(t)
	known := map[string]bool{}
	for _, list := range all {
		for _, f := range list {
			known[f] = true
		}
	}
	for _, name := range pages(t) {
		for _, m := range testName.FindAllStringSubmatch(read(t, name), -1) {
			if !known[m[1]] {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
	rows := 0
	for n, line := range strings.Split(read(t, "explanation/pitfalls.md"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| pitfall") {
			continue
		}
		rows++
		found := testFile.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			t.Errorf("pitfalls.md:%d: the row names no test", n+1)
		}
		for _, m := range found {
			for _, f := range testName.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(all[m[1]], f[1]) {
					t.Errorf("pitfalls.md:%d: there is no %s in %s", n+1, f[1], m[1])
				}
			}
		}
	}
	if rows < 25 {
		t.Errorf("pitfalls.md has only %d rows", rows)
	}
}

// TestPrivacyPage: the accountants that docs/explanation/privacy.md explains are those there are.
func TestPrivacyPage(t *testing.T) {
	got, want := names(table(t, section(t, read(t, "explanation/privacy.md"), "## How ε is found"))), account.Names()
	compare(t, "accountants", slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)))
}

// reviewed are the issues and findings from which the pitfalls come: issue threads of
// other systems, and the review of the papers' soundness.
var reviewed = strings.Fields(`
	opacus#571 #819 #616 jax_privacy private-transformers#7 opacus#80 google/differential-privacy#378 PR#464 #601 #602 #604 #637
	prv_accountant#36 PR#351 dpsynth#71 #346 #566 PR#400 #775 tensorflow/privacy#76 PR#438 diffprivlib#97 PR#98 #105 #104 PR#110
	diffprivlib#20 #102 smartnoise-sdk#317 #621 #622 #117 #373 #573 #306 #308 #587 opacus#692 PR#707 #757 #539 PR#814 flower#605
	NVFlare#343 FLIP#1145 MediSwarm#530 sonar#63 scikit-learn#30114
	Annamalai Lebeda Mironov Casacuberta Lyu Talwar Steinke AMP Tramèr
	S-0a S-0b S-0c S-0d S-0e S-0f S-1a S-1b S-2a S-2b S-2c S-2d S-2e S-2f S-3 S-4a S-4b S-4c S-4d S-4e S-4f S-4g S-4h S-B1 S-B2 S-B3 S-B4`)

// TestArchitecturePage compares the table of packages with the code: each package is in it, and imports only from its own row and
// the rows above. Every file and function that the page names is there.
func TestArchitecturePage(t *testing.T) {
	const module = "github.com/sottodp/sotto/"
	page := read(t, "explanation/architecture.md")
	row := map[string]int{}
	for i, r := range table(t, section(t, page, "## Packages")) {
		for name := range strings.SplitSeq(r[0], ", ") {
			row[strings.Trim(name, "`")] = i
		}
	}
	cmd := exec.Command("go", "list", "-f", `{{if .GoFiles}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(strings.ReplaceAll(line, module, ""))
		name := imports[0]
		if strings.HasPrefix(name, "internal/") || strings.HasSuffix(name, "test") { // helpers, and those of tests
			continue
		}
		at, ok := row[name]
		if !ok {
			t.Errorf("the table of packages has no %s: write it into the row below all that it imports", name)
			continue
		}
		listed++
		for _, other := range imports[1:] {
			if below, ok := row[other]; ok && below > at {
				t.Errorf("%s imports %s, which is in a row below", name, other)
			}
		}
	}
	if listed != len(row) {
		t.Errorf("the table names %d packages, the code has %d of them", len(row), listed)
	}
	for _, f := range [][2]string{{"run/fold.go", "func (w *walk) fold("}, {"access/decide.go", "func Decide("}, {"run/job/allows.go", "func (j *Job) Allows("}} {
		if !strings.Contains(read(t, filepath.Join(root, f[0])), f[1]) {
			t.Errorf("the page speaks of %q in %s", f[1], f[0])
		}
	}
}

// TestPitfallsAreComplete: none of what was reviewed is left out, met or not.
func TestPitfallsAreComplete(t *testing.T) {
	page := read(t, "explanation/pitfalls.md")
	for _, name := range reviewed {
		if !regexp.MustCompile(regexp.QuoteMeta(name) + `\b`).MatchString(page) {
			t.Errorf("pitfalls.md does not speak of %s", name)
		}
	}
}

// slug is how a heading is linked to.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(strings.ReplaceAll(s, "`", "")))
}

// TestLinks: every link to a file of the project, and to a heading in it, leads there.
func TestLinks(t *testing.T) {
	for _, name := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), filepath.FromSlash(target))
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, m[1])
				continue
			}
			if fragment == "" || info.IsDir() {
				continue
			}
			text, found := read(t, file), false
			for _, h := range heading.FindAllStringSubmatch(text, -1) {
				found = found || slug(h[1]) == fragment
			}
			for _, a := range anchor.FindAllStringSubmatch(text, -1) {
				found = found || a[1] == fragment
			}
			if !found {
				t.Errorf("%s: %s has no heading for #%s", name, file, fragment)
			}
		}
	}
}

// TestNamedPagesExist: every page of docs that a program, a comment or a message names is there.
func TestNamedPagesExist(t *testing.T) {
	page := regexp.MustCompile(`\bdocs/[\w./-]+\.(?:md|json|svg|png)\b`)
	named := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".ci" || slices.Contains([]string{"testdata", "dist", "runs"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".py", ".yaml", ".yml", ".html", ".ipynb", ""}, filepath.Ext(name)) {
			return nil
		}
		for _, m := range page.FindAllString(read(t, name), -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m))); err != nil {
				t.Errorf("%s names %s, which does not exist", name, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 40 {
		t.Errorf("found only %d names of pages", named)
	}
}

// TestClinic: the committed table is what the schema and the seed make.
func TestClinic(t *testing.T) {
	schema, err := data.LoadSchema(filepath.Join(root, "examples/clinic/schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if _, err := data.Synth(schema, 5000, 1, &all); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(all.String(), "\n")
	for name, want := range map[string]string{
		"patients.csv": strings.Join(lines[:4001], ""),
		"heldout.csv":  lines[0] + strings.Join(lines[4001:], ""),
	} {
		if got := read(t, filepath.Join(root, "examples/clinic", name)); got != want {
			t.Errorf("%s differs from what examples/clinic/README.md makes, on %s/%s", name, runtime.GOOS, runtime.GOARCH)
		}
	}
}

// TestADRs: each has its parts and stands in the list.
func TestADRs(t *testing.T) {
	list := read(t, "adr/README.md")
	files, err := filepath.Glob("adr/0*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	numbers := map[string]string{}
	for _, name := range files {
		text := read(t, name)
		base := filepath.Base(name)
		if other := numbers[base[:4]]; other != "" {
			t.Errorf("%s: has the number of %s", name, other)
		}
		numbers[base[:4]] = name
		for _, part := range []string{"**Context.**", "**Decision.**", "**Consequences.**"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: has no %s", name, part)
			}
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		if !strings.Contains(list, "["+title+"]("+base+")") {
			t.Errorf("%s: is not listed in adr/README.md as [%s](%s)", name, title, base)
		}
	}
}
