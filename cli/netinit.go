package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/run"
)

func netInitCommand() *cobra.Command {
	var o netplan.Options
	var dir, hub string
	c := &cobra.Command{
		Use:   "init spec.yaml [OWNER.key.pub ...]",
		Short: "Found a network from the agreement of its owners",
		Long: `Init founds a training among owners from the spec that they agreed on and the public key of each owner, which
sotto net key made. It reads no row. The directory holds

  organiser.json  secret of the organizer: keys of operator, accounts, connections and certificates
  hub.json        secret of the hub, for sotto hub
  network.json    public: the owners, their public keys, a hash of each part of the agreement; the other files hold it too

sotto net invite then makes the credentials of each owner.

Without public keys, init makes the owners' keys, too. The organizer can then act in any owner's name, and no fingerprint
shows it.`,
		Example: "  sotto net init sotto.yaml north.key.pub south.key.pub --dir net --hub tls://hub.example.org:4222",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" || hub == "" {
				return usageError("--dir DIR and --hub tls://HOST:PORT are needed: a new directory for the keys, and where owners find the hub")
			}
			var err error
			if o.Flags, err = overridesOf(c.Flags(), "data"); err != nil {
				return err
			}
			o.Apart = true
			p, err := netplan.Prepare(args[0], o)
			if err != nil {
				return err
			}
			if err := p.CheckDelta(warner(c)); err != nil {
				return err
			}
			var requests []*transport.Request
			for _, path := range args[1:] {
				r, err := transport.ReadRequest(path)
				if err != nil {
					return &run.InputError{Err: err}
				}
				requests = append(requests, r)
			}
			organizer, err := party.Found(p, hub, requests...)
			if errors.Is(err, transport.ErrURL) {
				return usageError("--%v", err)
			} else if err != nil {
				return &run.InputError{Err: err}
			}
			if err := newfile.MakeDir(dir); err != nil {
				return err
			}
			if err := organizer.WriteDir(dir); err != nil {
				return err
			}
			if err := p.Text(c.OutOrStdout()); err != nil {
				return err
			}
			w := c.OutOrStdout()
			fmt.Fprintf(w, "\nNetwork %s is in %s. Next, for each owner: sotto net invite %q --dir %s --out FILE\n",
				organizer.Network.ID, dir, p.Owners[0].Name, dir)
			if !organizer.Network.OwnKeys {
				fmt.Fprintln(w,
					"The organizer made the owners' keys. With keys of their own (sotto net key), it could not act in their names.")
			}
			return nil
		},
	}
	f := c.Flags()
	ownerFlags(c, &o.Label)
	f.StringVar(&dir, "dir", "", "new directory of the organizer (required)")
	f.StringVar(&hub, "hub", "", "URL of the hub for owners, tls://HOST:PORT, or several separated by commas (required)")
	return c
}

const mostDays = 5 * 365 // the life of the network's certificates

func netInviteCommand() *cobra.Command {
	var dir, out string
	var days int
	c := &cobra.Command{
		Use:   "invite NAME",
		Short: "Make one owner's credentials",
		Long: `Invite makes the credentials with which one owner joins a network: a certificate, and a JWT that only lets it take part
under its own name. If the organizer made the owners' keys, they also hold the key of the owner's messages. The file is
secret: send it to the owner over a confidential channel.`,
		Example: "  sotto net invite cardiology --dir net --out cardiology.json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return usageError("--out FILE is missing: a new file for the credentials")
			}
			if days < 1 || days > mostDays {
				return usageError("--days: found %d; choose 1 to %d", days, mostDays)
			}
			o, owner, err := organized(dir, args[0])
			if err != nil {
				return err
			}
			if _, err := os.Lstat(out); err == nil {
				return outExists(out)
			}
			credentials, err := o.Invite(owner, time.Duration(days)*24*time.Hour)
			if err != nil {
				return &run.InputError{Err: err}
			}
			if err := credentials.Write(out); err != nil {
				return usageError("--out: %v", err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: the credentials of %s, good until %s\n", out, args[0],
				time.Now().AddDate(0, 0, days).Format(time.DateOnly))
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&dir, "dir", "", "directory of the organizer (required)")
	f.StringVar(&out, "out", "", "new file for the credentials (required)")
	f.IntVar(&days, "days", 90, "number of days for which they are valid")
	return c
}

func netRevokeCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke an owner's credentials at the hub",
		Long: `Revoke makes an owner's present credentials invalid at the hub. A hub that reads this hub.json loads the change by
itself; otherwise copy the file to the hub. The owner can be invited again, with a new connection key; the key of its
messages stays.`,
		Example: "  sotto net revoke cardiology --dir net",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			o, owner, err := organized(dir, args[0])
			if err != nil {
				return err
			}
			before := len(o.Owners[owner].Former) > 0
			if err := o.Revoke(owner); err != nil {
				return err
			}
			if err := o.WriteDir(dir); err != nil {
				return usageError("--dir: %v", err)
			}
			w := c.OutOrStdout()
			if before {
				fmt.Fprintf(w, "%s was revoked before; credentials made for it since are now revoked, too.\n", args[0])
			}
			fmt.Fprintf(w,
				"The hub refuses %[1]s once it has the new %[2]s: a hub that reads this file loads it by itself; on another machine, replace the old file by it. `sotto net invite` lets %[1]s in again.\n", args[0], filepath.Join(dir, transport.HubFile))
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory of the organizer (required)")
	return c
}

// organized reads an organizer's directory and finds the owner of that name.
func organized(dir, name string) (*transport.Organizer, int, error) {
	if dir == "" {
		return nil, 0, usageError("--dir is missing: the directory that sotto net init made")
	}
	o, owner, err := transport.OpenOrganizer(dir, name)
	if err != nil {
		return nil, 0, &run.InputError{Err: err}
	}
	return o, owner, nil
}
