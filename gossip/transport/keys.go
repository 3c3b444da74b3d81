package transport

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/sottodp/sotto/run/runlog"
)

// An OwnerKey is the key of an owner's messages, which the owner makes on its own machine. It is
// secret: anyone who holds it can speak as the owner.
type OwnerKey struct {
	Format string `json:"format"`
	Name   string `json:"name"` // of the owner
	Seed   string `json:"seed"` // of the Ed25519 key, in hexadecimal
}

// A Request is the public half of an OwnerKey, which the owner sends to the organizer.
type Request struct {
	Format    string `json:"format"`
	Name      string `json:"name"`
	Key       string `json:"key"`       // Ed25519, in hexadecimal
	Signature string `json:"signature"` // of the name by the key: nobody enters the key of another
}

const (
	ownerKeyFormat = "sotto-owner-key/1"
	requestFormat  = "sotto-owner/1"
)

// RequestSuffix is what the name of a request's file has beyond that of its key's.
const RequestSuffix = ".pub"

// requestText is what a request signs. It is longer than the hash that a message signs, so neither is
// taken for the other.
func requestText(name string) []byte {
	return []byte("sotto: this key signs the messages of the owner " + name)
}

// NewOwnerKey makes an owner's key.
func NewOwnerKey(name string) (*OwnerKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, err
	}
	k := &OwnerKey{Format: ownerKeyFormat, Name: name, Seed: hex.EncodeToString(seed)}
	return k, k.validate()
}

// ReadOwnerKey reads an owner's key.
func ReadOwnerKey(path string) (*OwnerKey, error) {
	k := &OwnerKey{}
	if err := read(path, k, ownerKeyFormat); err != nil {
		return nil, err
	}
	if err := runlog.Secret(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// Write writes the key to a file for its owner only.
func (k *OwnerKey) Write(path string) error { return write(path, k) }

func (k *OwnerKey) validate() error {
	if k.Name == "" {
		return errors.New("name is missing: the owner's name, as in the spec")
	}
	if b, err := hex.DecodeString(k.Seed); err != nil || len(b) != ed25519.SeedSize {
		return fmt.Errorf("seed: found %d characters; expected %d hexadecimal digits", len(k.Seed), 2*ed25519.SeedSize)
	}
	return nil
}

func (k *OwnerKey) public() ed25519.PublicKey {
	return privateKey(k.Seed).Public().(ed25519.PublicKey)
}

// Request returns the public half.
func (k *OwnerKey) Request() *Request {
	return &Request{
		Format: requestFormat, Name: k.Name, Key: hex.EncodeToString(k.public()),
		Signature: hex.EncodeToString(ed25519.Sign(privateKey(k.Seed), requestText(k.Name))),
	}
}

// ReadRequest reads an owner's request.
func ReadRequest(path string) (*Request, error) {
	r := &Request{}
	return r, read(path, r, requestFormat)
}

// Write writes the request to a file.
func (r *Request) Write(path string) error { return write(path, r) }

func (r *Request) validate() error {
	key, err := hex.DecodeString(r.Key)
	signature, wrong := hex.DecodeString(r.Signature)
	if err := errors.Join(err, wrong); err != nil || len(key) != ed25519.PublicKeySize ||
		!ed25519.Verify(key, requestText(r.Name), signature) {
		return fmt.Errorf("signature: is not that of the key for the name %q; use the file as sotto net key made it", r.Name)
	}
	return nil
}

// Member is the owner that the request is of.
func (r *Request) Member() Member { return Member{r.Name, strings.ToLower(r.Key)} }

// Groups of five digits. An organizer who wants to show different networks to different owners must
// find two with equal digits: 10³⁰ ≈ 2¹⁰⁰ attempts for 60 digits. An honest owner's key is fixed,
// so matching its 30 digits takes as many attempts.
const (
	networkGroups = 12
	keyGroups     = 6
)

// Fingerprint returns 60 digits of Config. Owners that see the same digits have the same roster.
func (n *Network) Fingerprint() (string, error) {
	config, err := n.Config()
	return digits(config, networkGroups), err
}

// Fingerprint returns 30 digits of the hash of an owner's public key.
func (m Member) Fingerprint() string {
	return digits(sha256.Sum256([]byte("sotto key "+strings.ToLower(m.Key))), keyGroups)
}

// digits returns a hash modulo a power of ten, in groups of five digits.
func digits(hash [sha256.Size]byte, groups int) string {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(5*groups)), nil)
	text := fmt.Sprintf("%0*d", 5*groups, new(big.Int).Mod(new(big.Int).SetBytes(hash[:]), most))
	var all []string
	for i := 0; i < len(text); i += 5 {
		all = append(all, text[i:i+5])
	}
	return strings.Join(all, " ")
}

// SameFingerprint reports whether a text has these digits, whatever is between them.
func SameFingerprint(text, digits string) bool {
	only := func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}
	return strings.Map(only, text) == strings.Map(only, digits)
}

// Take gives the owner's own key to credentials that came without one.
func (c *Credentials) Take(k *OwnerKey) error {
	if !c.Network.OwnKeys {
		return errors.New("the organizer made the keys of this network; give a key only for a network that was founded with the owners' requests")
	}
	if !k.public().Equal(c.Network.key(c.Owner)) {
		return fmt.Errorf("is not the key that this network has for %s: it is of another network, or somebody replaced it on its way to the organizer; use a network that was founded with this owner's request", c.Name())
	}
	if k.Name != c.Name() {
		return fmt.Errorf("is the key of %s; the network has it for %s; use a network that was founded with the names in the owners' requests", k.Name, c.Name())
	}
	c.Seed = k.Seed
	return nil
}

func privateKey(seed string) ed25519.PrivateKey {
	b, _ := hex.DecodeString(seed)
	return ed25519.NewKeyFromSeed(b)
}
