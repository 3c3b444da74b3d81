package remote

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sottodp/sotto/privacy/noise"
)

// SecretSize is the bytes of a Secret.
const SecretSize = 32

// A Secret is shared by the machines of one owner: only with it can they read each other's sample
// keys and sums before noise. It prints nothing of itself.
type Secret struct{ key [SecretSize]byte }

// NewSecret takes SecretSize random bytes.
func NewSecret(key []byte) (*Secret, error) {
	if len(key) != SecretSize {
		return nil, fmt.Errorf("remote: a secret of %d bytes; expected %d", len(key), SecretSize)
	}
	return &Secret{[SecretSize]byte(key)}, nil
}

// IDKey is the key of the hashes of units' ids, the same on all machines.
func (s *Secret) IDKey() []byte {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte("sotto/shards/1 ids"))
	return mac.Sum(nil)
}

// Format prints no more than what it is.
func (s *Secret) Format(f fmt.State, _ rune) { io.WriteString(f, "remote.Secret") }

// A head begins a message, authenticated but not encrypted: an answer belongs to one question, and
// a question to one shard of one session.
type head struct {
	salt      [32]byte // of the session, random
	asked     uint64   // number of the question in the session
	shard, of uint32
}

const (
	headMagic = "sotto/s2"
	headSize  = len(headMagic) + 32 + 8 + 4 + 4
)

func (h head) append(dst []byte) []byte {
	dst = append(append(dst, headMagic...), h.salt[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.asked)
	dst = binary.LittleEndian.AppendUint32(dst, h.shard)
	return binary.LittleEndian.AppendUint32(dst, h.of)
}

var errSealed = errors.New("remote: a message that does not open: it is of another secret, or was altered on its way")

func readHead(message []byte) (h head, err error) {
	if len(message) < headSize || string(message[:len(headMagic)]) != headMagic {
		return h, errSealed
	}
	b := message[len(headMagic):]
	copy(h.salt[:], b)
	h.asked = binary.LittleEndian.Uint64(b[32:])
	h.shard, h.of = binary.LittleEndian.Uint32(b[40:]), binary.LittleEndian.Uint32(b[44:])
	return h, nil
}

// A session is one coordinator's life. Questions and answers have different keys, so that neither
// can pass for the other, nor for those of another session. AES-256-GCM under random nonces; a key
// seals fewer than 2³² messages.
type session struct {
	salt          [32]byte
	asks, answers cipher.AEAD
	hashes        [32]byte // key of the hashes of rows in sketches
}

// newSession begins a session, under a random salt.
func (s *Secret) newSession() (*session, error) {
	var salt noise.Key
	if err := noise.SecureStreams().Key(&salt, "session", 0); err != nil {
		return nil, err
	}
	return s.session(salt)
}

func (s *Secret) session(salt [32]byte) (*session, error) {
	key := func(label string) []byte {
		mac := hmac.New(sha256.New, s.key[:])
		mac.Write([]byte("sotto/shards/1 " + label))
		mac.Write(salt[:])
		return mac.Sum(nil)
	}
	derive := func(label string) (cipher.AEAD, error) {
		block, err := aes.NewCipher(key(label))
		if err != nil {
			return nil, err
		}
		return cipher.NewGCMWithRandomNonce(block)
	}
	asks, err := derive("ask")
	if err != nil {
		return nil, err
	}
	answers, err := derive("answer")
	return &session{salt, asks, answers, [32]byte(key("rows"))}, err
}

// seal appends to dst a sealed question, or an answer to exactly that message: two copies of a coordinator, as of a
// virtual machine, may ask two questions with one number.
func seal(a cipher.AEAD, dst []byte, h head, text, to []byte) []byte {
	dst = h.append(slices.Grow(dst, headSize+len(text)+a.Overhead()))
	return a.Seal(dst, nil, text, bound(dst[len(dst)-headSize:], to))
}

// unseal appends to dst the text of a message.
func unseal(a cipher.AEAD, dst, message, to []byte) ([]byte, error) {
	text, err := a.Open(dst, nil, message[headSize:], bound(message[:headSize], to))
	if err != nil {
		return nil, errSealed
	}
	return text, nil
}

const (
	nonceSize = 12 // of AES-GCM, before the sealed text
	tagSize   = 16 // after it
)

// bound is what is authenticated with a text: the head, and nonce and tag of the message that it answers. Two messages
// of one session differ in the nonce; if they do not, their tags are those of different texts under one key, and equal
// with a probability of at most 2⁻¹²⁸ for each block of 16 bytes.
func bound(head, to []byte) []byte {
	dst := append(make([]byte, 0, headSize+nonceSize+tagSize), head...)
	if len(to) < headSize+nonceSize+tagSize {
		return append(dst, to...) // a question: it answers nothing
	}
	return append(append(dst, to[headSize:][:nonceSize]...), to[len(to)-tagSize:]...)
}
