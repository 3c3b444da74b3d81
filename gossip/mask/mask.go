// Package mask hides the vectors of owners so that only their sum can be read: each pair of owners shares a secret, and
// in every turn one of them adds numbers that it gives and the other takes the same numbers off, modulo 2⁶⁴. PROOFS.md
// beside the code says what that hides, from whom, and what it rests on (after Bonawitz and others, Practical Secure
// Aggregation for Privacy-Preserving Machine Learning, 2017, without its recovery: who is missing ends the turn for
// all).
//
// Masks are no noise. An owner adds its share of noise ([mech.Share]) before it masks.
package mask

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
)

// KeySize is the length of a public key in bytes.
const KeySize = 32

// A Key is an owner's key of one session. It is never stored: an owner that starts again makes another, and all pairs
// agree again.
type Key struct {
	private *ecdh.PrivateKey
	used    atomic.Bool
}

// NewKey draws a key.
func NewKey() (*Key, error) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("mask: %w", err)
	}
	return &Key{private: private}, nil
}

// Public is what the other owners need, signed by the owner.
func (k *Key) Public() (public [KeySize]byte) {
	copy(public[:], k.private.PublicKey().Bytes())
	return public
}

// Format prints no more than what it is.
func (k *Key) Format(f fmt.State, _ rune) { io.WriteString(f, "mask.Key") }

// A Context is what all owners of a sum have to agree on. Turn grows from sum to sum, attempts included. Digest is a
// SHA-256 hash of all else: the network, the roster, the attempt, what is asked, and what was released before.
type Context struct {
	Turn   uint64
	Digest [sha256.Size]byte
}

// A Session masks the vectors of one owner among all. It is not safe for concurrent use.
type Session struct {
	pairs []pair // with the others, in their order
	last  uint64 // turn, plus one; 0: none
	spent bool   // no turn is left

	stream []byte
}

// A pair is the secret that two owners share.
type pair struct {
	secret []byte
	adds   bool // the other one takes off
}

// NewSession agrees on a secret with each other owner. Self is the owner's place, from 0, in the list of all owners'
// public keys, which others have signed. Network stands for the network and its signed roster; the secrets depend on it
// and on all keys. It is an error if there are fewer than two owners, if the key at self is not the owner's, if two
// owners have one key, or if a key is not valid. A key makes one session: a second one could mask another vector in the
// same turn.
func NewSession(key *Key, network [sha256.Size]byte, self int, public [][KeySize]byte) (*Session, error) {
	switch {
	case len(public) < 2 || self < 0 || self >= len(public):
		return nil, fmt.Errorf("mask: owner %d of %d; choose one of two or more", self+1, len(public))
	case public[self] != key.Public():
		return nil, fmt.Errorf("mask: owner %d has another key than the list says", self+1)
	}
	all := sha256.New()
	io.WriteString(all, "sotto/mask/1 keys\n")
	all.Write(network[:])
	for i, p := range public {
		if first := slices.Index(public, p); first < i {
			return nil, fmt.Errorf("mask: owners %d and %d have the same key", first+1, i+1)
		}
		all.Write(p[:])
	}
	list := all.Sum(nil)
	if !key.used.CompareAndSwap(false, true) {
		return nil, errors.New("mask: this key has made a session; use a new key for each")
	}
	s := &Session{stream: make([]byte, 1<<14)}
	for j := range public {
		if j == self {
			continue
		}
		theirs, err := ecdh.X25519().NewPublicKey(public[j][:])
		if err != nil {
			return nil, fmt.Errorf("mask: the key of owner %d: %w", j+1, err)
		}
		shared, err := key.private.ECDH(theirs) // an error for points of low order
		if err != nil {
			return nil, fmt.Errorf("mask: the key of owner %d: %w", j+1, err)
		}
		name := binary.BigEndian.AppendUint64(nil, uint64(min(self, j)))
		name = binary.BigEndian.AppendUint64(name, uint64(max(self, j)))
		// X25519 gives one value for several texts of a key, so the pair is in the salt, too.
		salt := sha256.Sum256(append(slices.Clone(list), name...))
		secret, err := hkdf.Extract(sha256.New, shared, salt[:])
		if err != nil {
			return nil, fmt.Errorf("mask: %w", err)
		}
		s.pairs = append(s.pairs, pair{secret, self < j})
	}
	return s, nil
}

// Mask adds the owner's masks of a turn to v, modulo 2⁶⁴. Over all owners with the same context and length they add up
// to 0; with another context v looks uniform. A session masks once in a turn, and turns must grow: two vectors under
// one mask would show their difference. An error leaves v as it is.
func (s *Session) Mask(v []int64, c Context) error {
	if c.Turn < s.last || s.spent {
		return fmt.Errorf("mask: turn %d was asked after turn %d; ask for each turn once, in order", c.Turn, s.last-1)
	}
	streams := make([]cipher.Stream, len(s.pairs))
	for i, p := range s.pairs {
		var err error
		if streams[i], err = p.stream(c, len(v)); err != nil {
			return fmt.Errorf("mask: %w", err)
		}
	}
	s.last, s.spent = c.Turn+1, c.Turn+1 == 0
	for i, p := range s.pairs {
		s.add(v, streams[i], p.adds)
	}
	return nil
}

// stream is the numbers of a pair in a context. The length of the vector is a part of it, so that vectors of different
// lengths do not share the beginning of a mask.
func (p pair) stream(c Context, length int) (cipher.Stream, error) {
	info := binary.BigEndian.AppendUint64([]byte("sotto/mask/1 sum\n"), c.Turn)
	info = binary.BigEndian.AppendUint64(info, uint64(length))
	key, err := hkdf.Expand(sha256.New, p.secret, string(append(info, c.Digest[:]...)), 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewCTR(block, make([]byte, aes.BlockSize)), nil
}

// add adds the stream's numbers to v, or takes them off.
func (s *Session) add(v []int64, stream cipher.Stream, adds bool) {
	for len(v) > 0 {
		n := min(len(v), len(s.stream)/8)
		b := s.stream[:8*n]
		clear(b)
		stream.XORKeyStream(b, b)
		part := v[:n]
		if adds {
			for i := range part {
				part[i] += int64(binary.LittleEndian.Uint64(b[8*i:]))
			}
		} else {
			for i := range part {
				part[i] -= int64(binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
		v = v[n:]
	}
}

// Format prints no more than what it is.
func (s Session) Format(f fmt.State, _ rune) { io.WriteString(f, "mask.Session") }
