package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A Client is one owner's access to the store of a hub.
type Client struct {
	nc      *nats.Conn
	n       *Network
	heard   []*nats.Subscription
	live    news // heard, and not awaited yet
	refused atomic.Pointer[error]
}

// Times of a client.
const (
	askAgain  = 2 * time.Second // without an answer of the hub
	reconnect = 200 * time.Millisecond
	firstLook = 200 * time.Millisecond // at the store for what was not heard; then twice as long each time, up to
	lastLook  = time.Second
)

// keptNews is the largest size in bytes of messages kept for later.
const keptNews = 64 << 20

// Dial connects an owner to the hub at url, or else at the network's own. It waits for the hub until the context ends.
func Dial(ctx context.Context, c *Credentials, url string) (*Client, error) {
	url = cmp.Or(url, c.Network.Hub)
	if _, err := hubHosts(url); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	r := &Client{n: &c.Network}
	options, err := c.Pass.options(&c.Network)
	if err != nil {
		return nil, err
	}
	options = append(options,
		nats.Name(c.Name()), nats.CustomInboxPrefix(c.Network.inbox(c.Owner)),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnect), nats.ReconnectJitter(reconnect/2, reconnect/2), nats.ReconnectBufSize(-1), nats.Timeout(5*time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if unwelcome(err) == ErrRefused {
				err = fmt.Errorf("%w: %w", ErrRefused, err)
				r.refused.Store(&err)
			}
		}),
	)
	for {
		if r.nc, err = nats.Connect(url, options...); err == nil {
			return r, r.listen(c.Owner)
		}
		if kind := unwelcome(err); kind != nil {
			return nil, fmt.Errorf("hub %s: %w: %w", url, kind, err)
		}
		if pause(ctx, reconnect) != nil {
			return nil, fmt.Errorf("hub %s: %w", url, err)
		}
	}
}

// unwelcome returns ErrStranger if something else than the hub answers, and ErrRefused if the hub rejects
// this owner or its request; nil for other errors, which may be temporary.
func unwelcome(err error) error {
	var stranger *tls.CertificateVerificationError
	var op *net.OpError
	refusals := []error{nats.ErrPermissionViolation, nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked}
	switch {
	case errors.As(err, &stranger):
		return ErrStranger
	case errors.As(err, &op) && op.Op == "remote error", // an alert of TLS: it wants another certificate
		slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) }):
		return ErrRefused
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) listen(owner int) error {
	for _, subject := range listens(c.n, owner) {
		s, err := c.nc.Subscribe(subject, func(m *nats.Msg) {
			kind, rest, ok := strings.Cut(strings.TrimPrefix(m.Subject, "sotto."+c.n.ID+"."), ".out.")
			if ok {
				c.live.add(kind+"."+rest, m.Data)
				c.live.drop("", keptNews)
			}
		})
		if err != nil {
			return err
		}
		c.heard = append(c.heard, s)
	}
	return c.nc.Flush()
}

// Close ends the connection.
func (c *Client) Close() { c.nc.Close() }

// ask sends a request until there is an answer.
func (c *Client) ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	for {
		brief, stop := context.WithTimeout(ctx, askAgain)
		m, err := c.nc.RequestWithContext(brief, subject, body)
		stop()
		switch {
		case err == nil:
			return m, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case c.refused.Load() != nil:
			return nil, *c.refused.Load()
		case c.nc.IsClosed():
			return nil, fmt.Errorf("hub: %w", err)
		case errors.Is(err, nats.ErrMaxPayload):
			return nil, err
		}
		if err := pause(ctx, reconnect/2); err != nil {
			return nil, err
		}
	}
}

// fullReasons are the server's texts when it refuses a message permanently: the store is full, and
// nothing is ever deleted there.
var fullReasons = []string{server.ErrMaxMsgs.Error(), server.ErrMaxBytes.Error(), server.ApiErrors[server.JSStreamMessageExceedsMaximumErr].Description}

// Put implements Store.
func (c *Client) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	subject := c.n.pattern(key, "in")
	for {
		m, err := c.ask(ctx, subject, value)
		if err != nil {
			return nil, err
		}
		var ack struct {
			Seq   uint64 `json:"seq"`
			Error *struct {
				Description string `json:"description"`
			} `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &ack); err != nil {
			return nil, fmt.Errorf("hub: %s: %w", key, err)
		}
		if ack.Error == nil && ack.Seq > 0 {
			return value, nil
		}
		// Not stored: the key has a value already, or the hub failed.
		stored, err := c.Get(ctx, key)
		if !errors.Is(err, ErrNone) {
			return stored, err
		}
		why := "no reason"
		if ack.Error != nil {
			why = ack.Error.Description
		}
		if slices.Contains(fullReasons, why) {
			return nil, fmt.Errorf("%s: %w", key, ErrFull)
		}
		if err := pause(ctx, reconnect); err != nil {
			return nil, fmt.Errorf("hub: %s is not stored, for %s: %w", key, why, err)
		}
	}
}

// Get implements Store.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	if _, v, _ := c.live.find(key); v != nil {
		c.live.drop(key, keptNews)
		return v, nil
	}
	subject := c.n.pattern(key, "in")
	for {
		m, err := c.ask(ctx, "$JS.API.DIRECT.GET."+c.n.stream(c.n.streamOf(key))+"."+subject, nil)
		if err != nil {
			return nil, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			return m.Data, nil
		case "404":
			return nil, fmt.Errorf("%s: %w", key, ErrNone)
		}
		if err := pause(ctx, reconnect); err != nil {
			return nil, fmt.Errorf("hub: %s: %s: %w", key, m.Header.Get("Description"), err)
		}
	}
}

// Await implements Store. The hub announces what it stores; now and then Await also asks the store,
// in case an announcement was lost.
func (c *Client) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	look := firstLook
	for {
		i, v, changed := c.live.find(keys...)
		if v != nil {
			c.live.drop(keys[i], keptNews)
			return i, v, nil
		}
		timer := time.NewTimer(look)
		select {
		case <-changed:
			timer.Stop()
			continue
		case <-ctx.Done():
			timer.Stop()
			return 0, nil, ctx.Err()
		case <-timer.C:
		}
		look = min(2*look, lastLook)
		for i, k := range keys {
			v, err := c.Get(ctx, k)
			if err == nil {
				return i, v, nil
			}
			if !errors.Is(err, ErrNone) {
				return 0, nil, err
			}
		}
	}
}
