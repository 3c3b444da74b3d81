package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// connect speaks to the hub as that pass would, past Client and its good manners. Refusals come out of the channel.
func connect(t *testing.T, url string, n *Network, p Pass, more ...nats.Option) (*nats.Conn, <-chan error, error) {
	t.Helper()
	options, err := p.options(n)
	if err != nil {
		t.Fatal(err)
	}
	refusals := make(chan error, 100)
	options = append(options, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	nc, err := nats.Connect(url, append(options, more...)...)
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, refusals, err
}

// Owner 1 of three tries what it must not; the hub refuses each, and what owner 2 and owner 3 have is what they had.
func TestSecurityOfOwners(t *testing.T) {
	for name, limits := range layouts(3, 3) {
		t.Run(name, func(t *testing.T) {
			o, all := limited(t, 3, limits)
			securityOfOwners(t, start(t, o, all...), all)
		})
	}
}

func securityOfOwners(t *testing.T, h *Hub, all []*Credentials) {
	n := &all[0].Network
	registers := []*Client{dial(t, all[0]), dial(t, all[1]), dial(t, all[2])}
	theirs := vectorKey(1, 2, 4, 0, 1)
	for key, r := range map[string]*Client{theirs: registers[1], vectorKey(0, 1, 4, 0, 1): registers[0], decisionKey(4, 1, 2): registers[2]} {
		if _, err := r.Put(t.Context(), key, []byte(commit)); err != nil {
			t.Fatal(err)
		}
	}
	nc, refusals, err := connect(t, h.URL, n, all[0].Pass)
	if err != nil {
		t.Fatal(err)
	}
	refused := refusedBy(refusals)
	api := func(call, rest string) string {
		return "$JS.API." + call + "." + n.stream(n.streamOf("rel.1.2.4")) + rest
	}
	for _, c := range []struct{ what, subject string }{
		{"send a vector of another owner", n.subject("rel", "in", "1.2.5")},
		{"send a decision of others", n.subject("dec", "in", "5.1.2")},
		{"send a word of another owner", n.subject("own", "in", "1.hello")},
		{"send a vector past the store", n.subject("rel", "out", "0.1.5")},
		{"send to another network", strings.Replace(n.subject("rel", "in", "0.1.5"), n.ID, "0123456789abcdef", 1)},
		{"send to another's inbox", n.inbox(1) + ".x"},
		{"ask the system's account", "$SYS.REQ.SERVER.PING"},
		{"purge", api("STREAM.PURGE", "")},
		{"delete the store", api("STREAM.DELETE", "")},
		{"delete a message", api("STREAM.MSG.DELETE", "")},
		{"read by number", api("STREAM.MSG.GET", "")},
		{"change the store", api("STREAM.UPDATE", "")},
		{"look at the store", api("STREAM.INFO", "")},
		{"make a consumer", api("CONSUMER.CREATE", "")},
		{"make a consumer with a filter", api("CONSUMER.CREATE", ".c."+n.subject("rel", "in", ">"))},
		{"ask a consumer", api("CONSUMER.MSG.NEXT", ".c")},
		{"read with the subject inside", api("DIRECT.GET", "")},
		{"read what is for others", api("DIRECT.GET", "."+n.subject("rel", "in", "1.2.4"))},
		{"read what is for anybody", api("DIRECT.GET", "."+n.subject("rel", "in", "1.*.4"))},
		{"read a decision of others", "$JS.API.DIRECT.GET." + n.stream(n.streamOf("dec.4.1.2")) + "." + n.subject("dec", "in", "4.1.2")},
		{"make an append-only store", "$JS.API.STREAM.CREATE.mine"},
		{"take a snapshot", api("STREAM.SNAPSHOT", "")},
	} {
		t.Run(c.what, func(t *testing.T) {
			if err := errors.Join(nc.PublishRequest(c.subject, n.inbox(0)+".r", []byte(fmt.Sprintf(`{"last_by_subj":%q,"seq":1}`, n.subject("rel", "in", "1.2.4")))), nc.Flush()); err != nil {
				t.Fatal(err)
			}
			refused(t)
		})
	}
	for _, c := range []struct{ what, subject string }{
		{"hear all vectors", n.subject("rel", "out", ">")},
		{"hear everything", ">"},
		{"hear what is not stored yet", n.subject("rel", "in", ">")},
		{"hear what is for others", n.subject("rel", "out", "*.2.>")},
		{"hear all decisions", n.subject("dec", "out", ">")},
		{"hear all inboxes", "_INBOX.>"},
		{"hear another's inbox", n.inbox(1) + ".>"},
		{"hear the store's interface", "$JS.API.>"},
		{"hear the system", "$SYS.>"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if _, err := nc.Subscribe(c.subject, func(m *nats.Msg) { t.Errorf("heard %s", m.Subject) }); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			refused(t)
		})
	}
	t.Run("write a second time", func(t *testing.T) {
		if v, err := registers[0].Put(t.Context(), vectorKey(0, 1, 4, 0, 1), []byte("again")); err != nil || string(v) != commit {
			t.Errorf("stands %q, %v", v, err)
		}
		if v, err := registers[1].Put(t.Context(), decisionKey(4, 1, 2), []byte("again")); err != nil || string(v) != commit {
			t.Errorf("stands %q, %v", v, err)
		}
	})
	for key, r := range map[string]*Client{theirs: registers[2], decisionKey(4, 1, 2): registers[1]} {
		if v, err := r.Get(t.Context(), key); err != nil || string(v) != commit {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
	for _, key := range []string{vectorKey(1, 2, 5, 0, 1), decisionKey(5, 1, 2), ownKey(1, "hello")} {
		if v, err := registers[2].Get(t.Context(), key); !errors.Is(err, ErrNone) {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
}

// Nobody joins but an owner of this network, by all that was made for it.
func TestSecurityOfConnections(t *testing.T) {
	o, all := owners(t, 2)
	h := start(t, o, all...)
	n, mine, others := &o.Network, all[0].Pass, all[1].Pass
	made := func(t *testing.T, o *Organizer, user int, until time.Duration, change func(*jwt.UserClaims)) Pass {
		t.Helper()
		p, err := o.pass(o.Owners[user].Account, o.Owners[user].User, "owner 1", permissions(n, 0), nil, time.Now().Add(until))
		if err != nil {
			t.Fatal(err)
		}
		if change == nil {
			return p
		}
		claims, err := jwt.DecodeUserClaims(p.JWT)
		if err != nil {
			t.Fatal(err)
		}
		change(claims)
		key, err := nkeys.FromSeed([]byte(o.Owners[user].Account))
		if err != nil {
			t.Fatal(err)
		}
		if p.JWT, err = claims.Encode(key); err != nil {
			t.Fatal(err)
		}
		return p
	}
	stranger, err := NewNetwork(h.URL, names(2), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger.Owners[0].User = o.Owners[0].User // the same key, admitted by another account and certified by another authority
	foreign := made(t, stranger, 0, time.Hour, nil)
	old := made(t, o, 0, -time.Minute, nil)
	config := func(t *testing.T, p Pass, change func(*tls.Config)) nats.Option {
		t.Helper()
		c, err := p.tls(n)
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		return nats.Secure(c)
	}
	shows := func(t *testing.T, p Pass) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // also to a hub that does not ask for it
		own, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
		if err != nil {
			t.Fatal(err)
		}
		return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	edited := mine
	edited.JWT = strings.Replace(mine.JWT, ".", ".e", 1)
	password := func(o *nats.Options) error {
		o.User, o.Password, o.UserJWT, o.SignatureCB = "sotto", "sotto", nil, nil
		return nil
	}
	for _, c := range []struct {
		what string
		pass Pass
		more []nats.Option
	}{
		{"no certificate", mine, []nats.Option{config(t, mine, func(c *tls.Config) { c.Certificates = nil })}},
		{"a certificate of another authority", mine, []nats.Option{config(t, mine, func(c *tls.Config) { c.GetClientCertificate = shows(t, foreign) })}},
		{"another owner's certificate", Pass{mine.JWT, mine.User, others.Certificate, others.Key}, nil},
		{"an expired certificate", Pass{mine.JWT, mine.User, old.Certificate, old.Key}, nil},
		{"no JWT", mine, []nats.Option{func(o *nats.Options) error { o.UserJWT, o.SignatureCB = nil, nil; return nil }}},
		{"a password", mine, []nats.Option{password}},
		{"another owner's JWT", Pass{others.JWT, others.User, mine.Certificate, mine.Key}, nil},
		{"another account's JWT", Pass{foreign.JWT, mine.User, mine.Certificate, mine.Key}, nil},
		{"an edited JWT", edited, nil},
		{"an expired JWT", Pass{old.JWT, mine.User, mine.Certificate, mine.Key}, nil},
		{"a JWT that is not good yet", made(t, o, 0, time.Hour, func(u *jwt.UserClaims) { u.NotBefore = time.Now().Add(time.Hour).Unix() }), nil},
		{"a JWT that anybody may bear", made(t, o, 0, time.Hour, func(u *jwt.UserClaims) { u.BearerToken = true }), nil},
		{"a JWT without a limit", made(t, o, 0, time.Hour, func(u *jwt.UserClaims) { u.Permissions = jwt.Permissions{} }), nil},
		{"a wrong key", Pass{mine.JWT, others.User, mine.Certificate, mine.Key}, nil},
		{"TLS 1.2", mine, []nats.Option{config(t, mine, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 })}},
	} {
		t.Run(c.what, func(t *testing.T) {
			if nc, _, err := connect(t, h.URL, n, c.pass, c.more...); err == nil {
				t.Errorf("joined as %s", nc.ConnectedServerName())
			} else {
				t.Log(err)
			}
		})
	}
	t.Run("plaintext", func(t *testing.T) {
		plain, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "tls://"))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		fmt.Fprint(plain, "CONNECT {\"verbose\":true}\r\nSUB > 1\r\nPING\r\n")
		plain.SetReadDeadline(time.Now().Add(patient))
		said, err := io.ReadAll(bufio.NewReader(plain))
		if errors.Is(err, context.DeadlineExceeded) || bytes.Contains(said, []byte("PONG")) || bytes.Contains(said, []byte("INFO")) {
			t.Errorf("it says %q, %v", said, err)
		}
	})
	t.Run("another network's owner", func(t *testing.T) {
		c, err := stranger.Invite(1, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c.Network.Authority = n.Authority // it trusts this hub
		if _, err := Dial(t.Context(), c, ""); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	})
	t.Run("another network's hub", func(t *testing.T) {
		elsewhere := start(t, stranger)
		if _, err := Dial(t.Context(), all[0], elsewhere.URL); !errors.Is(err, ErrStranger) {
			t.Error(err)
		}
	})
	t.Run("an owner instead of the hub", func(t *testing.T) {
		c, err := others.tls(n)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tls.Listen("tcp", "127.0.0.1:0", c)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				nc.(*tls.Conn).Handshake()
				nc.Close()
			}
		}()
		if _, err := Dial(t.Context(), all[0], "tls://"+l.Addr().String()); err == nil || !strings.Contains(err.Error(), "not this network's hub") {
			t.Error(err)
		}
	})
	t.Run("a hub without TLS", func(t *testing.T) {
		if _, err := Dial(t.Context(), all[0], strings.Replace(h.URL, "tls:", "nats:", 1)); err == nil || !strings.Contains(err.Error(), "write tls://HOST:PORT") {
			t.Error(err)
		}
	})
	t.Run("more than one owner needs", func(t *testing.T) {
		var all []*nats.Conn
		var err error
		for err == nil && len(all) <= mostConnections {
			var nc *nats.Conn
			if nc, _, err = connect(t, h.URL, n, mine, nats.NoReconnect()); err == nil {
				all = append(all, nc)
			}
		}
		if len(all) == 0 || len(all) > mostConnections {
			t.Fatalf("%d connections: %v", len(all), err)
		}
		nc := all[0]
		for range mostSubscriptions + 1 {
			if _, err := nc.SubscribeSync(n.inbox(0) + ".x"); err != nil {
				t.Fatal(err)
			}
		}
		nc.Flush()
		if err := nc.LastError(); err == nil || !strings.Contains(err.Error(), "maximum subscriptions") {
			t.Errorf("%d subscriptions: %v", mostSubscriptions+1, err)
		}
		for _, nc := range all {
			nc.Close()
		}
		for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) { // until the hub has noticed
			nc, _, err := connect(t, h.URL, n, mine, nats.NoReconnect())
			if err == nil {
				nc.Close()
				return
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	})
	t.Run("time runs out", func(t *testing.T) {
		for valid := 5 * time.Second; ; valid *= 2 { // on a busy machine it is over before the hub has looked
			nc, _, err := connect(t, h.URL, n, made(t, o, 0, valid, nil), nats.NoReconnect())
			if err == nil {
				ended(t, nc)
				return
			}
			if valid > patient {
				t.Fatal(err)
			}
		}
	})
	t.Run("revoked", func(t *testing.T) {
		nc, _, err := connect(t, h.URL, n, mine, nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		neighbor := dial(t, all[1])
		if err := o.Revoke(0); err != nil {
			t.Fatal(err)
		}
		keys, err := o.Hub()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Reload(keys); err != nil {
			t.Fatal(err)
		}
		ended(t, nc)
		if _, err := Dial(t.Context(), all[0], ""); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		if neighbor.link.(*natsLink).nc.Stats().Reconnects > 0 || !neighbor.link.(*natsLink).nc.IsConnected() {
			t.Error("another owner's connection ended, too")
		}
		// What is made now is good, of another key; what was made before stays refused.
		again, err := o.Invite(0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := connect(t, h.URL, n, again.Pass); err != nil {
			t.Error(err)
		}
		if nc, _, err := connect(t, h.URL, n, Pass{mine.JWT, mine.User, again.Pass.Certificate, again.Pass.Key}); err == nil {
			t.Errorf("joined as %s", nc.ConnectedServerName())
		}
		if again.Pass.User == mine.User {
			t.Error("invited with the key that was turned away")
		}
		if _, err := Dial(t.Context(), all[0], ""); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	})
}

// ended waits until the hub has ended a connection.
func ended(t *testing.T, nc *nats.Conn) {
	t.Helper()
	for end := time.Now().Add(patient); !nc.IsClosed(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the connection is still there")
		}
	}
}

// An owner whose credentials run out while it trains is told so, and does not wait for the hub forever. With new credentials
// it finds what it has put.
func TestTimeRunsOutInTraining(t *testing.T) {
	o, all := owners(t, 2)
	start(t, o, all...)
	key, want := decisionKey(0, 0, 1), []byte("C")
	for valid := 3 * time.Second; ; valid *= 2 { // on a busy machine it is over before the owner has joined
		brief := *all[0]
		pass, err := o.pass(o.Owners[0].Account, o.Owners[0].User, "owner 1", permissions(&brief.Network, 0), nil, time.Now().Add(valid))
		if err != nil {
			t.Fatal(err)
		}
		brief.Pass = pass
		c, err := Dial(t.Context(), &brief, "")
		if err == nil {
			defer c.Close()
			_, err = c.Put(t.Context(), key, want)
		}
		if err != nil {
			if valid > patient {
				t.Fatal(err)
			}
			continue
		}
		for err == nil {
			time.Sleep(50 * time.Millisecond)
			_, err = c.Get(t.Context(), key)
		}
		if !errors.Is(err, ErrRefused) {
			t.Errorf("found the error %v; want one that says that the hub refuses the credentials", err)
		}
		if found, err := dial(t, all[0]).Get(t.Context(), key); err != nil || !bytes.Equal(found, want) {
			t.Errorf("found %q, %v; want %q", found, err, want)
		}
		return
	}
}

// What the hub itself, or anyone with the key of a connection, puts into the store in an owner's name is found out.
func TestSecurityOfMessages(t *testing.T) {
	_, all := owners(t, 2)
	v := []float64{1, 2, 3}
	agreed := Config{1: 7}
	for _, c := range []struct {
		what   string
		forged []byte
	}{
		{"a vector signed by another", encode(agreed, all[0].key(), 4, 1, 0, 0, v)},
		{"a vector under another agreement", encode(Config{}, all[1].key(), 4, 1, 0, 0, v)},
		{"a vector of another round", encode(agreed, all[1].key(), 3, 1, 0, 0, v)},
		{"a vector for another owner", encode(agreed, all[1].key(), 4, 1, 2, 0, v)},
		{"a vector without a signature", make([]byte, headerBytes+8*len(v)+64)},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := &Memory{}
			if _, err := m.Put(t.Context(), vectorKey(1, 0, 4, 0, 1), c.forged); err != nil {
				t.Fatal(err)
			}
			node := &Node{Store: m, Credentials: all[0], Config: agreed, Wait: time.Millisecond}
			got := make([]float64, len(v))
			if err := node.collect(t.Context(), 4, 1, 0, got, m.Get); !errors.Is(err, ErrForged) {
				t.Error(err)
			}
			if theirs, verdict, err := node.hear(t.Context(), 4, 1, decisionKey(4, 0, 1), len(v)); theirs != nil || verdict != "" || err != nil {
				t.Errorf("heard %v, %q, %v", theirs, verdict, err)
			}
		})
	}
	for _, c := range []struct {
		what   string
		forged []byte
	}{
		{"a word signed by another", sign(agreed, all[0].key(), append(word(1, "hello"), 'x'))},
		{"a word under another agreement", sign(Config{}, all[1].key(), append(word(1, "hello"), 'x'))},
		{"a word said of something else", sign(agreed, all[1].key(), append(word(1, "share"), 'x'))},
		{"a word without its question", sign(agreed, all[1].key(), []byte("x"))},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := &Memory{}
			if _, err := m.Put(t.Context(), ownKey(1, "hello"), c.forged); err != nil {
				t.Fatal(err)
			}
			if _, err := (&Node{Store: m, Credentials: all[0], Config: agreed}).Meet(t.Context(), "hello", []byte("y")); !errors.Is(err, ErrForged) {
				t.Error(err)
			}
		})
	}
}

// A peer that says it holds both vectors and has sent none, or decides nonsense, is a peer whose exchange fails: it does not end an owner's training, now
// or when it starts again.
func TestSecurityOfDecisions(t *testing.T) {
	_, all := owners(t, 2)
	for _, dim := range []int{3, chunkFloats + 1} {
		last := chunksOf(dim) - 1
		for what, c := range map[string]struct {
			decision string
			last     []byte // chunk of the peer's vector
		}{
			"committed to nothing":         {decision: commit},
			"committed to a forged vector": {commit, []byte("x")},
			"nonsense":                     {decision: "x"},
			"a part of a vector":           {last: encode(Config{}, all[1].key(), 4, 1, 0, last, make([]float64, dim))},
		} {
			if last == 0 && what == "a part of a vector" {
				continue
			}
			t.Run(fmt.Sprint(what, " ", dim), func(t *testing.T) {
				m := &Memory{}
				for key, v := range map[string][]byte{decisionKey(4, 0, 1): []byte(c.decision), vectorKey(1, 0, 4, last, last+1): c.last} {
					if len(v) == 0 {
						continue
					}
					if _, err := m.Put(t.Context(), key, v); err != nil {
						t.Fatal(err)
					}
				}
				ctx, stop := context.WithTimeout(t.Context(), patient)
				defer stop()
				node := &Node{Store: m, Credentials: all[0], Wait: time.Millisecond}
				if theirs, err := node.exchange(ctx, 4, 1, make([]float64, dim)); theirs != nil || err != nil {
					t.Errorf("found %d numbers, %v", len(theirs), err)
				}
			})
		}
	}
}

// An owner that times out waiting for one still finds what others have said, also where it did not hear them.
func TestOneIsMissing(t *testing.T) {
	_, all := hub(t, 3)
	config := Config{1: 7}
	node := func(owner int) *Node {
		return &Node{Store: dial(t, all[owner]), Credentials: all[owner], Config: config}
	}
	// Each waits two seconds; on a busy machine that is too short for what the hub does, so again and longer.
	brief := func(what string, is func(ctx context.Context) bool) {
		t.Helper()
		for wait := 2 * time.Second; ; wait *= 2 {
			ctx, stop := context.WithTimeout(t.Context(), wait)
			ok := is(ctx)
			stop()
			if ok {
				return
			}
			if wait > patient {
				t.Fatal(what)
			}
		}
	}
	for _, owner := range []int{1, 2} {
		n := node(owner)
		brief("to find who is missing", func(ctx context.Context) bool {
			_, err := n.Meet(ctx, "hello", []byte("x"))
			var missing *ErrMissing
			return errors.As(err, &missing) && (owner == 1 || len(missing.Names) == 1)
		})
		brief("to share models", func(ctx context.Context) bool {
			models, err := n.Share(ctx, 9, []float64{float64(owner)})
			return err == nil && models[0] == nil && models[owner] != nil && (owner == 1 || models[1] != nil)
		})
	}
	// What one publishes instead of its parameters is its own matter.
	if _, err := dial(t, all[0]).Put(t.Context(), messageKey(0, 0, toAll, 0, 1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	brief("to find the others' models", func(ctx context.Context) bool {
		models, err := node(1).Models(ctx, 9, 1)
		return err == nil && models[0] == nil && models[2] != nil
	})
}

// What an owner did not hear it finds: live copies may be lost.
func TestDeafOwner(t *testing.T) {
	_, all := hub(t, 2)
	a, b := dial(t, all[0]), dial(t, all[1])
	for _, s := range b.link.(*natsLink).heard {
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

// refusedBy returns a test that the hub refuses what was just sent, which the connection's errors tell.
func refusedBy(refusals <-chan error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		select {
		case err := <-refusals:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Error(err)
			}
		case <-time.After(patient):
			t.Error("nobody refuses it")
		}
	}
}
