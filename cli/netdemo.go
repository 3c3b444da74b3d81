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
		Long: `Demo runs a network as on several machines: it divides the rows among the owners, and starts on the loopback a hub and
a process for each owner, each with its own credentials, ledger and journal. --dir keeps all files.

This machine holds the rows of all owners: this is an access without protection. For a dataset with a guarantee it
needs --void, which ends the guarantee.`,
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
	ownerFlags(c, &d.Options.Label)
	f.StringVar(&d.Dir, "dir", "", "new directory for hub and owners (default: a temporary one)")
	f.DurationVar(&d.Wait, "wait", 10*time.Second, "how long an owner waits for a peer's vector in an exchange")
	f.BoolVar(&d.Void, "void", false, voids)
	addOutput(f, &asJSON, &quiet, "the result, ")
	return c
}
