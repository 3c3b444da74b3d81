package cli

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference/commands and the expected texts of testdata/fixtures again")

// A trial says how the examples of a command are tried, in a directory with a copy of examples/.
type trial struct {
	before string   // commands that make what the examples need
	not    []string // examples that are not run, by how they begin; all others are, in order
	why    string   // what those need
}

const (
	aRun   = "sotto fit examples/clinic/sotto.yaml --out runs/20261120-154800-0a1b2c3d"
	aTable = "cp examples/clinic/*.csv examples/clinic/*.yaml ."
)

var trials = map[string]trial{
	"audit":           {not: []string{"sotto audit examples/adult"}, why: "minutes"},
	"compare":         {not: []string{"sotto compare sotto.yaml"}, why: "tables of your own"},
	"data info":       {before: "sotto data pack --schema examples/clinic/schema.yaml --data examples/clinic/patients.csv --out patients.pack"},
	"data key":        {before: aTable + "\ncp patients.csv part1.csv"},
	"data pack":       {before: "rm -f patients.pack\n" + aTable + "\ngzip patients.csv"},
	"describe":        {before: aTable},
	"disclose":        {before: aRun + "\nssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519", not: []string{"sotto", "ssh-keygen"}, why: "a key of your own"},
	"evaluate":        {before: aRun + "\ncp examples/clinic/heldout.csv test.csv", not: []string{"sotto evaluate --model runs/20261120-154800-0a1b2c3d --data visits.csv"}, why: "a table of your own"},
	"export":          {before: aRun},
	"fit":             {before: "sed 1s/readmitted/y/ examples/clinic/patients.csv > t.csv\nsed 's/name: readmitted/name: y/' examples/clinic/schema.yaml > s.yaml"},
	"hub":             {not: []string{"sotto hub"}, why: "a network"},
	"ledger forecast": {before: aRun + "\nsotto ledger budget clinic --epsilon 5 --delta 1e-4 --adjacency add-or-remove"},
	"ledger charge":   {before: "sotto ledger budget clinic --epsilon 5 --delta 1e-4 --adjacency add-or-remove\nsotto ledger budget spending --epsilon 5 --delta 1e-4 --adjacency add-or-remove --currency zcdp"},
	"net init":        {not: []string{"sotto net init"}, why: "a network"},
	"net fingerprint": {not: []string{"sotto net fingerprint"}, why: "a network"},
	"net invite":      {not: []string{"sotto net invite"}, why: "a network"},
	"net revoke":      {not: []string{"sotto net revoke"}, why: "a network"},
	"net status":      {not: []string{"sotto net status"}, why: "a network"},
	"node":            {not: []string{"sotto node"}, why: "a network"},
	"paper all":       {not: []string{"sotto"}, why: "minutes"},
	"paper p0":        {not: []string{"sotto"}, why: "minutes"},
	"paper p1":        {not: []string{"sotto"}, why: "minutes"},
	"paper p2":        {not: []string{"sotto"}, why: "minutes"},
	"paper p3":        {not: []string{"sotto"}, why: "minutes"},
	"paper p4":        {not: []string{"sotto"}, why: "minutes"},
	"predict":         {before: aRun + "\nhead -n 4 examples/clinic/heldout.csv > new.csv"},
	"report":          {before: aRun},
	"schema bounds":   {before: aTable + "\nsed -i 's/source: adults.*/type: numeric, bounds: unknown}/' schema.yaml"},
	"schema check":    {before: aTable + "\nsotto synth --schema schema.yaml --rows 100 --seed 7 --out trial.csv"},
	"init":            {not: []string{"sotto init"}, why: "your answers"},
	"schema init":     {before: "cp examples/clinic/patients.csv .", not: []string{"sotto schema init patients.csv --ask"}, why: "your answers"},
	"serve":           {not: []string{"sotto serve"}, why: "a browser, and end with Ctrl-C"},
	"tune":            {before: aTable + "\necho 'tune: {methods: [auto, sgd], mean: 3}' >> sotto.yaml"},
	"verify":          {before: aRun},
	"worker":          {not: []string{"sotto fit", "sotto worker"}, why: "several machines"},
}

var indented = regexp.MustCompile(`(?m)(?:^ {2,}\S.*\n?)+`)

// prose is the text of a help as Markdown: what is indented there is a block of code.
func prose(text string) string {
	text = indented.ReplaceAllStringFunc(text, func(block string) string {
		lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
		for i := range lines {
			lines[i] = lines[i][2:]
		}
		return "\n```text\n" + strings.Join(lines, "\n") + "\n```\n"
	})
	return regexp.MustCompile(`\n{3,}`).ReplaceAllString(strings.TrimSpace(text), "\n\n")
}

// flagTable lists the flags of a command.
func flagTable(c *cobra.Command) string {
	var b strings.Builder
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		if b.Len() == 0 {
			b.WriteString("| flag | meaning |\n|---|---|\n")
		}
		name := strings.TrimSpace("--" + f.Name + " " + strings.TrimSuffix(kind, "Array"))
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if !strings.Contains(usage, "(default") && !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(usage))
	})
	return b.String()
}

// referencePage is the page of a command and those below it.
func referencePage(c *cobra.Command, level int) string {
	var b strings.Builder
	path := strings.TrimPrefix(c.CommandPath(), "sotto ")
	fmt.Fprintf(&b, "%s `%s`\n\n", strings.Repeat("#", level), c.CommandPath())
	if c.Long == "" {
		fmt.Fprintf(&b, "%s.\n\n", c.Short)
	} else {
		fmt.Fprintf(&b, "%s\n\n", prose(c.Long))
	}
	if subs := available(c); len(subs) > 0 {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", sub.CommandPath(), strings.ReplaceAll(sub.CommandPath(), " ", "-"), sub.Short)
			}
		}
		b.WriteString("\n")
	} else {
		fmt.Fprintf(&b, "```text\n%s\n```\n\n", strings.TrimSuffix(c.UseLine(), " [flags]"))
	}
	if t := flagTable(c); t != "" {
		fmt.Fprintf(&b, "%s\n", t)
	}
	if c.Example != "" {
		var run, not []string
		try := trials[path]
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if slices.ContainsFunc(try.not, func(start string) bool { return strings.HasPrefix(line, start) }) {
				not = append(not, line)
			} else if line != "" {
				run = append(run, line)
			}
		}
		name := "Examples"
		if len(run)+len(not) == 1 {
			name = "Example"
		}
		if len(run) > 0 {
			if try.before != "" {
				fmt.Fprintf(&b, "%s, after these commands beside a copy of [`examples`](../../../examples):\n\n<!-- test -->\n```sh\n%s\n```\n\n", name, try.before)
			} else {
				fmt.Fprintf(&b, "%s:\n\n", name)
			}
			fmt.Fprintf(&b, "<!-- test -->\n```sh\n%s\n```\n\n", strings.Join(run, "\n"))
			name = "More, which need " + try.why
		}
		if len(not) > 0 {
			if len(run) == 0 {
				name += ", which need " + try.why
			}
			fmt.Fprintf(&b, "%s:\n\n```sh\n%s\n```\n\n", name, strings.Join(not, "\n"))
		}
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			b.WriteString(referencePage(sub, level+1))
		}
	}
	return b.String()
}

// TestReference: docs/reference/commands is what the commands say of themselves; docs runs the examples there.
func TestReference(t *testing.T) {
	dir := filepath.Join("..", "docs", "reference", "commands")
	top := root()
	top.InitDefaultHelpCmd()
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# Commands\n\nEach page is what `sotto help COMMAND` says; a test writes them (`go test ./cli -run TestReference -update`).\n")
	for _, g := range top.Groups() {
		fmt.Fprintf(&index, "\n## %s\n\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range top.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				fmt.Fprintf(&index, "- [`%s`](%s.md): %s\n", c.CommandPath(), c.Name(), c.Short)
				pages[c.Name()+".md"] = strings.TrimRight(referencePage(c, 1), "\n") + "\n"
			}
		}
	}
	pages["README.md"] = index.String()
	for path := range trials {
		c, rest, err := top.Find(strings.Fields(path))
		if err != nil || len(rest) > 0 || c.Example == "" {
			t.Errorf("trials has %q, which is no command with examples", path)
		}
	}
	if *update {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		for name, page := range pages {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	const again = "write the pages again: go test ./cli -run TestReference -update"
	for name, page := range pages {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		} else if string(got) != page {
			t.Errorf("docs/reference/commands/%s is not what the command says; %s", name, again)
		}
	}
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != len(pages) {
		t.Errorf("docs/reference/commands has %d pages, the command %d (%v); %s", len(found), len(pages), err, again)
	}
}
