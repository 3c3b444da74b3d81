package transport

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// ownKeys founds a network of n owners with keys of their own, and gives each owner its credentials.
func ownKeys(t testing.TB, n int) (*Organizer, []*OwnerKey, []*Credentials) {
	t.Helper()
	return ownKeysFor(t, n, nil)
}

func ownKeysFor(t testing.TB, n int, limits *Limits) (*Organizer, []*OwnerKey, []*Credentials) {
	t.Helper()
	var keys []*OwnerKey
	var requests []*Request
	for _, name := range names(n) {
		k, err := NewOwnerKey(name)
		if err != nil {
			t.Fatal(err)
		}
		keys, requests = append(keys, k), append(requests, k.Request())
	}
	o, err := NewNetworkWithKeys("", requests, map[string]string{"privacy": "a hash"}, limits)
	if err != nil {
		t.Fatal(err)
	}
	return o, keys, taken(t, o, keys)
}

// taken are the credentials that the organizer makes, with the owners' own keys.
func taken(t testing.TB, o *Organizer, keys []*OwnerKey) []*Credentials {
	t.Helper()
	all := invitations(t, o)
	for i, c := range all {
		if err := c.Take(keys[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func fingerprint(t testing.TB, n *Network) string {
	t.Helper()
	text, err := n.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// joined is an owner that has come to a store.
func joined(t testing.TB, m Store, c *Credentials) *Node {
	t.Helper()
	config, err := c.Network.Config()
	if err != nil {
		t.Fatal(err)
	}
	return &Node{Store: m, Credentials: c, Config: config}
}

// meets is the error of an owner that meets others who have come.
func meets(t testing.TB, m Store, c *Credentials) error {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patient)
	defer stop()
	_, err := joined(t, m, c).Meet(ctx, Hello, []byte("share"))
	return err
}

// hello stores the Hello of an owner, without waiting for others.
func hello(t testing.TB, m Store, c *Credentials) {
	t.Helper()
	n := joined(t, m, c)
	if _, err := m.Put(t.Context(), ownKey(c.Owner, Hello), sign(n.Config, c.key(), append(word(c.Owner, Hello), "share"...))); err != nil {
		t.Fatal(err)
	}
}

func TestOwnersMakeTheirKeys(t *testing.T) {
	o, keys, all := ownKeys(t, 3)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := o.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	invited, err := o.Invite(1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(invited.Write(path("credentials")), keys[1].Write(path("key")), keys[1].Request().Write(path("request"))); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // nothing that leaves the owner holds its key
		b, err := os.ReadFile(path(f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != "key" && bytes.Contains(b, []byte(keys[1].Seed)) {
			t.Errorf("%s holds the owner's key", f.Name())
		}
	}
	if k, err := ReadOwnerKey(path("key")); err != nil || !reflect.DeepEqual(k, keys[1]) {
		t.Errorf("%v, %v", k, err)
	}
	if r, err := ReadRequest(path("request")); err != nil || r.Member() != o.Network.Owners[1] {
		t.Errorf("%v, %v", r, err)
	}
	if c, err := ReadCredentials(path("credentials")); err != nil || !reflect.DeepEqual(c, invited) {
		t.Errorf("%v, %v", c, err)
	}
	// With the keys the owners meet.
	m := &Memory{}
	hello(t, m, all[0])
	hello(t, m, all[2])
	if err := meets(t, m, all[1]); err != nil {
		t.Error(err)
	}
	// Revoked and invited again, an owner keeps its key, and all see the same fingerprint.
	before := fingerprint(t, &o.Network)
	if err := o.Revoke(1); err != nil {
		t.Fatal(err)
	}
	again := taken(t, o, keys)[1]
	if again.Seed != keys[1].Seed || fingerprint(t, &again.Network) != before {
		t.Error("an owner that is invited again has another key or roster")
	}
	// A key that others may read is refused, as are changed files.
	if err := os.Chmod(path("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadOwnerKey(path("key")); os.PathSeparator == '/' && (err == nil || !strings.Contains(err.Error(), "chmod 600")) {
		t.Error(err)
	}
	for what, change := range map[string]func(*Request){
		"another name":      func(r *Request) { r.Name = "owner 1" },
		"another's key":     func(r *Request) { r.Key = keys[0].Request().Key },
		"no signature":      func(r *Request) { r.Signature = "" },
		"half of a key":     func(r *Request) { r.Key = r.Key[:32] },
		"no hexadecimal":    func(r *Request) { r.Key = "x" + r.Key[1:] },
		"a message's":       func(r *Request) { r.Signature = hexOfMessage(keys[1], r.Name) },
		"signature of more": func(r *Request) { r.Signature += "00" },
	} {
		r := *keys[1].Request()
		change(&r)
		if _, err := NewNetworkWithKeys("", []*Request{keys[0].Request(), &r}, nil, nil); err == nil || !strings.Contains(err.Error(), "signature: is not that of the key") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := NewNetworkWithKeys("", []*Request{keys[0].Request(), keys[0].Request()}, nil, nil); err == nil || !strings.Contains(err.Error(), "found the key of \"owner 1\" twice") {
		t.Error(err)
	}
}

// hexOfMessage is the signature of the request's name as a message.
func hexOfMessage(k *OwnerKey, name string) string {
	b := sign(Config{}, privateKey(k.Seed), []byte(name))
	return new(big.Int).SetBytes(b[len(name):]).Text(16)
}

// An organizer that founds networks with other keys than the owners made, with the hub's help, is detected: by the
// fingerprints that owners compare, and, where they hold the network that they compared, by every signature.
func TestSecurityOfRosters(t *testing.T) {
	o, keys, all := ownKeys(t, 3)
	compared := fingerprint(t, &o.Network)
	// The organizer's own key instead of that of owner 2, in a network that is otherwise the same.
	swapped := func(t *testing.T) (*Organizer, *OwnerKey) {
		t.Helper()
		theirs, err := NewOwnerKey("owner 2")
		if err != nil {
			t.Fatal(err)
		}
		other := *o
		other.Network.Owners = append([]Member{}, o.Network.Owners...)
		other.Network.Owners[1] = theirs.Request().Member()
		return &other, theirs
	}
	t.Run("the fingerprint shows every change", func(t *testing.T) {
		for what, change := range map[string]func(n *Network){
			"key":          func(n *Network) { n.Owners[1].Key = keys[0].Request().Key },
			"name":         func(n *Network) { n.Owners[1].Name = "owner 4" },
			"order":        func(n *Network) { n.Owners[1], n.Owners[2] = n.Owners[2], n.Owners[1] },
			"one less":     func(n *Network) { n.Owners = n.Owners[:2] },
			"id":           func(n *Network) { n.ID = "0123456789abcdef" },
			"agreement":    func(n *Network) { n.Agreed = map[string]string{"privacy": "another hash"} },
			"whose keys":   func(n *Network) { n.OwnKeys = false },
			"limits":       func(n *Network) { n.Limits = &Limits{Dim: 1, Rounds: 1, Vectors: []int{1, 1, 1}} },
			"certificates": func(n *Network) { n.Authority += "\n" },
		} {
			n := o.Network
			n.Owners = append([]Member{}, n.Owners...)
			change(&n)
			if fingerprint(t, &n) == compared {
				t.Errorf("another %s has the same fingerprint", what)
			}
		}
		n := o.Network
		n.Hub = "tls://elsewhere:4222" // only where the hub is
		if fingerprint(t, &n) != compared {
			t.Error("the fingerprint is of the hub's address")
		}
	})
	t.Run("an owner refuses a network with another key in its name", func(t *testing.T) {
		other, theirs := swapped(t)
		c := invitations(t, other)[1]
		if err := c.Take(keys[1]); err == nil || !strings.Contains(err.Error(), "is not the key that this network has for owner 2") {
			t.Error(err)
		}
		c.Seed = theirs.Seed // nor does a file give it one
		path := filepath.Join(t.TempDir(), "c")
		if err := c.Write(path); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCredentials(path); err == nil || !strings.Contains(err.Error(), "seed: found a key of owner 2 that another has made") {
			t.Error(err)
		}
	})
	t.Run("an owner refuses a network that has its key under another name", func(t *testing.T) {
		o, keys, _ := ownKeys(t, 3)
		c := invitations(t, o)[1]
		c.Network.Owners[1].Name = "owner 9"
		if err := c.Take(keys[1]); err == nil || !strings.Contains(err.Error(), "is the key of owner 2; the network has it for owner 9") {
			t.Error(err)
		}
	})
	t.Run("different rosters for different owners", func(t *testing.T) {
		other, _ := swapped(t)
		c := invitations(t, other)
		if err := c[0].Take(keys[0]); err != nil { // its own key is right
			t.Fatal(err)
		}
		if fingerprint(t, &c[0].Network) == compared {
			t.Error("the owners would compare equal fingerprints")
		}
		for _, pair := range [][2]*Credentials{{c[0], all[1]}, {all[1], c[0]}} { // without comparing, too
			m := &Memory{}
			hello(t, m, pair[1])
			if err := meets(t, m, pair[0]); !errors.Is(err, ErrForged) {
				t.Errorf("%s meets %s, who has another roster: %v", pair[0].Name(), pair[1].Name(), err)
			}
		}
	})
	t.Run("a message in an owner's name under the compared roster", func(t *testing.T) {
		_, theirs := swapped(t)
		fake := *all[1]
		fake.Seed = theirs.Seed
		m := &Memory{}
		hello(t, m, &fake)
		if err := meets(t, m, all[0]); !errors.Is(err, ErrForged) {
			t.Error(err)
		}
		n := joined(t, m, all[0])
		v := []float64{1, 2, 3}
		if _, err := m.Put(t.Context(), vectorKey(1, 0, 4, 0, 1), encode(n.Config, fake.key(), 4, 1, 0, 0, v)); err != nil {
			t.Fatal(err)
		}
		if err := n.collect(t.Context(), 4, 1, 0, v, m.Get); !errors.Is(err, ErrForged) {
			t.Error(err)
		}
	})
	t.Run("a message of another network of the same owners", func(t *testing.T) {
		var requests []*Request
		for _, k := range keys {
			requests = append(requests, k.Request())
		}
		earlier, err := NewNetworkWithKeys("", requests, o.Network.Agreed, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &Memory{}
		hello(t, m, taken(t, earlier, keys)[1])
		if err := meets(t, m, all[0]); !errors.Is(err, ErrForged) {
			t.Error(err)
		}
	})
	t.Run("a network whose keys the organizer made", func(t *testing.T) {
		_, c := owners(t, 3)
		if err := c[1].Take(keys[1]); err == nil || !strings.Contains(err.Error(), "the organizer made the keys of this network") {
			t.Error(err)
		}
	})
}

func TestFingerprint(t *testing.T) {
	_, keys, all := ownKeys(t, 2)
	n := &all[0].Network
	if text := fingerprint(t, n); !regexp.MustCompile(`^\d{5}( \d{5}){11}$`).MatchString(text) {
		t.Error(text)
	}
	if text := keys[0].Request().Member().Fingerprint(); !regexp.MustCompile(`^\d{5}( \d{5}){5}$`).MatchString(text) || text != n.Owners[0].Fingerprint() || text == n.Owners[1].Fingerprint() {
		t.Error(text)
	}
	var small [32]byte
	small[31] = 7
	if text := digits(small, 2); text != "00000 00007" {
		t.Error(text)
	}
	for text, same := range map[string]bool{"00000 00007": true, "00000-00007\n": true, "0000000007": true, "00007": false, "00000 00008": false, "": false} {
		if SameFingerprint(text, "00000 00007") != same {
			t.Errorf("%q: %v", text, !same)
		}
	}
}
