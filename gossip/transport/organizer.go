package transport

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// An Organizer makes a network, admits its owners and revokes them. It is secret: anyone who holds
// it can connect to the hub as any owner, and act in the name of those whose keys it made. It sees no row
// and no sum before noise.
type Organizer struct {
	Format    string      `json:"format"`
	Network   Network     `json:"network"`
	System    string      `json:"system"`    // key of the server's own account, whose seed is not kept
	Operator  string      `json:"operator"`  // seeds of the NATS keys: of the operator,
	Account   string      `json:"account"`   // of the store's account,
	HubUser   string      `json:"hub_user"`  // and of the hub itself
	Authority string      `json:"authority"` // key of the certificates, PEM
	Owners    []ownerKeys `json:"owners"`
}

// ownerKeys are the keys of one owner. The hub chooses what the key of a connection signs, so messages
// have another key.
type ownerKeys struct {
	Seed    string   `json:"seed,omitempty"`   // of its messages, Ed25519, in hexadecimal; none if the owner made it
	User    string   `json:"user"`             // seed of its connection, as NATS writes it
	Account string   `json:"account"`          // seed of its account at the hub
	Former  []string `json:"former,omitempty"` // public keys of its connection that were turned away
}

const organizerFormat = "sotto-organiser/2"

// How long certificates are valid.
const (
	authorityYears = 5
	skew           = time.Hour // of clocks
)

// NewNetwork makes a network of owners with fresh keys. hub are URLs of the hub with commas between
// them, or "" while it is open. Without limits any owner may fill the hub's disk.
func NewNetwork(hub string, names []string, agreed map[string]string, limits *Limits) (*Organizer, error) {
	var members []Member
	var seeds []string
	for _, name := range names {
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		members = append(members, Member{name, hex.EncodeToString(public)})
		seeds = append(seeds, hex.EncodeToString(key.Seed()))
	}
	o, err := newNetwork(hub, members, agreed, limits)
	if err != nil {
		return nil, err
	}
	for i, seed := range seeds {
		o.Owners[i].Seed = seed
	}
	return o, o.Network.validate()
}

// NewNetworkWithKeys is NewNetwork for owners who made the keys of their messages themselves. With limits of sums
// the network is of mode sum.
func NewNetworkWithKeys(hub string, requests []*Request, agreed map[string]string, limits *Limits) (*Organizer, error) {
	var members []Member
	for _, r := range requests {
		if err := r.validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		members = append(members, r.Member())
	}
	o, err := newNetwork(hub, members, agreed, limits)
	if err != nil {
		return nil, err
	}
	o.Network.OwnKeys = true
	return o, o.Network.validate()
}

// newNetwork makes everything but the keys of messages.
func newNetwork(hub string, members []Member, agreed map[string]string, limits *Limits) (*Organizer, error) {
	id := make([]byte, 8)
	rand.Read(id)
	o := &Organizer{Format: organizerFormat,
		Network: Network{Format: networkFormat, ID: hex.EncodeToString(id), Hub: hub, Owners: members, Agreed: agreed,
			Limits: limits}}
	if limits != nil && limits.Sums != nil {
		o.Network.Mode = ModeSum
	}
	if _, err := hubHosts(hub); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	for seed, kind := range map[*string]nkeys.PrefixByte{&o.Operator: nkeys.PrefixByteOperator,
		&o.Account: nkeys.PrefixByteAccount, &o.HubUser: nkeys.PrefixByteUser} {
		if err := newSeed(seed, kind); err != nil {
			return nil, err
		}
	}
	system, err := nkeys.CreateAccount()
	if err != nil {
		return nil, err
	}
	if o.System, err = system.PublicKey(); err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "sotto network " + o.Network.ID}, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true,
		KeyUsage:       x509.KeyUsageCertSign, NotAfter: time.Now().AddDate(authorityYears, 0, 0),
	}
	if o.Network.Authority, o.Authority, err = certificate(ca, nil); err != nil {
		return nil, err
	}
	for range members {
		var keys ownerKeys
		if err := errors.Join(newSeed(&keys.User, nkeys.PrefixByteUser),
			newSeed(&keys.Account, nkeys.PrefixByteAccount)); err != nil {
			return nil, err
		}
		o.Owners = append(o.Owners, keys)
	}
	return o, nil
}

// ReadOrganizer reads an organizer's file.
func ReadOrganizer(path string) (*Organizer, error) {
	o := &Organizer{}
	return o, read(path, o, organizerFormat)
}

func (o *Organizer) validate() error { return o.Network.owned(len(o.Owners)) }

// Files of an organizer's directory.
const (
	OrganizerFile = "organiser.json" // secret of the organizer
	HubFile       = "hub.json"       // secret of the hub
	NetworkFile   = "network.json"   // public
)

// WriteDir writes the organizer's own file, the hub's and the public one.
func (o *Organizer) WriteDir(dir string) error {
	hub, err := o.Hub()
	if err != nil {
		return err
	}
	if err := o.Write(filepath.Join(dir, OrganizerFile)); err != nil {
		return err
	}
	if err := hub.Write(filepath.Join(dir, HubFile)); err != nil {
		return err
	}
	return o.Network.Write(filepath.Join(dir, NetworkFile))
}

// OpenOrganizer reads an organizer's directory and finds the owner of that name.
func OpenOrganizer(dir, name string) (*Organizer, int, error) {
	o, err := ReadOrganizer(filepath.Join(dir, OrganizerFile))
	if err != nil {
		return nil, 0, err
	}
	public, err := ReadNetwork(filepath.Join(dir, NetworkFile))
	switch {
	case errors.Is(err, os.ErrNotExist): // it is public, and holds no keys
	case err != nil:
		return nil, 0, err
	case !reflect.DeepEqual(public, &o.Network):
		return nil, 0,
			fmt.Errorf("--dir: found another network in %s (%s, id %s) than in %s (%s, id %s); use files that sotto net init wrote together",
				NetworkFile, public.names(), public.ID, OrganizerFile, o.Network.names(), o.Network.ID)
	}
	owner := slices.IndexFunc(o.Network.Owners, func(m Member) bool { return m.Name == name })
	if owner < 0 {
		return nil, 0, fmt.Errorf("unknown owner %q; choose %s", name, o.Network.names())
	}
	return o, owner, nil
}

// names lists the owners.
func (n *Network) names() string {
	var names []string
	for _, m := range n.Owners {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// Write writes the organizer to a file for itself only.
func (o *Organizer) Write(path string) error { return write(path, o) }

// Invite makes an owner's credentials, valid for that long.
func (o *Organizer) Invite(owner int, valid time.Duration) (*Credentials, error) {
	until := time.Now().Add(valid)
	keys := o.Owners[owner]
	c := &Credentials{Format: credentialsFormat, Network: o.Network, Owner: owner, Seed: keys.Seed}
	var err error
	c.Pass, err = o.pass(keys.Account, keys.User, c.Name(), permissions(&o.Network, owner), nil, until)
	if err != nil {
		return nil, err
	}
	return c, c.validate()
}

// Hub makes what the hub of the network needs, with the revocations so far.
func (o *Organizer) Hub() (*HubKeys, error) {
	h := &HubKeys{Format: hubFormat, Network: o.Network}
	operator, err := nkeys.FromSeed([]byte(o.Operator))
	if err != nil {
		return nil, err
	}
	name, err := operator.PublicKey()
	if err != nil {
		return nil, err
	}
	oc := jwt.NewOperatorClaims(name)
	oc.Name, oc.SystemAccount = "sotto "+o.Network.ID, o.System
	if h.Operator, err = oc.Encode(operator); err != nil {
		return nil, err
	}
	sys := jwt.NewAccountClaims(o.System)
	sys.Name = "sotto system"
	if h.System, err = sys.Encode(operator); err != nil {
		return nil, err
	}
	register, err := publicName(o.Account)
	if err != nil {
		return nil, err
	}
	ac := jwt.NewAccountClaims(register)
	ac.Name, ac.Exports = "sotto "+o.Network.ID, exports(&o.Network)
	ac.Limits.DisallowBearer = true
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, Streams: int64(len(o.Network.streams())),
		Consumer: jwt.NoLimit}
	if h.Account, err = ac.Encode(operator); err != nil {
		return nil, err
	}
	for i := range o.Owners {
		text, err := o.account(operator, register, i)
		if err != nil {
			return nil, err
		}
		h.Owners = append(h.Owners, text)
	}
	hosts, err := hubHosts(o.Network.Hub)
	if err != nil {
		return nil, err
	}
	h.Pass, err = o.pass(o.Account, o.HubUser, "hub", jwt.Permissions{}, append(hosts, "localhost", "127.0.0.1", "::1"),
		time.Now().AddDate(authorityYears, 0, 0))
	return h, err
}

// An owner has one connection with six subscriptions, and more until the hub notices that earlier ones
// are dead. Limits state what it may store.
const (
	mostConnections   = 64
	mostSubscriptions = 32 // of each
)

// account makes an owner's own account, which exchanges with the store only what the owner may use.
func (o *Organizer) account(operator nkeys.KeyPair, register string, owner int) (string, error) {
	name, err := publicName(o.Owners[owner].Account)
	if err != nil {
		return "", err
	}
	ac := jwt.NewAccountClaims(name)
	ac.Name, ac.Imports = o.Network.Owners[owner].Name, imports(&o.Network, register, owner)
	ac.Limits.DisallowBearer, ac.Limits.Conn, ac.Limits.Subs = true, mostConnections, mostSubscriptions
	if l := o.Network.Limits; l != nil {
		ac.Limits.Payload = int64(l.payload())
	}
	for _, user := range o.Owners[owner].Former {
		ac.RevokeAt(user, forGood)
	}
	return ac.Encode(operator)
}

// forGood revokes every JWT of a key, also future ones.
var forGood = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Revoke turns an owner away once the hub has the result of Hub. Invite then makes credentials with
// another key: the old ones stay useless.
func (o *Organizer) Revoke(owner int) error {
	keys := &o.Owners[owner]
	user, err := publicName(keys.User)
	if err != nil {
		return err
	}
	keys.Former = append(keys.Former, user)
	return newSeed(&keys.User, nkeys.PrefixByteUser)
}

// pass makes a Pass for a connection to the hub or, if hosts are given, for the hub itself.
func (o *Organizer) pass(account, seed, name string, may jwt.Permissions, hosts []string,
	until time.Time) (p Pass, err error) {
	user, err := publicName(seed)
	if err != nil {
		return p, err
	}
	issuer, err := nkeys.FromSeed([]byte(account))
	if err != nil {
		return p, err
	}
	claims := jwt.NewUserClaims(user)
	claims.Name, claims.Permissions, claims.Expires = name, may, until.Unix()
	if l := o.Network.Limits; l != nil && len(hosts) == 0 {
		claims.Limits.Payload = int64(l.payload())
	}
	p.User = seed
	if p.JWT, err = claims.Encode(issuer); err != nil {
		return p, err
	}
	ca, err := tls.X509KeyPair([]byte(o.Network.Authority), []byte(o.Authority))
	if err != nil {
		return p, fmt.Errorf("authority: %w; use the file that `sotto net init` wrote", err)
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: user}, NotAfter: until, // the name binds it to the JWT
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	if len(hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	p.Certificate, p.Key, err = certificate(t, &ca)
	return p, err
}

// certificate makes a key and its certificate, both in PEM. Without an authority the key signs its own.
func certificate(t *x509.Certificate, authority *tls.Certificate) (cert, key string, err error) {
	public, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	if authority == nil {
		authority = &tls.Certificate{Leaf: t, PrivateKey: own}
	}
	t.NotBefore = time.Now().Add(-skew)
	der, err := x509.CreateCertificate(rand.Reader, t, authority.Leaf, public, authority.PrivateKey)
	if err != nil {
		return "", "", err
	}
	text, err := x509.MarshalPKCS8PrivateKey(own)
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", text), err
}

func newSeed(to *string, kind nkeys.PrefixByte) error {
	key, err := nkeys.CreatePair(kind)
	if err != nil {
		return err
	}
	seed, err := key.Seed()
	*to = string(seed)
	return err
}

// publicName returns the public key of a seed, as NATS writes both.
func publicName(seed string) (string, error) {
	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", err
	}
	return key.PublicKey()
}

// ErrURL says what a hub's URL looks like.
var ErrURL = errors.New("tls://HOST:PORT with a port of 1 to 65535, or several with commas between them")

// hubHosts returns the hosts of the hub's URLs.
func hubHosts(urls string) (hosts []string, err error) {
	if urls == "" {
		return nil, nil
	}
	for _, text := range strings.Split(urls, ",") {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "tls" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("found %q; write %w", text, ErrURL)
		}
		if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
			return nil, fmt.Errorf("found %q; write %w", text, ErrURL)
		}
		if !slices.Contains(hosts, u.Hostname()) {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts, nil
}
