package transport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/sottodp/sotto/internal/newfile"
)

// foundWithin is the time in which a cluster must answer.
const foundWithin = time.Minute

// startsWithin is the time in which a server that answers must have its store.
const startsWithin = 15 * time.Second

// starts says that a server of a cluster has no store yet, cannot make a stream yet (in a busy cluster, until its
// servers agree on a leader), or does not answer yet for a stream that was just made. A server that never has a store,
// or never makes a stream, says the same.
func starts(err error) bool {
	var refused *nats.APIError
	var denied *jetstream.APIError // what the newer of the client's two interfaces returns
	var code uint16
	switch {
	case errors.As(err, &refused):
		code = uint16(refused.ErrorCode)
	case errors.As(err, &denied):
		code = uint16(denied.ErrorCode)
	}
	return code == uint16(server.JSNotEnabledForAccountErr) || code == uint16(server.JSStreamCreateErrF) ||
		errors.Is(err, nats.ErrNoResponders)
}

// ErrAdds says why a cluster cannot replace the hub of a network.
var ErrAdds = errors.New("the hub of a network of mode sum adds up what the owners mask, and a NATS cluster only stores: run sotto hub with --dir")

// Found makes the store of a network, with that many copies, at somebody else's NATS cluster instead of a
// hub. Its servers know the network from what Configure wrote. full returns the owners that have stored
// more than the training needs.
func Found(ctx context.Context, k *HubKeys, urls string, replicas int) (full []string, err error) {
	if _, err := hubHosts(urls); err != nil {
		return nil, err
	}
	if k.Network.Mode == ModeSum {
		return nil, ErrAdds
	}
	options, err := k.Pass.options(&k.Network)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, foundWithin)
	defer stop()
	nc, err := nats.Connect(urls, append(options, nats.Timeout(5*time.Second))...)
	if err != nil {
		if kind := unwelcome(err); kind != nil {
			err = fmt.Errorf("%w: %w", kind, err)
		}
		return nil, fmt.Errorf("%s: %w", urls, err)
	}
	defer nc.Close()
	for end := time.Now().Add(startsWithin); ; time.Sleep(100 * time.Millisecond) {
		err := streams(ctx, nc, &k.Network, replicas)
		if err == nil {
			var texts []string
			texts, err = findFull(ctx, nc, &k.Network, map[string]bool{})
			full = append(full, texts...)
		}
		if err == nil {
			return full, nil
		}
		if !starts(err) || time.Now().After(end) || ctx.Err() != nil {
			return nil, fmt.Errorf("%s: the store of %d copies: %w", urls, replicas, err)
		}
	}
}

const confFile = "nats.conf"

// Configure writes what a nats-server of a cluster needs for the network into a directory:
// nats.conf, which its own configuration includes, and the certificates that it names.
func (k *HubKeys) Configure(dir string) error {
	if k.Network.Mode == ModeSum {
		return ErrAdds
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	c, err := k.claims()
	if err != nil {
		return err
	}
	preload := ""
	for _, name := range slices.Sorted(maps.Keys(c.texts)) {
		preload += fmt.Sprintf("  %s: %s\n", name, c.texts[name])
	}
	conf := fmt.Sprintf(`# The network %s of sotto. Secret: beside it lies the key of the hub's certificate.
tls {
  ca_file: %q
  cert_file: %q
  key_file: %q
  verify: true
  min_version: "1.3"
  handshake_first: true
  timeout: 10
}
jetstream { sync_interval: always }
operator: %s
system_account: %s
resolver: MEMORY
resolver_preload {
%s}
`, k.Network.ID, filepath.Join(dir, "ca.pem"), filepath.Join(dir, "hub.pem"), filepath.Join(dir, "hub-key.pem"), k.Operator, c.system, preload)
	if err := settle(dir, confFile); err != nil {
		return err
	}
	var errs []error
	for name, text := range map[string]string{confFile: conf, "ca.pem": k.Network.Authority, "hub.pem": k.Pass.Certificate,
		"hub-key.pem": k.Pass.Key} {
		errs = append(errs, newfile.Replace(filepath.Join(dir, name), 0o600, []byte(text)))
	}
	return errors.Join(errs...)
}
