package transport

import (
	"net/url"
	"strconv"
	"testing"
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
