package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run"
)

func netKeyCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "key NAME",
		Short: "Make an owner's own key, on its machine",
		Long: `Key makes the key that signs one owner's messages. NAME is the owner's name in the spec. The file of --out is secret and
stays with the owner. The file beside it, with .pub at the end of its name, is public: send it to the organizer for
sotto net init. An owner that loses its key needs a new network.`,
		Example: "  sotto net key north --out north.key",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return usageError("--out FILE is missing: a new file for the key")
			}
			public := out + transport.RequestSuffix
			for _, path := range []string{out, public} {
				if _, err := os.Lstat(path); err == nil {
					return outExists(path)
				}
			}
			key, err := transport.NewOwnerKey(args[0])
			if err != nil {
				return usageError("%v", err)
			}
			request := key.Request()
			if err := errors.Join(key.Write(out), request.Write(public)); err != nil {
				return usageError("--out: %v", err)
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "%s: the secret key of %s\n%s: its public key, for the organizer\n", out, shown(args[0]), public)
			fmt.Fprintf(w, "Fingerprint  %s\n", request.Member().Fingerprint())
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "new file for the key (required)")
	return c
}

func netFingerprintCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "fingerprint FILE|DIR",
		Short: "Print the digits by which owners compare their network",
		Long: `Fingerprint prints 60 digits of the network and 30 of each owner's key. FILE holds an owner's credentials, a network or a
public key; DIR is the organizer's directory.

Before they train, all owners compare the 60 digits of the network, each from its own credentials, over a channel that neither
organizer nor hub controls, as by telephone. Equal digits mean that all have the same roster, with every owner's own key
in it. If they differ, the digits of the keys show which key was replaced.`,
		Example: "  sotto net fingerprint north.json\n  sotto net fingerprint net",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			path := args[0]
			if st, err := os.Stat(path); err == nil && st.IsDir() {
				path = filepath.Join(path, transport.NetworkFile)
			}
			w := c.OutOrStdout()
			if r, err := transport.ReadRequest(path); err == nil {
				fmt.Fprintf(w, "%s  %s\n", shown(r.Name), r.Member().Fingerprint())
				return nil
			}
			n, err := transport.ReadRoster(path)
			if err != nil {
				return &run.InputError{Err: err}
			}
			whole, err := n.Fingerprint()
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "Network %s\n%s\n\n", n.ID, whole)
			table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, m := range n.Owners {
				fmt.Fprintf(table, "%s\t%s\n", shown(m.Name), m.Fingerprint())
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if !n.OwnKeys {
				fmt.Fprintln(w,
					"\nThe organizer made these keys, so it can act in any owner's name, and the fingerprint does not show it.")
			}
			return nil
		},
	}
	return c
}

// shown is a name of somebody else's file, without what would move the terminal's cursor: such a name could
// show other digits than the network's.
func shown(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
