package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sottodp/sotto/gossip/fabric"
	"github.com/sottodp/sotto/run"
)

func hubCommand() *cobra.Command {
	var o fabric.HubOptions
	c := &cobra.Command{
		Use:   "hub hub.json",
		Short: "Carry the messages of owners that train together",
		Long: `Hub serves one network until it is stopped: a NATS server whose streams are a register that is written once.
It prints its URL when it listens. Owners come with TLS 1.3, a certificate and a JWT, both of sotto net invite. It sees
noisy vectors, who speaks with whom and when; it is trusted with nothing else.

It may be stopped and started again at any time: what it has acknowledged is in its directory, and owners wait for it. When
its file changes (sotto net revoke) it takes that over at once.`,
		Example: "  sotto hub hub.json --dir hub --host 0.0.0.0",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			keys, err := fabric.ReadHubKeys(args[0])
			if err != nil {
				return &run.InputError{Err: err}
			}
			if !c.Flags().Changed("port") {
				o.Port = hubPort(keys.Network.Hub)
			}
			if o.Dir == "" {
				return usageError("--dir is missing: where the hub keeps what was sent")
			}
			if o.Port < 0 || o.Port > 65535 {
				return usageError("--port: found %d; allowed is 0 to 65535", o.Port)
			}
			return serveHub(c.Context(), keys, args[0], o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Dir, "dir", "", "directory of the register (required)")
	f.StringVar(&o.Host, "host", "", "address to listen on, 0.0.0.0 for all of the machine's (default 127.0.0.1)")
	f.IntVar(&o.Port, "port", 0, "port to listen on, 0: the system chooses (default that of the network's URL)")
	return c
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

func serveHub(ctx context.Context, keys *fabric.HubKeys, file string, o fabric.HubOptions, out, notices io.Writer) error {
	h, err := fabric.StartHub(ctx, keys, o)
	var place *fabric.PlaceError
	if errors.As(err, &place) {
		return &run.InputError{Err: err}
	}
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Fprintln(out, h.URL)
	watch(ctx, file, func() {
		keys, err := fabric.ReadHubKeys(file)
		if err == nil {
			err = h.Reload(keys)
		}
		if err != nil {
			fmt.Fprintf(notices, "warning: %v; what stood there before still holds\n", err)
			return
		}
		fmt.Fprintf(notices, "%s has changed: whom it turns away is turned away\n", file)
	})
	return nil
}

const watchEvery = time.Second

// watch calls changed whenever the file's content has changed, until the context ends.
func watch(ctx context.Context, file string, changed func()) {
	last, err := os.ReadFile(file)
	if err != nil {
		last = nil
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, err := os.ReadFile(file); err == nil && !bytes.Equal(now, last) {
			last = now
			changed()
		}
	}
}
