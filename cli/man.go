package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the pages of the manual, one for each command",
		Long: `Man writes a page for each command to DIR, which it makes: sotto.1, sotto-fit.1 and so
on. Copy them to a directory of man's path, such as /usr/local/share/man/man1.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return usageError("%v", err)
			}
			c.Root().DisableAutoGenTag = true
			date := time.Unix(0, 0).UTC() // the same bytes each time
			if err := doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: "Sotto", Manual: "Sotto", Date: &date},
				dir); err != nil {
				return err
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%d files in %s\n", len(entries), dir)
			return nil
		},
	}
}
