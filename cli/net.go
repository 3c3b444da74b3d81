package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/simulate"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/access"
	"github.com/sottodp/sotto/run/trace"
)

func netCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "net",
		Short: "Train among owners that do not share their rows",
	}
	c.AddCommand(netSimulateCommand(), netDemoCommand(), netInitCommand(), netInviteCommand(), netRevokeCommand(), netStatusCommand())
	group(c)
	return c
}

func netSimulateCommand() *cobra.Command {
	var o run.NetworkOptions
	var asJSON, void, quiet bool
	c := &cobra.Command{
		Use:   "simulate spec.yaml",
		Short: "Simulate a network of owners in one process (lab)",
		Long: `Simulate runs all owners of the spec's block network in one process, each with rows, noise and
budget of its own, and prints what each owner's ε against all others would be, the accuracy of the
mean of their models, and the time. The rest of the spec is as for fit; flags override the file.

One process holds the rows of all owners: this is an access to the rows without protection. A
dataset that the ledger knows and that still has a guarantee is used only with --void, which ends it.

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
			warnings, err := p.CheckDelta()
			if err != nil {
				return err
			}
			for _, text := range warnings {
				warn(text)
			}
			env := simulate.Env{Void: void, Notice: warn}
			if !quiet {
				env.Progress = tenths(func(round, all int) { fmt.Fprintf(w, "%d of %d rounds\n", round, all) })
			}
			r, err := p.Run(c.Context(), env)
			return networkResult(c.OutOrStdout(), r, err, asJSON)
		},
	}
	f := c.Flags()
	ownerFlags(f, &o.Label)
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.BoolVar(&void, "void", false, voids)
	f.BoolVar(&quiet, "quiet", false, "print nothing but the result, warnings and errors")
	return c
}

// networkResult prints what a simulation or a demo came to, or says why there is nothing.
func networkResult(w io.Writer, r *simulate.Result, err error, asJSON bool) error {
	switch {
	case errors.Is(err, access.ErrWouldEnd):
		return fmt.Errorf("%w. Use rows that need no protection or a synthetic table (`sotto synth`), or give --void", err)
	case err != nil:
		return err
	case asJSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	printNetwork(w, r)
	return nil
}

func printNetwork(w io.Writer, r *simulate.Result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "owner\tdeclared rows\tactivations\tnoise\tε\ttest\n")
	number := func(v *float64, verb string) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(verb, *v)
	}
	most := 0.0
	for _, o := range r.Owners {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.4g\t%s\t%s\n", o.Name, o.Rows, o.Activations, o.Noise, number(o.Epsilon, "%.4f"), number(o.Test, "%.4f"))
		if o.Epsilon != nil {
			most = max(most, *o.Epsilon)
		}
	}
	t.Flush()
	fmt.Fprintln(w)
	if r.Off {
		fmt.Fprintln(w, "Guarantee  none: no noise")
	} else {
		fmt.Fprintf(w, "Guarantee  ε = %.4f at δ = %v, %v, for any %s against all owners but its own\n", most, r.Delta, r.Adjacency, trace.Whom(r.Unit, r.UnitRows))
		if r.UnitRows > 0 { // R22
			fmt.Fprintf(w, "           The ε of owners add up for a %s who has rows at several\n", r.Unit)
		}
	}
	if s := r.Test; s != nil {
		for name, v := range map[string]*float64{"accuracy": s.Accuracy, "rmse": s.RMSE} {
			if v != nil {
				fmt.Fprintf(w, "Test       %s %.4f of the mean of all owners' models\n", name, *v)
			}
		}
	}
	fmt.Fprintf(w, "Rounds     %d of %s, %.3g of the owners in each; disagreement falls by a factor of %.3g a round\n", r.Rounds, r.Method, r.Share, r.Beta)
	fmt.Fprintf(w, "Time       %.2f s, %.0f rounds a second\n\n%s\n", r.Seconds, r.PerSecond, wrap(r.Unpaid, 100))
}
