package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/internal/text"
	"github.com/sottodp/sotto/method"
)

// groups are the groups of commands in the root's help.
var groups = []struct {
	id, title string
	commands  []func() *cobra.Command
}{
	{"train", "Train and predict:",
		[]func() *cobra.Command{initCommand, fitCommand, tuneCommand, predictCommand, evaluateCommand, exportCommand,
			schemaCommand, describeCommand, synthCommand, dataCommand}},
	{"plan", "Plan:", []func() *cobra.Command{planCommand}},
	{"budget", "Budget:", []func() *cobra.Command{ledgerCommand}},
	{"check", "Check:",
		[]func() *cobra.Command{verifyCommand, discloseCommand, auditCommand, reportCommand, serveCommand, doctorCommand}},
	{"network", "Network:", []func() *cobra.Command{netCommand, hubCommand, nodeCommand, workerCommand}},
	{"research", "Research:", []func() *cobra.Command{compareCommand, paperCommand}},
	{"about", "About Sotto:", []func() *cobra.Command{versionCommand, manCommand}},
}

func addCommands(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, command := range g.commands {
			c := command()
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommand(helpCommand())
	root.SetHelpCommandGroupID("about")
	root.SetCompletionCommandGroupID("about")
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | methods | METHOD]",
		Short: "Help for a command; the methods, or one of them with its fields",
		Example: `  sotto help fit
  sotto help methods
  sotto help sgd`,
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return slices.Concat([]string{"methods"}, methodNames(), available(c.Root())), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			w := c.OutOrStdout()
			if len(args) == 1 && args[0] == "methods" {
				listMethods(w)
				return nil
			}
			if len(args) == 1 && helpMethod(w, args[0]) {
				return nil
			}
			sub, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError("help: found %q; write a command, methods, or the name of a method", strings.Join(args, " "))
			}
			sub.InitDefaultHelpFlag()
			return sub.Help()
		},
	}
}

// listMethods lists every method in one or two lines.
func listMethods(w io.Writer) {
	line := func(name, about string) {
		fmt.Fprintf(w, "  %-13s%s\n", name, text.Indented(about, 98, 15))
	}
	fmt.Fprintln(w, "Methods of fit (method.name in a spec, or --method):")
	for _, e := range method.Registry() {
		about, _, _ := strings.Cut(e.About, "; ") // the rest is shown with its fields
		line(e.Name, about)
	}
	fmt.Fprintln(w, "\nMethods of a network (network.method):")
	for _, e := range gossip.Registry() {
		line(e.Name, e.About)
	}
	fmt.Fprintln(w,
		"\n`sotto help METHOD` shows the fields of one, `sotto plan SPEC --explain` what a method chooses for a spec.")
}

// helpMethod shows one method with its fields.
func helpMethod(w io.Writer, name string) bool {
	field := func(name, doc string) {
		fmt.Fprintf(w, "  %-18s%s\n", name, text.Indented(doc, 90, 20))
	}
	if e, err := method.Lookup(name); err == nil {
		fmt.Fprintf(w, "%s\n\nUse it %s.\n", text.Wrap(e.Name+": "+e.About, 110), text.Wrap(e.Use, 100))
		fmt.Fprintln(w, "\nFields (--set method.FIELD=VALUE, or in the block method of a spec):")
		fields := slices.DeleteFunc(e.Fields(), func(f method.Field) bool { return f.Name == "-" })
		for _, f := range fields {
			field(f.Name, f.Doc)
		}
		if len(fields) == 0 {
			fmt.Fprintln(w, "  none")
		}
		fmt.Fprintf(w, "\nMore: docs/methods/%s.md\n", e.Name)
		return true
	}
	e, err := gossip.Lookup(name)
	if err != nil {
		return false
	}
	fmt.Fprintf(w, "%s: %s\n\nFields (in the block network of a spec):\n", e.Name, e.About)
	names, docs := e.Fields()
	for i := range names {
		field(names[i], docs[i])
	}
	fmt.Fprintln(w, "\nMore: docs/how-to/network.md")
	return true
}
