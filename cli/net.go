package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/simulate"
)

func netCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "net",
		Short: "Train among owners that do not share their rows",
	}
	c.AddCommand(netSimulateCommand(), netDemoCommand(), netKeyCommand(), netInitCommand(), netInviteCommand(),
		netFingerprintCommand(), netRevokeCommand(), netStatusCommand())
	group(c)
	return c
}

func netSimulateCommand() *cobra.Command {
	var o netplan.Options
	var asJSON, void, quiet bool
	c := &cobra.Command{
		Use:   "simulate spec.yaml",
		Short: "Simulate a network of owners in one process (lab)",
		Long: `Simulate runs all owners of the spec's block network in one process. It prints the ε that each owner would have against
all others, the accuracy of the mean of their models, and the time. The rest of the spec is as for fit; flags override it.

One process holds the rows of all owners: this is an access without protection. For a dataset with a guarantee it
needs --void, which ends the guarantee.

` + "`sotto help methods`" + ` lists the methods (network.method), ` + "`sotto help METHOD`" + ` the fields of one.`,
		Example: `  sotto net simulate examples/network/sotto.yaml
  sotto net simulate examples/network/sotto.yaml --epsilon 0.5 --json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if o.Flags, err = overridesOf(c.Flags()); err != nil {
				return err
			}
			p, err := simulate.New(args[0], o)
			if err != nil {
				return err
			}
			w := c.ErrOrStderr()
			warn := warner(c)
			if err := p.CheckDelta(warn); err != nil {
				return err
			}
			env := simulate.Env{Void: void, Notice: warn}
			if !quiet {
				env.Progress = tenths(func(round, all int) { fmt.Fprintf(w, "%d of %d rounds\n", round, all) })
			}
			r, err := p.Run(c.Context(), env)
			return networkResult(c, r, err, asJSON)
		},
	}
	f := c.Flags()
	ownerFlags(c, &o.Label)
	f.BoolVar(&void, "void", false, voids)
	addOutput(f, &asJSON, &quiet, "the result, ")
	return c
}

// networkResult prints the result of a simulation or a demo.
func networkResult(c *cobra.Command, r *simulate.Result, err error, asJSON bool) error {
	return answer(c, asJSON, r, instead(err))
}

// instead says what else to do if an access would end a guarantee.
func instead(err error) error {
	if errors.Is(err, access.ErrWouldEnd) {
		return fmt.Errorf("%w. Use rows that need no protection or a synthetic table (`sotto synth`), or give --void", err)
	}
	return err
}
