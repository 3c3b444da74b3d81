package cli

import (
	"errors"
	"fmt"
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
	var m meters
	c := &cobra.Command{
		Use:   "hub hub.json",
		Short: "Serve the messages of a network of owners",
		Long: `Hub serves one network until you stop it: a NATS server with an append-only store. It prints its URL when it listens.
Owners connect by TLS 1.3 with the certificate and the JWT of sotto net invite. The hub sees noisy vectors and who speaks
with whom, and is trusted with nothing else. It can be stopped and started at any time, and loads a changed hub.json
(sotto net revoke) at once.

In a network of mode sum the hub also adds up the owners' masked vectors, and reads none of them.

A NATS cluster with JetStream can replace the hub of a network of the other mode: --conf writes the configuration of
its servers, and --cluster creates the store there, once.`,
		Example: "  sotto hub hub.json --dir hub --host 0.0.0.0\n  sotto hub hub.json --conf /etc/nats/sotto\n  sotto hub hub.json --cluster tls://a.example.org:4222,tls://b.example.org:4222",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			keys, err := transport.ReadHubKeys(args[0])
			if err != nil {
				return &run.InputError{Err: err}
			}
			switch {
			case cluster != "" && conf != "", cluster+conf != "" && o.Dir != "":
				return usageError("found several of --dir, --cluster and --conf; give one: a single hub, the store at a cluster, or the configuration of one")
			case conf != "":
				if err := keys.Configure(conf); errors.Is(err, transport.ErrAdds) {
					return usageError("--conf: %v", err)
				} else {
					return err
				}
			case cluster != "":
				if replicas < 1 || replicas > 5 {
					return usageError("--replicas: found %d; choose 1 to 5", replicas)
				}
				full, err := transport.Found(c.Context(), keys, cluster, replicas)
				if errors.Is(err, transport.ErrURL) || errors.Is(err, transport.ErrAdds) {
					return usageError("--cluster: %v", err)
				} else if err != nil {
					return err
				}
				for _, text := range full {
					fmt.Fprintln(c.ErrOrStderr(), text)
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: holds the store of network %s, in %d copies\n", cluster, keys.Network.ID,
					replicas)
				return nil
			}
			if !c.Flags().Changed("port") {
				o.Port = hubPort(keys.Network.Hub)
			}
			if o.Dir == "" {
				return usageError("--dir is missing: the directory of the store; or --cluster or --conf, for a cluster")
			}
			if o.Port < 0 || o.Port > 65535 {
				return usageError("--port: found %d; choose 0 to 65535", o.Port)
			}
			if err := o.Check(); err != nil {
				return err
			}
			unlock, err := run.LockDir(o.Dir)
			if err != nil {
				return usageError("--dir: found %s, which another hub uses", o.Dir)
			}
			defer unlock()
			h, err := transport.StartHub(c.Context(), keys, o)
			if err != nil {
				return err
			}
			defer h.Close()
			if err := m.begin("hub"); err != nil {
				return err
			}
			m.fixed("sotto_owners", float64(len(keys.Network.Owners)))
			m.gauge("sotto_connections", func() float64 { return float64(h.Connections()) })
			m.gauge("sotto_messages_stored", func() float64 { return float64(h.Stored()) })
			if err := m.serve(c, func(format string, args ...any) {
				fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...)
			}); err != nil {
				return err
			}
			defer m.close()
			fmt.Fprintln(c.OutOrStdout(), h.URL)
			h.Watch(c.Context(), args[0], c.ErrOrStderr())
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "dir", "", "directory of the store")
	f.StringVar(&o.Host, "host", "", "address to listen on, 0.0.0.0 for all addresses (default 127.0.0.1)")
	f.IntVar(&o.Port, "port", 0, "port to listen on, 0: the system chooses (default that of the network's URL)")
	f.StringVar(&cluster, "cluster", "", "URL of a NATS cluster to hold the store, or several separated by commas")
	f.IntVar(&replicas, "replicas", 3, "copies of the store at a cluster")
	m.add(f, false)
	f.StringVar(&conf, "conf", "", "directory for the configuration of a cluster: nats.conf and certificates")
	return c
}

// hubPort is the port of the first of the hub's URLs; 0 if there is none.
func hubPort(urls string) int {
	first, _, _ := strings.Cut(urls, ",")
	u, err := url.Parse(first)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}
