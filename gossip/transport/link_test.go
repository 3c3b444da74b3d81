package transport

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A hub that ends between an owner's connection and its subscriptions is no error: the owner hears what the next one announces.
func TestHubEndsBeforeSubscription(t *testing.T) {
	o, all := owners(t, 2)
	keys, err := o.Hub()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	h, err := StartHub(t.Context(), keys, HubOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := &natsLink{}
	if err := l.connect(t.Context(), all[0], h.URL); err != nil {
		t.Fatal(err)
	}
	h.Close()
	c, err := NewClient(l, all[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	if h, err = StartHub(t.Context(), keys, HubOptions{Dir: dir, Port: port}); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	all[1].Network.Hub = h.URL
	key := vectorKey(1, 0, 1, 0, 1)
	if _, err := dial(t, all[1]).Put(t.Context(), key, []byte("text")); err != nil {
		t.Fatal(err)
	}
	if _, v, err := c.Await(t.Context(), key); err != nil || string(v) != "text" {
		t.Errorf("heard %q, %v", v, err)
	}
}

// A deaf is a link whose answers take a time, at which the first requests give up.
type deaf struct {
	takes time.Duration
	waits []time.Duration
}

func (d *deaf) Request(ctx context.Context, _ string, _ []byte) (Answer, bool, error) {
	began := time.Now()
	select {
	case <-ctx.Done():
		d.waits = append(d.waits, time.Since(began))
		return Answer{}, true, ctx.Err()
	case <-time.After(d.takes):
		return Answer{}, false, nil
	}
}

func (d *deaf) Subscribe([]string, func(subject string, body []byte)) error { return nil }
func (d *deaf) Close()                                                      {}

// Over a slow link a long message is not sent again while it is on its way, and a long answer comes at last.
func TestSlowLinks(t *testing.T) {
	for _, c := range []struct {
		body  int
		takes time.Duration
		want  []time.Duration
	}{
		{100, time.Second, nil},
		{100, 7 * time.Second, []time.Duration{2 * time.Second, 4 * time.Second}},
		{100, 31 * time.Second, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}},
		{800_000, 14 * time.Second, nil},
		{64 << 20, 1000 * time.Second, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			link := &deaf{takes: c.takes}
			client := &Client{link: link}
			if _, err := client.ask(t.Context(), "subject", make([]byte, c.body)); err != nil {
				t.Fatal(err)
			}
			for i := range link.waits {
				link.waits[i] -= link.waits[i] % time.Second
			}
			if !slices.Equal(link.waits, c.want) {
				t.Errorf("%d bytes that take %v: gave up after %v; want %v", c.body, c.takes, link.waits, c.want)
			}
		})
	}
}

// An empty is a link to a hub that stores all and has nothing. It counts the reads.
type empty struct {
	reads int
	hear  func(subject string, body []byte)
}

func (e *empty) Request(_ context.Context, subject string, _ []byte) (Answer, bool, error) {
	if strings.HasPrefix(subject, "$JS") {
		e.reads++
		return Answer{Status: "404"}, false, nil
	}
	return Answer{Body: []byte(`{"seq":1}`)}, false, nil
}

func (e *empty) Subscribe(_ []string, hear func(subject string, body []byte)) error {
	e.hear = hear
	return nil
}

func (e *empty) Close() {}

// An owner that waits for what the hub will announce asks rarely, unless it was away or has stored nothing yet.
func TestRareLooks(t *testing.T) {
	_, _, all := ownKeysFor(t, 2, sums(2, 1, 3))
	for _, c := range []struct {
		stores, awaits string
		away           bool
		least, most    int // reads in 15 s
	}{
		{PresenceKey(0, 0), PresencesKey(0), false, 0, 0},
		{PresenceKey(0, 0), OutcomeKey(0, 0), false, 0, 0},
		{PresenceKey(0, 0), OutcomeKey(0, 0), true, 10, 20},
		{PartKey(0, 0, 0), OutcomeKey(0, 0), false, 10, 20}, // that of an earlier process, whose outcome may be there
		{"", OutcomeKey(0, 0), false, 10, 20},
		{StopKey(0, 0, 0), OutcomeKey(0, 0), false, 10, 20}, // of an earlier process, perhaps
		{PresenceKey(0, 0), ownKey(1, Hello), false, 10, 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			link := &empty{}
			client, err := NewClient(link, all[0])
			if err != nil {
				t.Fatal(err)
			}
			if c.stores != "" {
				if _, err := client.Put(t.Context(), c.stores, nil); err != nil {
					t.Fatal(err)
				}
			}
			if c.away {
				time.AfterFunc(time.Second, func() { link.hear("", nil) })
			}
			ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
			defer stop()
			client.Await(ctx, c.awaits)
			if link.reads < c.least || link.reads > c.most {
				t.Errorf("%+v: %d reads", c, link.reads)
			}
		})
	}
}

// An instant is a link to a hub that answers at once, and announces to all.
type instant struct {
	n      *Network
	mu     sync.Mutex
	values map[string][]byte
	hear   []func(subject string, body []byte)
}

func (h *instant) Request(_ context.Context, subject string, body []byte) (Answer, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, in, ok := strings.Cut(subject, "sotto."+h.n.ID+"."); strings.HasPrefix(subject, "$JS") && ok {
		if v := h.values[in]; v != nil {
			return Answer{Body: v}, false, nil
		}
		return Answer{Status: "404"}, false, nil
	} else if h.values[in] == nil {
		h.values[in] = slices.Clone(body)
		for _, hear := range h.hear {
			hear(strings.Replace(subject, ".in.", ".out.", 1), body)
		}
	}
	return Answer{Body: []byte(`{"seq":1}`)}, false, nil
}

func (h *instant) Subscribe(_ []string, hear func(subject string, body []byte)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hear = append(h.hear, hear)
	return nil
}

func (h *instant) Close() {}

// The hub adds up what it hears of, attempt after attempt, and waits for no look at the store.
func TestAdderHears(t *testing.T) {
	_, _, all := ownKeysFor(t, 3, sums(4, 1, 3))
	n := &all[0].Network
	config, err := n.Config()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		link := &instant{n: n, values: map[string][]byte{}}
		side, err := newClient(link, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- (&Adder{Store: side, Network: n, Config: config}).Run(ctx) }()
		owner, err := NewClient(link, all[0])
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for attempt := range 4 {
			arrive(t, owner, config, attempt, all...)
			if _, _, err := owner.Await(ctx, PresencesKey(attempt)); err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				add(t, owner, config, attempt, 0, 3, [32]byte{}, c)
			}
			outcomeOf(t, owner, n, config, attempt, 0)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("four attempts take %v", took)
		}
		stop()
		<-ended
	})
}
