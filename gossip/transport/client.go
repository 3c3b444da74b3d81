package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Client is one owner's access to the store of a hub.
type Client struct {
	link Link
	n    *Network
	live news // heard, and not awaited yet

	// stored says that this owner has stored a presence since it connected. The hub's answers to it and to what follows
	// come later, so they are announced. A part may be one that an earlier process stored, and the hub has deleted.
	stored atomic.Bool
}

// Times of a client.
const (
	// a request is repeated after this time without an answer, plus the time that it takes at slowLink
	askAgain  = 2 * time.Second
	lastAgain = 32 * time.Second // the wait doubles up to this, so that a long answer arrives over a slow link
	reconnect = 200 * time.Millisecond
	firstPoll = 200 * time.Millisecond // until the first poll of the store, in case an announcement was lost
	lastPoll  = time.Second            // the wait between polls doubles up to this
	rarePoll  = 20 * time.Second       // between polls if the hub's announcement is due
)

// slowLink is the slowest link, in bytes per second, on which a message is not sent again while it
// is still in transit.
const slowLink = 64 << 10

// keptNews is the largest size in bytes of messages kept for later.
const keptNews = 64 << 20

// Dial connects an owner to the hub at url, or else at the network's own. It waits for the hub until the context ends.
func Dial(ctx context.Context, c *Credentials, url string) (*Client, error) {
	url = cmp.Or(url, c.Network.Hub)
	if _, err := hubHosts(url); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	l := &natsLink{}
	if err := l.connect(ctx, c, url); err != nil {
		return nil, err
	}
	return NewClient(l, c)
}

// NewClient returns an owner's client over a link, which its Close closes.
func NewClient(l Link, c *Credentials) (*Client, error) {
	return newClient(l, &c.Network, listens(&c.Network, c.Owner))
}

func newClient(l Link, n *Network, patterns []string) (*Client, error) {
	r := &Client{link: l, n: n}
	return r, l.Subscribe(patterns, r.hear)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hear keeps what the hub announces until it is awaited.
func (c *Client) hear(subject string, body []byte) {
	if subject == "" { // it was not connected for a while
		c.stored.Store(false)
		c.live.wake()
		return
	}
	kind, rest, ok := strings.Cut(strings.TrimPrefix(subject, "sotto."+c.n.ID+"."), ".out.")
	if ok {
		c.live.add(kind+"."+rest, body)
		c.live.drop("", keptNews)
	}
}

// Close ends the connection.
func (c *Client) Close() { c.link.Close() }

// ask sends a request until there is an answer.
func (c *Client) ask(ctx context.Context, subject string, body []byte) (Answer, error) {
	wait := askAgain + time.Duration(len(body))*time.Second/slowLink
	for {
		brief, stop := context.WithTimeout(ctx, wait)
		a, again, err := c.link.Request(brief, subject, body)
		if brief.Err() != nil {
			wait = max(wait, min(2*wait, lastAgain))
		}
		stop()
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return Answer{}, ctx.Err()
		case !again:
			return Answer{}, err
		}
		if err := pause(ctx, reconnect/2); err != nil {
			return Answer{}, err
		}
	}
}

// fullReasons are the server's texts when it refuses a message permanently: the store is full, and
// nothing is ever deleted there.
var fullReasons = []string{server.ErrMaxMsgs.Error(), server.ErrMaxBytes.Error(),
	server.ApiErrors[server.JSStreamMessageExceedsMaximumErr].Description}

// Put implements Store.
func (c *Client) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	subject := c.n.pattern(key, "in")
	for {
		a, err := c.ask(ctx, subject, value)
		if err != nil {
			return nil, err
		}
		var ack struct {
			Seq   uint64 `json:"seq"`
			Error *struct {
				Description string `json:"description"`
			} `json:"error"`
		}
		if err := json.Unmarshal(a.Body, &ack); err != nil {
			return nil, fmt.Errorf("hub: %s: %w", key, err)
		}
		if ack.Error == nil && ack.Seq > 0 {
			if strings.HasPrefix(key, "sum.") && strings.Contains(key, ".here.") {
				c.stored.Store(true)
			}
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
		a, err := c.ask(ctx, "$JS.API.DIRECT.GET."+c.n.stream(c.n.streamOf(key))+"."+subject, nil)
		if err != nil {
			return nil, err
		}
		switch a.Status {
		case "":
			return a.Body, nil
		case "404":
			return nil, fmt.Errorf("%s: %w", key, ErrNone)
		}
		if err := pause(ctx, reconnect); err != nil {
			return nil, fmt.Errorf("hub: %s: %s: %w", key, a.Description, err)
		}
	}
}

// Await implements Store. The hub announces what it stores; now and then Await also asks the store, in case an
// announcement was lost. A sum of many owners takes about sixty messages, and a poll two for each owner,
// so Await polls rarely if an announcement is due.
func (c *Client) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	poll := firstPoll
	for {
		i, v, changed := c.live.find(keys...)
		if v != nil {
			c.live.drop(keys[i], keptNews)
			return i, v, nil
		}
		wait := poll
		if c.stored.Load() && !slices.ContainsFunc(keys, func(k string) bool { return !strings.HasPrefix(k, "all.") }) {
			wait = rarePoll
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
			timer.Stop()
			continue
		case <-ctx.Done():
			timer.Stop()
			return 0, nil, ctx.Err()
		case <-timer.C:
		}
		poll = min(2*poll, lastPoll)
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
