package transport

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sottodp/sotto/internal/newfile"
	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/run/runlog"
)

// A Network says who takes part and where the hub is. It is public.
type Network struct {
	Format string   `json:"format"`
	ID     string   `json:"id"`  // 16 hexadecimal digits, fresh for each training
	Hub    string   `json:"hub"` // URL, or several with commas between them
	Owners []Member `json:"owners"`
	// OwnKeys says that each owner made the key of its messages itself. Otherwise the organizer made all.
	OwnKeys bool `json:"own_keys,omitempty"`
	// Mode is "" where owners exchange noisy vectors, and ModeSum where they add up masked parts.
	Mode string `json:"mode,omitempty"`
	// Agreed is a hash of each part of what is trained and how, by the part's name.
	Agreed map[string]string `json:"agreed"`
	// Limits are how much each owner may store at the hub; none in a network of an earlier build.
	Limits *Limits `json:"limits,omitempty"`
	// Authority is the certificate, in PEM, that certifies the hub and the owners.
	Authority string `json:"authority"`
}

// ModeSum is the mode of a network whose hub adds up what the owners mask (network.mode: sum).
const ModeSum = "sum"

// A Member is one owner.
type Member struct {
	Name string `json:"name"`
	Key  string `json:"key"` // Ed25519, in hexadecimal: of its messages
}

// Credentials are what one owner joins with. They are secret.
type Credentials struct {
	Format  string  `json:"format"`
	Network Network `json:"network"`
	Owner   int     `json:"owner"` // its place among the owners
	// Seed is that of the Ed25519 key of its messages, in hexadecimal. With keys of the owners' own it is in
	// no file of credentials: Take sets it.
	Seed string `json:"seed,omitempty"`
	Pass Pass   `json:"pass"`
}

const (
	networkFormat     = "sotto-network/3"
	networkFormat2    = "sotto-network/2" // with agreements of version 1
	credentialsFormat = "sotto-credentials/2"
)

// ReadCredentials reads an owner's credentials.
func ReadCredentials(path string) (*Credentials, error) {
	c := &Credentials{}
	if err := read(path, c, credentialsFormat); err != nil {
		return nil, err
	}
	if err := runlog.Secret(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ReadNetwork reads the public file of a network.
func ReadNetwork(path string) (*Network, error) {
	n := &Network{}
	return n, read(path, n, networkFormat, networkFormat2)
}

// ReadRoster reads the network in an owner's credentials or in a network's public file.
func ReadRoster(path string) (*Network, error) {
	b, err := readfile.All(path, readfile.JSON)
	var head struct{ Format string }
	if err == nil && json.Unmarshal(b, &head) == nil && head.Format == credentialsFormat {
		c, err := ReadCredentials(path)
		if err != nil {
			return nil, err
		}
		return &c.Network, nil
	}
	return ReadNetwork(path)
}

// Write writes the network to a file.
func (n *Network) Write(path string) error { return write(path, n) }

// Write writes the credentials to a file for its owner only.
func (c *Credentials) Write(path string) error { return write(path, c) }

// read reads and checks a file of one of these formats.
func read(path string, v interface{ validate() error }, formats ...string) error {
	b, err := readfile.All(path, readfile.JSON)
	if err != nil {
		return fmt.Errorf("%s: found no file to read (%w)", path, reason(err))
	}
	var head struct{ Format string }
	err = json.Unmarshal(b, &head)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := b[:min(int(syntax.Offset), len(b))]
		line := bytes.Count(before, []byte("\n")) + 1
		return fmt.Errorf("%s:%d:%d: found damaged JSON (%w); use the whole file, as it was made", path, line,
			len(before)-bytes.LastIndexByte(before, '\n')-1, err)
	}
	if !slices.Contains(formats, head.Format) {
		return fmt.Errorf("%s: found the format %q; expected %q", path, head.Format, formats[0])
	}
	if err := runlog.Strict(b, v); err != nil {
		return fmt.Errorf("%s: found other fields than %s has (%s); use the file as it was made", path, head.Format,
			strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := v.validate(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func write(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := newfile.Replace(filepath.Clean(path), 0o600, append(b, '\n')); err != nil {
		return fmt.Errorf("%s: cannot be written (%w)", path, reason(err))
	}
	return nil
}

func (n *Network) validate() error {
	switch b, err := hex.DecodeString(n.ID); {
	case n.Format != networkFormat && n.Format != networkFormat2:
		return fmt.Errorf("format: found %q; expected %q", n.Format, networkFormat)
	case err != nil || len(b) != 8:
		return fmt.Errorf("id: found %q; expected 16 hexadecimal digits", n.ID)
	case len(n.Owners) < 2:
		return fmt.Errorf("owners: found %d; a network needs 2 or more", len(n.Owners))
	}
	if err := n.validateMode(); err != nil {
		return err
	}
	if n.Limits != nil {
		if err := n.Limits.validate(len(n.Owners)); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i, m := range n.Owners {
		switch key := n.key(i); {
		case len(key) != ed25519.PublicKeySize:
			return fmt.Errorf("owners: found no key of owner %d; expected 64 hexadecimal digits", i+1)
		case seen[string(key)]:
			return fmt.Errorf("owners: found the key of %q twice; each owner needs a key of its own", m.Name)
		default:
			seen[string(key)] = true
		}
	}
	return nil
}

func (n *Network) validateMode() error {
	sums := n.Limits != nil && n.Limits.Sums != nil
	switch {
	case n.Mode != "" && n.Mode != ModeSum:
		return fmt.Errorf("mode: found %q; write %q or leave it out", n.Mode, ModeSum)
	case sums != (n.Mode == ModeSum):
		return fmt.Errorf("limits.sums: belongs to a network of mode %s, which needs it", ModeSum)
	case n.Mode == ModeSum && !n.OwnKeys: // who makes the keys of all owners can remove their masks
		return fmt.Errorf("own_keys: a network of mode %s is founded with a key of each owner's own (sotto net key)", ModeSum)
	case n.Mode == ModeSum && len(n.Owners) > mostAdded:
		return fmt.Errorf("owners: found %d; a network of mode %s takes up to %d", len(n.Owners), ModeSum, mostAdded)
	}
	return nil
}

// owned checks the network, and that there is one item for each owner.
func (n *Network) owned(owners int) error {
	if err := n.validate(); err != nil {
		return err
	}
	if owners != len(n.Owners) {
		return fmt.Errorf("owners: found %d; the network has %d", owners, len(n.Owners))
	}
	return nil
}

func (n *Network) key(owner int) ed25519.PublicKey {
	b, _ := hex.DecodeString(n.Owners[owner].Key)
	return b
}

// Config returns the hash of everything that the owners agree on: the network's id, the agreement and the
// owners' names and keys. Every message signs it, so each owner's Hello is its signature of the roster.
func (n *Network) Config() (Config, error) {
	text, err := n.Agreement()
	return sha256.Sum256(text), err
}

// Agreement returns the text that Config hashes, without the hub's URL.
func (n *Network) Agreement() ([]byte, error) {
	c := *n
	c.Hub = ""
	return json.Marshal(c)
}

func (c *Credentials) validate() error {
	if err := c.Network.validate(); err != nil {
		return fmt.Errorf("network.%w", err)
	}
	if c.Owner < 0 || c.Owner >= len(c.Network.Owners) {
		return fmt.Errorf("owner: found %d; choose 0 to %d", c.Owner, len(c.Network.Owners)-1)
	}
	if _, err := c.Pass.tls(&c.Network); err != nil {
		return err
	}
	if c.Network.OwnKeys {
		if c.Seed != "" {
			return fmt.Errorf("seed: found a key of %s that another has made; leave it out, as the owners have keys of their own", c.Name())
		}
		return nil
	}
	if b, err := hex.DecodeString(c.Seed); err != nil || len(b) != ed25519.SeedSize ||
		!c.key().Public().(ed25519.PublicKey).Equal(c.Network.key(c.Owner)) {
		return fmt.Errorf("seed: is not that of the key of %s", c.Name())
	}
	return nil
}

// Name is the owner's name.
func (c *Credentials) Name() string { return c.Network.Owners[c.Owner].Name }

func (c *Credentials) key() ed25519.PrivateKey { return privateKey(c.Seed) }
