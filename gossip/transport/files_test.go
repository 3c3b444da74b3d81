package transport

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is written is read back, is its owner's alone, and is refused where it was changed.
func TestFiles(t *testing.T) {
	o, all := owners(t, 2)
	stranger, others := owners(t, 2)
	hub, err := o.Hub()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f")
	back := func(write error, read func(string) (any, error)) (any, error) {
		t.Helper()
		if write != nil {
			t.Fatal(write)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		return read(path)
	}
	readOrganizer := func(p string) (any, error) { return ReadOrganizer(p) }
	readHub := func(p string) (any, error) { return ReadHubKeys(p) }
	readOwner := func(p string) (any, error) { return ReadCredentials(p) }
	for _, c := range []struct {
		v    interface{ Write(string) error }
		read func(string) (any, error)
	}{{o, readOrganizer}, {hub, readHub}, {all[1], readOwner}} {
		if v, err := back(c.v.Write(path), c.read); err != nil || !reflect.DeepEqual(v, c.v) {
			t.Errorf("%T: read back %+v, %v", c.v, v, err)
		}
	}
	refused := func(why string, v interface{ Write(string) error }, read func(string) (any, error)) {
		t.Helper()
		if v, err := back(v.Write(path), read); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("read %+v, %v; expected %q", v, err, why)
		}
	}
	changed := *all[1]
	changed.Seed = all[0].Seed
	refused("seed: is not that of the key of owner 2", &changed, readOwner)
	changed = *all[1]
	changed.Pass.Key = all[0].Pass.Key
	refused("certificate: ", &changed, readOwner)
	changed = *all[1]
	changed.Owner = 2
	refused("owner: found 2; choose 0 to 1", &changed, readOwner)
	changed = *all[1]
	changed.Network = others[1].Network
	refused("seed: ", &changed, readOwner)
	changed.Network.Owners = changed.Network.Owners[:1]
	refused("network.owners: found 1; a network needs 2 or more", &changed, readOwner)
	foreign, err := stranger.Hub()
	if err != nil {
		t.Fatal(err)
	}
	other := *hub
	other.Account = foreign.Account
	refused("account: is not signed by the operator", &other, readHub)
	refused(`found the format "sotto-hub/2"; expected "sotto-organiser/2"`, hub, readOrganizer)
	other = *hub
	other.Owners = []string{hub.Owners[0], hub.Owners[0]}
	refused(`owners: found the account of "owner 1" twice`, &other, readHub)
	other.Owners = hub.Owners[:1]
	refused("owners: found 1; the network has 2", &other, readHub)
	other = *hub
	other.Network.Owners = []Member{hub.Network.Owners[0], hub.Network.Owners[0]}
	refused(`owners: found the key of "owner 1" twice`, &other, readHub)
	few := *o
	few.Owners = few.Owners[:1]
	refused("owners: found 1; the network has 2", &few, readOrganizer)
	// Turned away twice, and invited in between: the connection's key is another each time.
	before := all[0].Pass.User
	for range 2 {
		if err := o.Revoke(0); err != nil {
			t.Fatal(err)
		}
		c, err := o.Invite(0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if c.Seed != all[0].Seed || c.Pass.User == before {
			t.Error("the key of the messages must stay, and that of the connection be another")
		}
		before = c.Pass.User
	}
}

// A file that was cut off or edited is said to be.
func TestDamagedFiles(t *testing.T) {
	_, all := owners(t, 2)
	path := filepath.Join(t.TempDir(), "f")
	if err := all[0].Write(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                 path + ":1:0: found damaged JSON (unexpected end of JSON input)",
		string(whole[:50]): path + ":3:13: found damaged JSON (unexpected end",
		strings.Replace(string(whole), "{", "{\n!", 1):                  path + ":2:1: found damaged JSON (invalid character '!'",
		string(whole) + "}":                                             "found damaged JSON",
		strings.Replace(string(whole), `"seed"`, `"sed"`, 1):            `(unknown field "sed"); use`,
		strings.Replace(string(whole), `"owner": 0`, `"owner": "x"`, 1): "cannot unmarshal string into Go struct field Credentials.owner of type int",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCredentials(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; expected %s", err, want)
		}
	}
}

// A hub that listens at all addresses says the one that owners know.
func TestReached(t *testing.T) {
	n := &Network{Hub: "tls://hub.example.org:4222,tls://b:1"}
	for host, want := range map[string]string{"0.0.0.0": "tls://hub.example.org:5", "::": "tls://hub.example.org:5", "127.0.0.1": "tls://127.0.0.1:5", "::1": "tls://[::1]:5"} {
		if got := n.reached(host, 5); got != want {
			t.Errorf("%s: %s; expected %s", host, got, want)
		}
	}
	if got := (&Network{}).reached("0.0.0.0", 5); got != "tls://0.0.0.0:5" {
		t.Error(got)
	}
}

// Whatever is given for the place of a hub, it is taken or refused; what is taken has a host to certify.
func TestHubHosts(t *testing.T) {
	for urls, want := range map[string][]string{
		"":                        nil,
		"tls://localhost:4222":    {"localhost"},
		"tls://[::1]:1,tls://a:2": {"::1", "a"},
		"tls://a:1,tls://a:2":     {"a"},
	} {
		if got, err := hubHosts(urls); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v", urls, got, err)
		}
	}
	for _, urls := range []string{"localhost:4222", "nats://a:1", "tls://a", "tls://:4222", "tls://u:p@a:1", "tls://a:1/x", "tls://a:1,", ",", "tls://a:99x", "tls://a:99999", "tls://a:0"} {
		if got, err := hubHosts(urls); err == nil {
			t.Errorf("%q: %q", urls, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		hosts, err := hubHosts(rapid.String().Draw(t, "urls"))
		for _, h := range hosts {
			if err == nil && h == "" {
				t.Error("no host")
			}
		}
	})
}
