package cli

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/run/runlog"
)

// ownerFlags declares the fields of a spec that an owner may set; the owners agree on the others.
func ownerFlags(c *cobra.Command, label *string) {
	c.Flags().StringVar(label, "label", "", labelUsage)
	addSomeSpecFlags(c, "any field of the spec outside the block network, as in --set model.l2=0.01", "holdout", "method",
		"out", "output", "label")
}

// crashAt, set only by tests, is called at the points where an owner's process may die.
var crashAt func(point string)

func nodeCommand() *cobra.Command {
	var o party.Options
	var asJSON, quiet bool
	var m meters
	c := &cobra.Command{
		Use:   "node spec.yaml",
		Short: "Train as one owner of a network",
		Long: `Node trains on one owner's rows, together with the other owners, and ends with the model of all. The owners agreed on
the spec; --data, --ledger and the directory are the owner's own. Node reserves the owner's budget in its own ledger before
it reads a row, and writes each release to its journal before it sends it. After a crash, repeat the command with the same
--dir: nothing is drawn twice.

--key is the owner's own key (sotto net key). With --fingerprint, node refuses every network but the one whose fingerprint
the owners have compared (sotto net fingerprint); where owners add up masked sums, it is required.`,
		Example: "  sotto node sotto.yaml --credentials clinic-a.json --key clinic-a.key --data patients.csv --dir part",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			for flag, d := range map[string]time.Duration{"join": o.Join, "wait": o.Wait} {
				if d <= 0 {
					return usageError("--%s: found %v; write more than 0, as in %s", flag, d, c.Flag(flag).DefValue)
				}
			}
			var err error
			if o.Data, err = c.Flags().GetString("data"); err != nil {
				return err
			}
			if o.Credentials == "" || o.Data == "" {
				return usageError("--credentials FILE and --data FILE are needed: who the owner is, and its rows")
			}
			if o.Plan.Flags, err = overridesOf(c.Flags(), "data"); err != nil { // the owners agree on the rest
				return err
			}
			o.Spec, o.Version, o.Crash, o.Report = args[0], runlog.Version(), crashAt, page.Write
			w := c.ErrOrStderr()
			if !quiet {
				unit := ""
				show := tenths(func(done, all int) { fmt.Fprintf(w, "%d of %d %s\n", done, all, unit) })
				o.Progress = func(of string, done, all int) { unit = of; show(done, all) }
				o.Waiting = func(what string) { fmt.Fprintf(w, "waiting for %s\n", readable(what)) }
			}
			o.Notice, o.MetricsTimings = warner(c), m.timings
			if err := serveNode(c, &m, &o); err != nil {
				return err
			}
			defer m.close()
			r, err := party.Run(c.Context(), o)
			if err == nil && asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(r)
			}
			return answer(c, false, r, instead(err))
		},
	}
	f := c.Flags()
	ownerFlags(c, &o.Plan.Label)
	m.add(f, true)
	f.StringVar(&o.Credentials, "credentials", "", "file that says who the owner is (required)")
	f.StringVar(&o.Key, "key", "", "file of the owner's own key, unless the organizer made the keys")
	f.StringVar(&o.Fingerprint, "fingerprint", "", "fingerprint of the network as the owners have compared it")
	f.StringVar(&o.Dir, "dir", "", "the owner's run directory (required)")
	f.StringVar(&o.Hub, "hub", "", "URL of the hub, if it is not the network's")
	f.DurationVar(&o.Join, "join", 10*time.Minute, "how long to wait for all owners")
	f.DurationVar(&o.Wait, "wait", 30*time.Second, "how long to wait for a peer's vector in an exchange")
	f.BoolVar(&o.Void, "void", false, "of a lab run: "+voids)
	addOutput(f, &asJSON, &quiet, "the result, ")
	return c
}

// serveNode serves how many of the run's activations or steps are done, which the other owners see, too.
func serveNode(c *cobra.Command, m *meters, o *party.Options) error {
	if err := m.begin("node", runStates...); err != nil {
		return err
	}
	if m.address != "" {
		var done, most atomic.Int64
		m.gauge("sotto_activations", func() float64 { return float64(done.Load()) })
		m.gauge("sotto_activations_max", func() float64 { return float64(most.Load()) }) // 0 until the owners have met
		before := o.Progress
		o.Progress = func(unit string, n, all int) {
			done.Store(int64(n))
			most.Store(int64(all))
			m.state.Store(stateTraining)
			if before != nil {
				before(unit, n, all)
			}
		}
	}
	return m.serve(c, func(format string, args ...any) {
		if o.Waiting != nil { // not --quiet
			fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...)
		}
	})
}

func netStatusCommand() *cobra.Command {
	var credentials, hub string
	c := &cobra.Command{
		Use:   "status DIR",
		Short: "Print the progress of an owner's run",
		Long: `Status counts the activations in the journal of an owner's run directory, or in a network of mode sum the steps of its
run log. With credentials it also asks the hub which owners have joined, train or are done.`,
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
				fmt.Fprintf(w, "%s: %s, %d of %d %s, run %s\n", st.Network, st.Status, st.Done, st.Activations, st.Unit, st.Run)
			}
			if credentials == "" {
				return nil
			}
			all, full, err := party.ReadPresence(c.Context(), credentials, st.Dim, hub)
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
	c.Flags().StringVar(&hub, "hub", "", "URL of the hub, where it is not the network's")
	return c
}
