package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run"
)

func hubCommand() *cobra.Command {
	var o transport.HubOptions
	var cluster, conf string
	var replicas int
	c := &cobra.Command{
		Use:   "hub hub.json",
		Short: "Carry the messages of owners that train together",
		Long: `Hub serves one network until it is stopped: a NATS server whose streams are an append-only store that is written once.
It prints its URL when it listens. Owners come with TLS 1.3, a certificate and a JWT, both of sotto net invite. It sees
noisy vectors, who speaks with whom and when; it is trusted with nothing else.

It may be stopped and started again at any time: what it has acknowledged is in its directory, and owners wait for it. When
its file changes (sotto net revoke) it takes that over at once.

A NATS cluster with JetStream can take its place: --conf writes what its servers must know of the network, and --cluster makes the
register there, once, and ends.`,
		Example: "  sotto hub hub.json --dir hub --host 0.0.0.0\n  sotto hub hub.json --conf /etc/nats/sotto\n  sotto hub hub.json --cluster tls://a.example.org:4222,tls://b.example.org:4222",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			keys, err := transport.ReadHubKeys(args[0])
			if err != nil {
				return &run.InputError{Err: err}
			}
			switch {
			case cluster != "" && conf != "", cluster+conf != "" && o.Dir != "":
				return usageError("found several of --dir, --cluster and --conf; allowed is one: a hub of its own, the store at a cluster, or the configuration of one")
			case conf != "":
				return asInput(keys.Configure(conf))
			case cluster != "":
				if replicas < 1 || replicas > 5 {
					return usageError("--replicas: found %d; allowed is 1 to 5", replicas)
				}
				full, err := transport.Found(c.Context(), keys, cluster, replicas)
				if errors.Is(err, transport.ErrURL) {
					return usageError("--cluster: %v", err)
				} else if err != nil {
					return asInput(err)
				}
				for _, text := range full {
					fmt.Fprintln(c.ErrOrStderr(), text)
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: holds the store of network %s, in %d copies\n", cluster, keys.Network.ID, replicas)
				return nil
			}
			if !c.Flags().Changed("port") {
				o.Port = hubPort(keys.Network.Hub)
			}
			if o.Dir == "" {
				return usageError("--dir is missing: where the hub keeps what was sent; or --cluster or --conf, for a cluster")
			}
			if o.Port < 0 || o.Port > 65535 {
				return usageError("--port: found %d; allowed is 0 to 65535", o.Port)
			}
			return serveHub(c.Context(), keys, args[0], o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "dir", "", "directory of the store")
	f.StringVar(&o.Host, "host", "", "address to listen on, 0.0.0.0 for all of the machine's (default 127.0.0.1)")
	f.IntVar(&o.Port, "port", 0, "port to listen on, 0: the system chooses (default that of the network's URL)")
	f.StringVar(&cluster, "cluster", "", "URL of a NATS cluster to hold the store, or several with commas between them")
	f.IntVar(&replicas, "replicas", 3, "copies of the store at a cluster")
	f.StringVar(&conf, "conf", "", "directory for what the servers of a cluster must know: nats.conf and certificates")
	return c
}

// asInput is the mistake of a person that an error of a hub's place or credentials is.
func asInput(err error) error {
	var place *transport.PlaceError
	if errors.As(err, &place) || errors.Is(err, transport.ErrURL) || errors.Is(err, transport.ErrRefused) || errors.Is(err, transport.ErrStranger) {
		return &run.InputError{Err: err}
	}
	return err
}

// hubPort is the port of the first of the hub's URLs; 0 where there is none.
func hubPort(urls string) int {
	first, _, _ := strings.Cut(urls, ",")
	u, err := url.Parse(first)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0
	}
	return port
}

func serveHub(ctx context.Context, keys *transport.HubKeys, file string, o transport.HubOptions, out, notices io.Writer) error {
	if err := o.Check(); err != nil {
		return asInput(err)
	}
	unlock, err := run.LockDir(o.Dir)
	if err != nil {
		return usageError("--dir: found %s, where another hub is at work", o.Dir)
	}
	defer unlock()
	h, err := transport.StartHub(ctx, keys, o)
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Fprintln(out, h.URL)
	h.Watch(ctx, file, notices)
	return nil
}
