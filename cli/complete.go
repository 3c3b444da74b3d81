package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// offer lets the shell complete datasets and run directories: arguments that a command's usage calls DATASET, RUN or
// DIR, and the flags that take a run directory.
func offer(c *cobra.Command) {
	for _, sub := range c.Commands() {
		offer(sub)
	}
	if words := strings.Fields(c.Use); len(words) > 1 && c.ValidArgsFunction == nil {
		switch {
		case words[1] == "DATASET":
			c.ValidArgsFunction = completeDataset
		case words[1] == "RUN", words[1] == "DIR" && c.Name() != "man":
			c.ValidArgsFunction = completeRun
		}
	}
	for _, flag := range []string{"model", "resume", "run"} {
		if _, taken := c.GetFlagCompletionFunc(flag); c.Flags().Lookup(flag) != nil && !taken {
			cobra.CheckErr(c.RegisterFlagCompletionFunc(flag, completeRun))
		}
	}
}

// completeDataset offers the datasets of the ledger.
func completeDataset(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	where := ""
	if flag := c.Flag("ledger"); flag != nil {
		where = flag.Value.String()
	}
	l, err := run.ViewLedger(c.Context(), where)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer l.Close()
	all, err := l.Datasets(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRun offers run directories: here, or in a directory here such as runs. The shell adds files where there are
// none.
func completeRun(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var dirs []string
	for _, pattern := range []string{"*", filepath.Join("*", "*")} {
		files, _ := filepath.Glob(filepath.Join(pattern, runlog.InfoFile)) // the pattern is well formed
		for _, file := range files {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	slices.Sort(dirs)
	return dirs, cobra.ShellCompDirectiveDefault
}
