package fabric

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// connect speaks to the hub as that key would, past Client and its good manners. Refusals come out of the channel.
func connect(t *testing.T, url string, public ed25519.PublicKey, seed []byte) (*nats.Conn, <-chan error, error) {
	t.Helper()
	name, err := userName(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, seed)
	if err != nil {
		t.Fatal(err)
	}
	refusals := make(chan error, 100)
	nc, err := nats.Connect(url, nats.Nkey(name, key.Sign), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, refusals, err
}

// Owner 1 of three tries what it must not; the hub refuses each, and what owner 2 and owner 3 have is what they had.
func TestHubRefuses(t *testing.T) {
	h, all := hub(t, 3)
	n := &all[0].Network
	registers := []*Client{dial(t, all[0]), dial(t, all[1]), dial(t, all[2])}
	theirs := vectorKey(1, 2, 4, 0, 1)
	for key, r := range map[string]*Client{theirs: registers[1], vectorKey(0, 1, 4, 0, 1): registers[0], decisionKey(4, 1, 2): registers[2]} {
		if _, err := r.Put(t.Context(), key, []byte("theirs")); err != nil {
			t.Fatal(err)
		}
	}
	nc, refusals, err := connect(t, h.URL, n.key(0), all[0].key().Seed())
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		select {
		case err := <-refusals:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(patient):
			t.Errorf("%s: nobody refuses it", what)
		}
	}
	api := func(call, rest string) string { return "$JS.API." + call + "." + n.stream("rel") + rest }
	for what, subject := range map[string]string{
		"a vector of another owner":        n.subject("rel", "in", "1.2.5"),
		"a decision of others":             n.subject("dec", "in", "5.1.2"),
		"a word of another owner":          n.subject("own", "in", "1.hello"),
		"a vector past the register":       n.subject("rel", "out", "0.1.5"),
		"another network":                  strings.Replace(n.subject("rel", "in", "0.1.5"), n.ID, "0123456789abcdef", 1),
		"another's inbox":                  n.inbox(1) + ".x",
		"the system's account":             "$SYS.REQ.SERVER.PING",
		"purging":                          api("STREAM.PURGE", ""),
		"deleting the register":            api("STREAM.DELETE", ""),
		"deleting a message":               api("STREAM.MSG.DELETE", ""),
		"reading by number":                api("STREAM.MSG.GET", ""),
		"another form of the register":     api("STREAM.UPDATE", ""),
		"looking at the register":          api("STREAM.INFO", ""),
		"a consumer":                       api("CONSUMER.CREATE", ""),
		"a consumer with a filter":         api("CONSUMER.CREATE", ".c."+n.subject("rel", "in", ">")),
		"the next message of a consumer":   api("CONSUMER.MSG.NEXT", ".c"),
		"reading with the subject inside":  api("DIRECT.GET", ""),
		"reading what is for others":       api("DIRECT.GET", "."+n.subject("rel", "in", "1.2.4")),
		"reading what is for anybody":      api("DIRECT.GET", "."+n.subject("rel", "in", "1.*.4")),
		"a decision of others, by reading": "$JS.API.DIRECT.GET." + n.stream("dec") + "." + n.subject("dec", "in", "4.1.2"),
		"a register of its own":            "$JS.API.STREAM.CREATE.mine",
		"snapshots":                        api("STREAM.SNAPSHOT", ""),
	} {
		if err := errors.Join(nc.PublishRequest(subject, n.inbox(0)+".r", []byte(fmt.Sprintf(`{"last_by_subj":%q,"seq":1}`, n.subject("rel", "in", "1.2.4")))), nc.Flush()); err != nil {
			t.Fatal(err)
		}
		refused(what)
	}
	for what, subject := range map[string]string{
		"hearing all vectors": n.subject("rel", "out", ">"), "hearing everything": ">", "hearing what is not stored yet": n.subject("rel", "in", ">"),
		"hearing what is for others": n.subject("rel", "out", "*.2.>"), "hearing all decisions": n.subject("dec", "out", ">"), "hearing all inboxes": "_INBOX.>",
		"hearing another's inbox": n.inbox(1) + ".>", "hearing the register's interface": "$JS.API.>", "hearing the system": "$SYS.>",
	} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { t.Errorf("%s: heard %s", what, m.Subject) }); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		refused(what)
	}
	// What it may write, it writes once.
	if v, err := registers[0].Put(t.Context(), vectorKey(0, 1, 4, 0, 1), []byte("again")); err != nil || string(v) != "theirs" {
		t.Errorf("a second vector: %q, %v", v, err)
	}
	for key, r := range map[string]*Client{theirs: registers[2], decisionKey(4, 1, 2): registers[1]} {
		if v, err := r.Get(t.Context(), key); err != nil || string(v) != "theirs" {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
	for _, key := range []string{vectorKey(1, 2, 5, 0, 1), decisionKey(5, 1, 2), ownKey(1, "hello")} {
		if v, err := registers[2].Get(t.Context(), key); !errors.Is(err, ErrNone) {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
}

// Nobody joins without the key of an owner of this network.
func TestHubKnowsItsOwners(t *testing.T) {
	h, all := hub(t, 2)
	if nc, err := nats.Connect(h.URL); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without a key: %v, %v", nc, err)
	}
	if nc, err := nats.Connect(h.URL, nats.UserInfo("sotto", "sotto")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with a password: %v, %v", nc, err)
	}
	_, others, err := NewNetwork(h.URL, names(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := connect(t, h.URL, others[0].Network.key(0), others[0].key().Seed()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("another network's owner: %v", err)
	}
	if _, _, err := connect(t, h.URL, all[0].Network.key(0), all[1].key().Seed()); err == nil {
		t.Error("an owner's name with another's key: joined")
	}
	if _, err := Dial(t.Context(), others[0], ClientOptions{}); !errors.Is(err, errRefused) {
		t.Errorf("another network's owner: %v", err)
	}
}

// What an owner did not hear it finds: live copies may be lost.
func TestDeafOwner(t *testing.T) {
	_, all := hub(t, 2)
	a, b := dial(t, all[0]), dial(t, all[1])
	for _, s := range b.heard {
		if err := s.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 5 {
		key := vectorKey(0, 1, round, 0, 1)
		if _, err := a.Put(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
		if _, v, err := b.Await(t.Context(), decisionKey(round, 0, 1), key); err != nil || !bytes.Equal(v, []byte(key)) {
			t.Errorf("found %q, %v", v, err)
		}
	}
}
