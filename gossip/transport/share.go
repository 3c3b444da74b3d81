package transport

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A Share is one owner's part of a schedule's seed: random, and secret until all have committed to
// theirs. So even all others together with the hub cannot choose the seed: they commit before they
// can see this share.
type Share [sha256.Size]byte

// NewShare draws one.
func NewShare() (s Share, err error) {
	_, err = rand.Read(s[:])
	return s, err
}

// MarshalText implements encoding.TextMarshaler.
func (s Share) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Share) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(s) {
		return fmt.Errorf("found %d characters; expected %d hexadecimal digits", len(text), 2*len(s))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Commitment is what an owner publishes before it shows its share.
func (s Share) Commitment(n *Network, owner int) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "sotto seed %s %d ", n.ID, owner)
	h.Write(s[:])
	return h.Sum(nil)
}

// DrawnSeed returns the seed from the shares of all owners, in their order, checked against their
// commitments.
func DrawnSeed(n *Network, commitments, shares [][]byte) (uint64, error) {
	h := sha256.New()
	for i, b := range shares {
		var s Share
		if len(b) != len(s) || copy(s[:], b) < len(s) || !bytes.Equal(s.Commitment(n, i), commitments[i]) {
			return 0, fmt.Errorf("%s shows another share of the seed than it had committed to: %w", n.Owners[i].Name, ErrForged)
		}
		h.Write(b)
	}
	return binary.LittleEndian.Uint64(h.Sum(nil)), nil
}
