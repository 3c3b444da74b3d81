// Package noise draws the randomness of private releases: keyed streams of
// random bits, and Gaussian, Laplace, geometric and uniform values and coins that are exact.
//
// # Why counts and not floats
//
// A released sum is a vector of int64 counts of a public power-of-two grid (R15).
// AddGaussian and AddLaplace add to each count the ideal continuous value,
// rounded to the nearest count. Rounding noise to the grid and adding it to a sum
// that lies on the grid is the same as adding the noise first and rounding after.
// So what is released is a function of (sum + ideal noise) alone, and every
// theorem about the continuous mechanism holds for it. Nothing here returns
// Gaussian values as floats: the low bits of a float say too much (Mironov 2012).
//
// # How a sample is exact
//
// A uniform number is an endless row of bits, of which 64 are drawn at once. From
// these a fast path computes the value in float64 with a proven bound on its error
// (expo, AddGaussian). Where every value within the bound rounds to one count,
// that count is the answer. Else the same uniform is given 256 more bits, and
// the value is recomputed in 512-bit arithmetic (exact.go). The answer is thus a
// function of the stream's bits only: it is the same on every platform, however
// it rounds floats. SamplerDistance bounds the remaining distance from the
// ideal law, given ideal bits.
//
// # What takes the same time always
//
// AddGaussian and AddLaplace take one word of the stream for each value (an odd number of
// Gaussian ones takes one more) and, on the fast path, one sequence of float operations,
// whatever the values. Three things are not constant. The slow path is taken by
// about one pair in 2⁴⁴/scale and tells by its time that a value lay close to a rounding threshold;
// short branches depend on a Laplace value's sign and on the one uniform in a thousand near 0; and
// some processors divide or take roots faster for some operands. All of this concerns only the noise: this
// package never reads the sum before adding. Below draws again where a word favors
// some numbers, which depends on the word alone; Gap and Decay take the slow path near their
// thresholds. What a caller does with their answers (the size of a batch, the
// number of proposals of a choice) takes the time that it takes: time is not covered by the
// guarantee (docs/explanation/privacy.md).
package noise

import (
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// A Source is a stream of random bits. It is a handle: a copy of a Source shares
// its stream, so that copying one never repeats noise. It must not be used by two
// goroutines at once. The zero value holds no stream, and drawing from it panics;
// Streams.Reset gives it one.
//
// The bits come from ChaCha8 (the output is fixed by c2sp.org/chacha8rand) under a
// 256-bit key. A new key or counter for each batch (R6) costs AES-256-CTR in Go two
// allocations and a kilobyte, where ChaCha8 takes a new key in place, and with a
// kernel is as fast in bulk; it also erases its own key as it goes, so that memory
// read later does not give back noise drawn earlier.
//
// No key or state is ever printed, whatever the formatting verb.
type Source struct {
	// Two pointers, since fmt prints the unexported fields of others by reflection, where
	// Format is not called, and for some verbs it follows one pointer.
	p **state
}

type state struct {
	chacha chacha
	refine [32]byte // key of the further bits of each word: the stream's first 32 bytes
	pos    uint64   // words drawn since the key was set
	seeded bool
}

// NewSecure returns a stream under a fresh key from the system's generator.
func NewSecure() (*Source, error) {
	src := new(Source)
	if err := SecureStreams().Reset(src, "", 0); err != nil {
		return nil, err
	}
	return src, nil
}

// NewSeeded returns the stream that belongs to a seed, a name and an index. The
// same three give the same stream on every platform; streams that differ in any of
// them are independent. Anyone who knows the seed knows the noise: it is for lab runs
// and tests.
func NewSeeded(seed uint64, stream string, index uint64) *Source {
	src := new(Source)
	src.setKey(seededKey(seed, stream, index), true)
	return src
}

// seededKey is SHA-256 of an injective encoding of its arguments.
func seededKey(seed uint64, stream string, index uint64) [32]byte {
	var room [128]byte
	b := append(room[:0], "sotto/noise/seeded/1\x00"...)
	b = binary.LittleEndian.AppendUint64(b, seed)
	b = binary.LittleEndian.AppendUint64(b, index)
	b = append(b, stream...)
	return sha256.Sum256(b)
}

func (s Source) state() *state { return *s.p }

func (s *Source) init() {
	if s.p == nil {
		st := new(state)
		s.p = &st
	}
}

func (s *Source) setKey(key [32]byte, seeded bool) {
	s.init()
	st := s.state()
	st.seeded = seeded
	st.chacha.Seed(key)
	for i := 0; i < len(st.refine); i += 8 {
		binary.LittleEndian.PutUint64(st.refine[i:], st.chacha.Uint64())
	}
	st.pos = 0
}

// Seeded says whether the stream was made from a seed, and hides nothing.
func (s *Source) Seeded() bool { return s.state().seeded }

func (st *state) word() uint64 {
	st.pos++
	return st.chacha.Uint64()
}

func (st *state) words(dst []uint64) {
	st.pos += uint64(len(dst))
	st.chacha.words(dst)
}

// Uint64 returns the next 64 bits of the stream.
func (s *Source) Uint64() uint64 { return s.state().word() }

// Float64 returns a multiple of 2⁻⁵³ in [0, 1), each equally likely.
func (s *Source) Float64() float64 { return float64(s.state().word()>>11) * 0x1p-53 }

// Read fills p and never fails. It draws whole words: what is left of the last one
// is thrown away.
func (s *Source) Read(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], s.state().word())
		p = p[copy(p, w[:]):]
	}
	return n, nil
}

// Format writes what kind of stream it is, for every verb and flag.
func (s Source) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String names the kind of stream. It shows neither key nor state.
func (s Source) String() string {
	switch {
	case s.p == nil:
		return "noise.Source(none)"
	case s.state().seeded:
		return "noise.Source(seeded)"
	default:
		return "noise.Source(secure)"
	}
}

// Streams makes the sources of a run: one stream for each purpose (a name) and each
// batch (an index). The zero value is SecureStreams().
type Streams struct {
	seeded bool
	seed   uint64
}

// SecureStreams gives every stream a fresh 256-bit key from the system's generator,
// so that no two are ever the same, not even those of two copies of one virtual
// machine (R6).
func SecureStreams() Streams { return Streams{} }

// SeededStreams gives every (name, index) the stream NewSeeded(seed, name, index).
func SeededStreams(seed uint64) Streams { return Streams{seeded: true, seed: seed} }

// Seeded says whether the streams come from a seed: such a run is a lab run.
func (s Streams) Seeded() bool { return s.seeded }

// Stream returns a new source for a purpose and a batch number ≥ 0.
func (s Streams) Stream(name string, index int) (*Source, error) {
	src := new(Source)
	if err := s.Reset(src, name, index); err != nil {
		return nil, err
	}
	return src, nil
}

// Reset gives src the key that Stream would, in place: it allocates nothing if src
// already held a stream. On an error src keeps its old stream.
func (s Streams) Reset(src *Source, name string, index int) error {
	if index < 0 {
		return fmt.Errorf("noise: stream %q: index is %d; choose 0 or more", name, index)
	}
	if s.seeded {
		src.setKey(seededKey(s.seed, name, uint64(index)), true)
		return nil
	}
	src.init()
	// The key is read into the state, which is on the heap anyway; setKey overwrites it.
	key := &src.state().refine
	if _, err := crand.Read(key[:]); err != nil {
		return fmt.Errorf("noise: no random bits from the system: %w", err)
	}
	src.setKey(*key, false)
	return nil
}

// A Key stands for a stream that is drawn in several places at once: with it each draws the same. Anyone who has it
// knows the stream, so it travels sealed (R22).
type Key [32]byte

// Key sets key to that of the stream for a purpose and a batch: a fresh one each time it is called, unless the streams
// come from a seed, where it is that of Stream.
func (s Streams) Key(key *Key, name string, index int) error {
	if index < 0 {
		return fmt.Errorf("noise: stream %q: index is %d; choose 0 or more", name, index)
	}
	if s.seeded {
		*key = seededKey(s.seed, name, uint64(index))
		return nil
	}
	if _, err := crand.Read(key[:]); err != nil {
		return fmt.Errorf("noise: no random bits from the system: %w", err)
	}
	return nil
}

// Reset gives src the stream of the key.
func (k Key) Reset(src *Source) { src.setKey(k, false) }

// Format prints no more than what it is.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "noise.Key") }

// String says which kind of streams it makes, and not the seed.
func (s Streams) String() string {
	if s.seeded {
		return "noise.Streams(seeded)"
	}
	return "noise.Streams(secure)"
}
