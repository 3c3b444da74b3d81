package fabric

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// A Hub carries the messages of one network: a NATS server inside this process, whose streams are the register. What
// it has acknowledged is on disk.
type Hub struct {
	s   *server.Server
	URL string
}

// HubOptions say where a hub listens and keeps its register.
type HubOptions struct {
	Dir  string // of the register; it must be this network's
	Host string // default 127.0.0.1
	Port int    // 0: the system chooses
}

const hubStart = 30 * time.Second

// StartHub starts the hub of a network.
func StartHub(ctx context.Context, n *Network, o HubOptions) (*Hub, error) {
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	port := o.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	own, err := nkeys.CreateUser() // of the hub itself, in this process
	if err != nil {
		return nil, err
	}
	name, err := own.PublicKey()
	if err != nil {
		return nil, err
	}
	users := []*server.NkeyUser{{Nkey: name}}
	for i := range n.Owners {
		name, err := userName(n.key(i))
		if err != nil {
			return nil, err
		}
		users = append(users, &server.NkeyUser{Nkey: name, Permissions: permissions(n, i)})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "sotto", Host: o.Host, Port: port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, Nkeys: users, WriteDeadline: 10 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(hubStart) {
		s.Shutdown()
		return nil, fmt.Errorf("the hub did not start: %s in use, or %s cannot be written", net.JoinHostPort(o.Host, fmt.Sprint(o.Port)), o.Dir)
	}
	h := &Hub{s, s.ClientURL()}
	if err := h.streams(ctx, n, own, name); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// streams makes the register where it is not there yet.
func (h *Hub) streams(ctx context.Context, n *Network, own nkeys.KeyPair, name string) error {
	nc, err := nats.Connect("", nats.InProcessServer(h.s), nats.Nkey(name, own.Sign))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		in := n.subject(kind, "in", ">")
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: n.stream(kind), Subjects: []string{in}, Storage: jetstream.FileStorage,
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, // a register: written once
			DenyDelete: true, DenyPurge: true, AllowDirect: true,
			RePublish: &jetstream.RePublish{Source: in, Destination: n.subject(kind, "out", ">")},
		}); err != nil {
			return err
		}
	}
	return nil
}

// Close stops the hub. Its register stays.
func (h *Hub) Close() {
	h.s.Shutdown()
	h.s.WaitForShutdown()
}

// kinds of keys, each with a stream of its own.
var kinds = []string{"rel", "dec", "own"}

func (n *Network) subject(kind, way, rest string) string {
	return "sotto." + n.ID + "." + kind + "." + way + "." + rest
}

func (n *Network) stream(kind string) string { return "SOTTO-" + n.ID + "-" + kind }

func (n *Network) inbox(owner int) string { return fmt.Sprintf("_INBOX.%s.%d", n.ID, owner) }

// permissions are the least that an owner can do with: publish as itself, take part in the decisions of its own edges, read what is
// meant for it. The stream's own interface is closed to it but for reading one subject, which the subject's name
// confines; $JS.API as a whole would not be (network.md §3).
func permissions(n *Network, owner int) *server.Permissions {
	own := fmt.Sprint(owner)
	read := func(kind, rest string) string {
		return "$JS.API.DIRECT.GET." + n.stream(kind) + "." + n.subject(kind, "in", rest)
	}
	return &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{
			n.subject("rel", "in", own+".>"), n.subject("dec", "in", "*."+own+".*"), n.subject("dec", "in", "*.*."+own), n.subject("own", "in", own+".>"),
			read("rel", own+".>"), read("rel", "*."+own+".>"), read("dec", "*."+own+".*"), read("dec", "*.*."+own), read("own", ">"),
		}},
		Subscribe: &server.SubjectPermission{Allow: append(listens(n, owner), n.inbox(owner)+".>")},
	}
}

// listens is what an owner hears as it is stored.
func listens(n *Network, owner int) []string {
	own := fmt.Sprint(owner)
	return []string{n.subject("rel", "out", "*."+own+".>"), n.subject("dec", "out", "*."+own+".*"), n.subject("dec", "out", "*.*."+own), n.subject("own", "out", ">")}
}

// userName is an Ed25519 key as NATS writes it.
func userName(key ed25519.PublicKey) (string, error) {
	b, err := nkeys.Encode(nkeys.PrefixByteUser, key)
	return string(b), err
}

// errRefused is what the hub's refusals wrap.
var errRefused = errors.New("the hub refuses this owner")
