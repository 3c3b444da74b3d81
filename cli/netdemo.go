package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/demo"
)

func netDemoCommand() *cobra.Command {
	var d demo.Demo
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "demo spec.yaml",
		Short: "Run a network on this machine: a hub and a process for each owner (lab)",
		Long: `Demo does what net simulate does, but as owners on machines of their own would: it divides the rows among them, starts a
hub and a process for each owner on the loopback, each with credentials, ledger and journal of its own, and
waits for the models. With --dir all that stays behind can be read.

This machine holds the rows of all owners: this too is an access to the rows without protection. A
dataset that the ledger knows and that still has a guarantee is used only with --void, which ends it.`,
		Example: "  sotto net demo examples/network/sotto.yaml --dir demo",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if d.Options.Flags, err = overridesOf(c.Flags()); err != nil {
				return err
			}
			if !quiet {
				d.Progress = c.ErrOrStderr()
			}
			d.Spec, d.Notice = args[0], warner(c)
			r, err := d.Run(c.Context())
			return networkResult(c, r, err, asJSON)
		},
	}
	f := c.Flags()
	ownerFlags(f, &d.Options.Label)
	f.StringVar(&d.Dir, "dir", "", "new directory for hub and owners (default: one that is removed at the end)")
	f.DurationVar(&d.Wait, "wait", 10*time.Second, "how long an owner waits for a peer's vector before the exchange is given up")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.BoolVar(&d.Void, "void", false, voids)
	f.BoolVar(&quiet, "quiet", false, "print nothing but the result, warnings and errors")
	return c
}
