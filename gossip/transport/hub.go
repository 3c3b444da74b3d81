package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Hub carries the messages of one network: a NATS server in this process, whose streams are the
// store. What it acknowledged is on disk.
type Hub struct {
	s       *server.Server
	gate    *gate
	network *Network
	nc      *nats.Conn      // inside this process
	told    map[string]bool // stores that are full
	adding  *adding         // nil but in a network of mode sum
	URL     string
}

// HubKeys are what the hub of a network needs. They are secret, also from owners.
type HubKeys struct {
	Format   string   `json:"format"`
	Network  Network  `json:"network"`
	Operator string   `json:"operator"` // JWT
	System   string   `json:"system"`   // JWT of the server's own account, which has no users
	Account  string   `json:"account"`  // JWT of the store's
	Owners   []string `json:"owners"`   // JWTs of the owners' accounts, each with whether it was turned away
	Pass     Pass     `json:"pass"`
}

const hubFormat = "sotto-hub/2"

// ReadHubKeys reads a hub's file.
func ReadHubKeys(path string) (*HubKeys, error) {
	k := &HubKeys{}
	return k, read(path, k, hubFormat)
}

func (k *HubKeys) validate() error {
	if _, err := k.claims(); err != nil {
		return err
	}
	return k.Network.owned(len(k.Owners))
}

// Write writes the keys to a file for the hub only.
func (k *HubKeys) Write(path string) error { return write(path, k) }

// claims are what a hub's file states, checked against the operator's signature.
type claims struct {
	operator *jwt.OperatorClaims
	system   string                        // public key of the server's own account
	accounts map[string]*jwt.AccountClaims // of the store and the owners, by their public keys
	texts    map[string]string             // JWTs of all accounts, by their public keys
}

func (k *HubKeys) claims() (c claims, err error) {
	if c.operator, err = jwt.DecodeOperatorClaims(k.Operator); err != nil {
		return c, fmt.Errorf("operator: %w", err)
	}
	c.accounts, c.texts = map[string]*jwt.AccountClaims{}, map[string]string{}
	for i, text := range append([]string{k.System, k.Account}, k.Owners...) {
		account, err := jwt.DecodeAccountClaims(text)
		if err != nil {
			return c, fmt.Errorf("account: %w", err)
		}
		if !c.operator.DidSign(account) {
			return c, errors.New("account: is not signed by the operator")
		}
		if c.texts[account.Subject] != "" {
			return c, fmt.Errorf("owners: found the account of %q twice; each owner needs an account of its own", account.Name)
		}
		c.texts[account.Subject] = text
		if i == 0 {
			c.system = account.Subject
		} else {
			c.accounts[account.Subject] = account
		}
	}
	return c, nil
}

// HubOptions say where a hub listens and keeps its store.
type HubOptions struct {
	Dir  string // of the store; it must be this network's
	Host string // default 127.0.0.1
	Port int    // 0: the system chooses
}

const hubStart = 30 * time.Second

func (o HubOptions) withDefaults() (_ HubOptions, at string) {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	return o, net.JoinHostPort(o.Host, strconv.Itoa(o.Port))
}

// StartHub starts the hub of a network. It must be the only one in its directory.
func StartHub(ctx context.Context, k *HubKeys, o HubOptions) (*Hub, error) {
	o, at := o.withDefaults()
	port := cmp.Or(o.Port, server.RANDOM_PORT)
	c, err := k.claims()
	if err != nil {
		return nil, err
	}
	g := &gate{}
	g.accounts.Store(&c.accounts)
	if g.hub, err = publicName(k.Pass.User); err != nil {
		return nil, err
	}
	resolver := &server.MemAccResolver{}
	for name, text := range c.texts {
		if err := resolver.Store(name, text); err != nil {
			return nil, err
		}
	}
	secure, err := k.Pass.tls(&k.Network)
	if err != nil {
		return nil, err
	}
	most := int64(0) // three quarters of what the disk has free now
	if k.Network.Limits != nil {
		most = 1 << 62 // the stores have limits, and count in full before they hold anything
	}
	s, err := server.NewServer(&server.Options{
		JetStreamMaxStore: most,
		ServerName:        "sotto", Host: o.Host, Port: port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, WriteDeadline: 10 * time.Second,
		TrustedOperators: []*jwt.OperatorClaims{c.operator}, AccountResolver: resolver, SystemAccount: c.system,
		CustomClientAuthentication: g,
		TLS:                        true, TLSVerify: true, TLSConfig: secure, TLSHandshakeFirst: true, TLSTimeout: 10,
		// Owners may connect after the streams exist: if an account's first two connections come at
		// once, the server can lose its new directory.
		DontListen: true,
	})
	if err != nil {
		return nil, err
	}
	g.s = s
	s.Start()
	if !s.ReadyForConnections(hubStart) {
		s.Shutdown()
		return nil, fmt.Errorf("the hub did not start at %s with the store in %s", at, o.Dir)
	}
	h := &Hub{s: s, gate: g, network: &k.Network, told: map[string]bool{}}
	h.nc, err = nats.Connect("", nats.InProcessServer(s), nats.UserJWTAndSeed(k.Pass.JWT, k.Pass.User),
		nats.MaxReconnects(-1))
	if err == nil {
		err = streams(ctx, h.nc, &k.Network, 1)
	}
	if err == nil && k.Network.Mode == ModeSum {
		h.adding, err = startAdding(h.nc, &k.Network)
	}
	if err == nil {
		if s.AcceptLoop(make(chan struct{})); s.Addr() == nil {
			err = &PlaceError{at, errors.New("it cannot be listened on")}
		}
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	h.URL = k.Network.reached(o.Host, s.Addr().(*net.TCPAddr).Port)
	return h, nil
}

// reached returns the URL of a hub that listens at a host and port. For an unspecified address it
// contains the host that owners know.
func (n *Network) reached(host string, port int) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if hosts, err := hubHosts(n.Hub); err == nil && len(hosts) > 0 {
			host = hosts[0]
		}
	}
	return "tls://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// A PlaceError says that a hub cannot use an address or a directory.
type PlaceError struct {
	Place string
	Err   error
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("%s: no hub can be there (%v)", e.Place, e.Err)
}
func (e *PlaceError) Unwrap() error { return e.Err }

// Check tries the address, and makes and tries the directory, since the server would not say what is
// wrong with them. If a hub cannot use them, Check leaves nothing behind and returns a *PlaceError.
func (o HubOptions) Check() error {
	o, at := o.withDefaults()
	l, err := net.Listen("tcp", at)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return &PlaceError{at, reason(err)}
	}
	if err := settle(o.Dir, server.JetStreamStoreDir); err != nil {
		return err
	}
	f, err := os.CreateTemp(o.Dir, ".sotto-*")
	if err != nil {
		return &PlaceError{o.Dir, reason(err)}
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// settle makes a directory. One that is not empty must hold the known file.
func settle(dir, known string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &PlaceError{dir, reason(err)}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &PlaceError{dir, reason(err)}
	}
	named := func(name string) func(os.DirEntry) bool { return func(e os.DirEntry) bool { return e.Name() == name } }
	entries = slices.DeleteFunc(entries, named(".lock"))
	if len(entries) > 0 && !slices.ContainsFunc(entries, named(known)) {
		return &PlaceError{dir, fmt.Errorf("it is not empty and holds no %s; use a new directory", known)}
	}
	return nil
}

// reason returns an error of the system without the names that its caller adds.
func reason(err error) error {
	var path *os.PathError
	var link *os.LinkError
	var op *net.OpError
	switch {
	case errors.As(err, &link):
		return link.Err
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// Reload applies revocations since the hub began, and ends these owners' connections.
func (h *Hub) Reload(k *HubKeys) error {
	now, err := k.claims()
	if err != nil {
		return err
	}
	before := *h.gate.accounts.Load()
	for name := range now.accounts {
		if before[name] == nil {
			return errors.New("account: is not this hub's")
		}
	}
	h.gate.accounts.Store(&now.accounts)
	for name, account := range now.accounts {
		if maps.Equal(account.Revocations, before[name].Revocations) {
			continue
		}
		known, err := h.s.LookupAccount(name)
		if err != nil {
			return err
		}
		h.s.UpdateAccountClaims(known, account)
	}
	return nil
}

// Full returns the owners that have stored more than the training needs, each once, and tells all owners.
func (h *Hub) Full(ctx context.Context) ([]string, error) {
	return findFull(ctx, h.nc, h.network, h.told)
}

// streams makes the store if it does not exist, with that many copies.
func streams(ctx context.Context, nc *nats.Conn, n *Network, replicas int) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for _, s := range n.streams() {
		in, kind := n.pattern(s.keys, "in"), strings.SplitN(s.key, ".", 2)[0]
		c := jetstream.StreamConfig{
			Name: n.stream(s.key), Subjects: []string{in}, Storage: jetstream.FileStorage, Replicas: replicas,
			// an append-only store: written once
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
			DenyDelete: true, DenyPurge: !s.emptied, AllowDirect: true, // owners may not purge anyway
			RePublish: &jetstream.RePublish{Source: n.subject(kind, "in", ">"), Destination: n.subject(kind, "out", ">")},
		}
		if s.messages > 0 {
			c.MaxMsgs, c.MaxMsgSize, c.MaxBytes = int64(s.messages), int32(s.bytes), int64(s.messages)*int64(s.bytes+keyBytes)
		}
		if _, err := js.CreateOrUpdateStream(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Connections returns how many connections of owners there are.
func (h *Hub) Connections() int { return max(0, h.s.NumClients()-1) } // but for the hub's own

// Stored returns how many messages the store holds: what owners released, and the decisions about their exchanges.
func (h *Hub) Stored() uint64 {
	info, err := h.s.Jsz(nil)
	if err != nil {
		return 0
	}
	return info.Messages
}

// GivenUp returns why the hub has given attempts up since the last call, each once (network.mode: sum).
func (h *Hub) GivenUp() []string {
	if h.adding == nil {
		return nil
	}
	return h.adding.texts()
}

// Close stops the hub. Its store stays.
func (h *Hub) Close() {
	if h.adding != nil {
		h.adding.close()
	}
	if h.nc != nil {
		h.nc.Close()
	}
	h.s.Shutdown()
	h.s.WaitForShutdown()
}

func (n *Network) subject(kind, way, rest string) string {
	return "sotto." + n.ID + "." + kind + "." + way + "." + rest
}

func (n *Network) inbox(owner int) string { return fmt.Sprintf("_INBOX.%s.%d", n.ID, owner) }

// permissions returns the least that an owner needs: publish as itself, take part in the decisions of its
// own edges, and read what is meant for it. It may read single subjects through $JS.API, which the
// subject's name confines; all of $JS.API would not be confined (network.md §3).
func permissions(n *Network, owner int) jwt.Permissions {
	own := fmt.Sprint(owner)
	read := func(kind, rest string) string { return n.reads(kind) + n.subject(kind, "in", rest) }
	sub := jwt.Permission{Allow: append(listens(n, owner), n.inbox(owner)+".>")}
	if n.Mode == ModeSum {
		write := append(n.ownSubjects(owner), n.subject("sum", "in", own+".here.*"), n.subject("sum", "in", own+".stop.*.*"),
			n.subject("sum", "in", own+".part.*.*"))
		if sumChunks(n.Limits.Sums.Numbers) > 1 {
			write = append(write, n.subject("sum", "in", own+".part.*.*.*"))
		}
		return jwt.Permissions{Pub: jwt.Permission{Allow: append(write, read("sum", own+".>"), read("all", ">"),
			read("own", ">"), read("hub", "*"))}, Sub: sub}
	}
	write := []string{n.subject("dec", "in", "*."+own+".*"), n.subject("dec", "in", "*.*."+own)}
	if n.Limits == nil {
		write = append(write, n.subject("rel", "in", own+".>"), n.subject("own", "in", own+".>"))
	} else { // no other keys than the schedule's have this form
		write = append(write, n.subject("rel", "in", own+".*.*"+n.chunkOf()))
		write = append(append(write, n.ownSubjects(owner)...), read("hub", "*"))
	}
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: append(write,
			read("rel", own+".>"), read("rel", "*."+own+".>"), read("dec", "*."+own+".*"), read("dec", "*.*."+own),
			read("own", ">"),
		)},
		Sub: sub,
	}
}

// chunkOf is the end of a vector's keys.
func (n *Network) chunkOf() string {
	if chunksOf(n.Limits.Dim) > 1 {
		return ".*"
	}
	return ""
}

// ownSubjects are those on which an owner says what all read.
func (n *Network) ownSubjects(owner int) []string {
	all := []string{n.subject("own", "in", fmt.Sprint(owner, ".", Model, n.chunkOf()))}
	said := words
	if n.Mode == ModeSum {
		said = append(slices.Clip(said), behind)
	}
	for _, word := range said {
		all = append(all, n.subject("own", "in", fmt.Sprint(owner, ".", word)))
	}
	return all
}

// reads begins the subject with which a key of that kind is read. It names the stream, or any
// stream: the key confines what can be read.
func (n *Network) reads(kind string) string {
	if n.Limits == nil {
		return "$JS.API.DIRECT.GET." + n.stream(kind) + "."
	}
	return "$JS.API.DIRECT.GET.*."
}

// kinds are those of keys.
func (n *Network) kinds() []string {
	switch {
	case n.Limits == nil:
		return []string{"rel", "dec", "own"}
	case n.Mode == ModeSum:
		return []string{"own", "hub", "sum", "all"}
	}
	return []string{"rel", "dec", "own", "hub"}
}

// fromHub says whether only the hub writes keys of a kind.
func fromHub(kind string) bool { return kind == "hub" || kind == "all" }

// listens are the subjects on which an owner hears what is stored.
func listens(n *Network, owner int) []string {
	if n.Mode == ModeSum {
		return []string{n.subject("own", "out", ">"), n.subject("hub", "out", "*"), n.subject("all", "out", ">")}
	}
	own := fmt.Sprint(owner)
	all := []string{n.subject("rel", "out", "*."+own+".>"), n.subject("dec", "out", "*."+own+".*"),
		n.subject("dec", "out", "*.*."+own), n.subject("own", "out", ">")}
	if n.Limits != nil {
		all = append(all, n.subject("hub", "out", "*"))
	}
	return all
}

// permissions confine what an owner may publish, but not where the answers go, which the owner
// names itself; its account does that. In a common account, the store's acknowledgments and the
// messages that it reads out could write any key, including those of others.

// exports are what the store's account offers to other accounts.
func exports(n *Network) (all jwt.Exports) {
	for _, kind := range n.kinds() {
		read := jwt.Subject(n.reads(kind) + ">")
		if n.Limits != nil {
			read = jwt.Subject(n.reads(kind) + n.subject(kind, "in", ">"))
		}
		all.Add(&jwt.Export{Subject: read, Type: jwt.Service})
		if !fromHub(kind) {
			all.Add(&jwt.Export{Subject: jwt.Subject(n.subject(kind, "in", ">")), Type: jwt.Service})
		}
		if kind != "sum" { // parts go to the hub only
			all.Add(&jwt.Export{Subject: jwt.Subject(n.subject(kind, "out", ">")), Type: jwt.Stream})
		}
	}
	return all
}

// imports are what an owner's account takes of it: what the owner may use.
func imports(n *Network, register string, owner int) (all jwt.Imports) {
	for _, subject := range permissions(n, owner).Pub.Allow {
		all.Add(&jwt.Import{Subject: jwt.Subject(subject), Account: register, Type: jwt.Service})
	}
	for _, subject := range listens(n, owner) {
		all.Add(&jwt.Import{Subject: jwt.Subject(subject), Account: register, Type: jwt.Stream})
	}
	return all
}

// ErrStranger: the server that answers is not the network's hub.
var ErrStranger = errors.New("what answers there is not this network's hub")

// ErrClock: by this machine's clock the hub's certificate has run out or is not valid yet.
var ErrClock = errors.New("by this machine's clock the hub's certificate is not valid now; set the clock, or if it is right, ask the organizer for a new network")

// ErrRefused: the hub rejects this owner or its request.
var ErrRefused = errors.New("the hub refuses this owner")
