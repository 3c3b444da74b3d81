package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run"
)

// ownerFlags are those of a spec that an owner may give: the rest is agreed on.
func ownerFlags(f *pflag.FlagSet, label *string) {
	f.StringVar(label, "label", "", "the schema's column to predict, when it is not the schema's label")
	addSomeSpecFlags(f, "any field of the spec outside the block network, as in --set model.l2=0.01", "method", "out", "output", "label")
}

// crashAt, set by tests alone, is told of the places where an owner's process may die.
var crashAt func(point string)

func nodeCommand() *cobra.Command {
	var o party.Options
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "node spec.yaml",
		Short: "Take part, as one owner, in a training among owners",
		Long: `Node is one owner's part of a training: it joins with its credentials, trains on its own rows and leaves with the model of all.
The spec is the one that the owners agreed on; --data, --ledger and the directory are the owner's own.

Before the first row is drawn the owner's budget is reserved in its own ledger. What it releases is in its
journal, durable, before it goes out. After a crash start it again with the same --dir: nothing is drawn twice.`,
		Example: "  sotto node sotto.yaml --credentials clinic-a.json --data patients.csv --dir part",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			for flag, d := range map[string]time.Duration{"join": o.Join, "wait": o.Wait} {
				if d <= 0 {
					return usageError("--%s: found %v; allowed is more than 0, as in %s", flag, d, c.Flag(flag).DefValue)
				}
			}
			var err error
			if o.Data, err = c.Flags().GetString("data"); err != nil {
				return err
			}
			if o.Credentials == "" || o.Data == "" {
				return usageError("--credentials FILE and --data FILE are needed: who the owner is, and its rows")
			}
			if o.Plan.Flags, err = overridesOf(c.Flags()); err != nil {
				return err
			}
			o.Plan.Flags = withoutData(o.Plan.Flags)
			o.Spec, o.Version, o.Crash = args[0], run.Version(), crashAt
			w := c.ErrOrStderr()
			if !quiet {
				o.Progress = tenths(func(activations, all int) { fmt.Fprintf(w, "%d of %d activations\n", activations, all) })
				o.Waiting = func(what string) { fmt.Fprintf(w, "waiting for %s\n", what) }
			}
			o.Notice = warner(c)
			r, err := party.Run(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(r)
			}
			r.Text(c.OutOrStdout())
			return nil
		},
	}
	f := c.Flags()
	ownerFlags(f, &o.Plan.Label)
	f.StringVar(&o.Credentials, "credentials", "", "file that says who the owner is (required)")
	f.StringVar(&o.Dir, "dir", "", "directory of the owner's part (required)")
	f.StringVar(&o.Client.URL, "hub", "", "URL of the hub, where it is not the network's")
	f.DurationVar(&o.Join, "join", 10*time.Minute, "how long to wait for all owners")
	f.DurationVar(&o.Wait, "wait", 30*time.Second, "how long to wait for a peer's vector before the exchange is given up")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.BoolVar(&o.Void, "void", false, "of a lab run: "+voids)
	f.BoolVar(&quiet, "quiet", false, "print nothing but the result, warnings and errors")
	return c
}

// withoutData leaves out whose rows these are: all owners agree on the rest.
func withoutData(flags []run.Override) (rest []run.Override) {
	for _, f := range flags {
		if f.Path != "data" {
			rest = append(rest, f)
		}
	}
	return rest
}

func netStatusCommand() *cobra.Command {
	var credentials string
	var o transport.ClientOptions
	c := &cobra.Command{
		Use:   "status DIR",
		Short: "Say how far an owner's part has come",
		Long: `Status reads an owner's directory: how many of its activations are in its journal. With credentials it asks the hub, too,
who has come, who trains and who is done.`,
		Example: "  sotto net status part\n  sotto net status part --credentials clinic-a.json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			st, err := party.ReadStatus(args[0])
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if st.Status == party.Waiting {
				fmt.Fprintf(w, "%s: %s\n", st.Network, st.Status)
			} else {
				fmt.Fprintf(w, "%s: %s, %d of %d activations, run %s\n", st.Network, st.Status, st.Done, st.Activations, st.Run)
			}
			if credentials == "" {
				return nil
			}
			all, full, err := party.ReadPresence(c.Context(), credentials, st.Dim, o)
			if err != nil {
				return err
			}
			for _, p := range all {
				fmt.Fprintf(w, "%s: %s\n", p.Owner, p.Stage)
			}
			for _, text := range full {
				fmt.Fprintln(w, text)
			}
			return nil
		},
	}
	c.Flags().StringVar(&credentials, "credentials", "", "the owner's credentials, to ask the hub")
	c.Flags().StringVar(&o.URL, "hub", "", "URL of the hub, where it is not the network's")
	return c
}
