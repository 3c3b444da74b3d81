package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/web"
)

func serveCommand() *cobra.Command {
	var where string
	var port int
	c := &cobra.Command{
		Use:   "serve [DIR…]",
		Short: "Show runs and budgets in the browser, live while they train",
		Long: `Serve shows directories as pages: runs while they train and afterwards, with report
and verification, comparisons, searches, audits, owners' runs in networks, and the
ledger's datasets.
Without DIR it shows runs, compare, tuned and audit, if they exist.

It writes nothing, listens only on this machine, and admits only the browser that
opens the printed link, which may open it again. Enter prints a link for another
browser; Ctrl-C stops it.`,
		Example: "  sotto serve\n  sotto serve runs compare --port 8080",
		RunE: func(c *cobra.Command, dirs []string) error {
			if port < 0 || port > 65535 {
				return usageError("--port: found %d; choose 1 to 65535, or 0 for any free one", port)
			}
			if len(dirs) == 0 {
				if dirs = slices.DeleteFunc(slices.Clone(usual), missing); len(dirs) == 0 {
					return usageError("found none of the directories %s here; name one that holds runs", strings.Join(usual, ", "))
				}
			}
			s, err := web.New(web.Options{Dirs: dirs, Ledger: where, Version: runlog.Version()})
			if err != nil {
				return usageError("%v", err)
			}
			l, err := web.Listen(port)
			if errors.Is(err, syscall.EADDRINUSE) {
				return usageError("--port: %d is in use; choose a free one, or 0 for any", port)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s\n", s.Link(l))
			fmt.Fprintln(c.ErrOrStderr(), "This link works in one browser, on this machine. Enter prints one for another browser; Ctrl-C ends it.")
			readInBackground()
			go func() { // until the command ends, or its input does
				for lines := bufio.NewScanner(c.InOrStdin()); lines.Scan(); {
					fmt.Fprintf(c.OutOrStdout(), "%s\n", s.NewLink(l))
				}
			}()
			return s.Serve(c.Context(), l)
		},
	}
	c.Flags().StringVar(&where, "ledger", "", ledgerUsage)
	c.Flags().IntVar(&port, "port", 0, "port to listen on (default: any free one)")
	return c
}

// usual are the default output directories of fit, compare, tune and audit.
var usual = []string{"runs", "compare", "tuned", "audit"}

func missing(dir string) bool {
	info, err := os.Stat(dir)
	return err != nil || !info.IsDir()
}
